// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_movement.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace random_program::detail {

/// Steps of the layers of models: attention, scans and experts.
class layers : public movement {
 public:
  using movement::movement;

 protected:
  bool one_hot() {
    const int ids = any([&](int v) { return is_usable(v) && about(v).is_ids() && rank(v) < 5; });
    return ids >= 0 && add({verb::one_hot, {ids}, std::string(1, letter())});
  }

  char letter() { return "ABCD"[below(4)]; }
  /// A tensor with these letters as dims, or a new input.
  int of_letters(const std::string& text) {
    const int known = any([&](int v) {
      std::string mine;
      return is_f64(v) && letters_of(dims(v), &mine) && mine == text;
    });
    return known >= 0 && below(3) > 0 ? known : new_input(text, gs::dtype::f64);
  }
  bool attention() {
    int q = any([&](int v) { return is_f64(v) && rank(v) >= 3 && rank(v) <= 5 && letters_of(dims(v), nullptr); });
    if (q < 0 || below(3) == 0) q = new_input(letters(5, 3), gs::dtype::f64);
    if (q < 0) return false;
    std::string text;
    letters_of(dims(q), &text);
    const bool grouped = text.size() > 3 && below(2);
    const std::size_t batch = text.size() - (grouped ? 4 : 3);
    const std::string keys = text.substr(0, batch) + (below(2) ? text[batch] : letter());
    const std::string of_k = keys + text[batch + 1] + text.back();
    const int k = of_letters(of_k), v = of_letters(of_k);
    if (k < 0 || v < 0) return false;
    const bool with_mask = below(3) == 0, with_position = below(3) == 0;
    std::vector<int> operands{q, k, v};
    if (with_mask) operands.push_back(new_ids(keys, 9, 0));
    if (with_position) {
      const std::string some = keys.substr(0, std::size_t(below(int(batch) + 1)));
      const bool clear = std::all_of(some.begin(), some.end(), [&](char c) { return std::count(keys.begin(), keys.end(), c) == 1; });
      operands.push_back(new_ids(clear ? some : "", 9, -below(2)));
    }
    if (operands.back() < 0 || operands[3 % operands.size()] < 0) return false;
    const int dropout = below(4) ? 0 : below(2) ? 5 : 3;
    return add({verb::attention, operands, {}, {below(3) == 0, with_mask, with_position, dropout, below(4) == 0, below(3) == 0}});
  }

  bool experts() {
    const auto fits = [&](int v) {
      return is_exact(v) && is_f64(v) && !of(v).special() && !of(v).tiny && rank(v) == 3 && letters_of(dims(v), nullptr) &&
             extent(v, 2) > 0;
    };
    int logits = any(fits);
    if (logits < 0 || below(3) == 0) {
      const int before = special_;
      special_ = 0;
      logits = new_input({letter(), letter(), letter()}, gs::dtype::f64);
      special_ = before;
    }
    if (logits < 0 || !fits(logits)) return false;
    std::string text;
    letters_of(dims(logits), &text);
    const std::string tokens = text.substr(0, 2), width(1, letter());
    const int x = of_letters(tokens + width), w = of_letters(width + letter());
    if (x < 0 || w < 0) return false;
    std::vector<int> operands{x, logits, w};
    const bool masked = below(3) == 0;
    if (masked) {
      const int ids = new_ids(tokens, 9, 0);
      if (ids < 0 || !add({verb::cast, {ids}, {}, {int(gs::dtype::f64)}})) return false;
      operands.push_back(newest());
    }
    const int n = int(extent(logits, 2)), result = below(2) ? 0 : below(4);
    const auto route = expert_route(below(4));
    const int k = below(3) == 0 && route != expert_route::rows ? 0 : 1 + below(std::min(n, 3));
    if (route == expert_route::replicas) {
      const char replicas = letter();
      operands.push_back(r_.on.dims.find(replicas) > 0 ? new_ids(std::string(1, replicas), n, 0) : -1);
      if (operands.back() < 0) return false;
    }
    const bool in_groups = route == expert_route::rows || route == expert_route::groups;
    const int parts = 1 + below(in_groups ? std::min(n, 3) : 3);
    const int token_groups = int(extent(logits, 0)), some = route == expert_route::groups ? 1 + below(3) : 1;
    const int chunks = token_groups > 0 && token_groups % some == 0 ? some : 1;
    return add({verb::experts, operands, {}, {k, int(route), parts, below(3), below(3), below(3), result, masked, chunks}});
  }

  bool scan() {
    const auto rows_broadcast = [&](int v, int to) {
      if (!is_f64(v) || rank(v) == 0) return false;
      gs::dim_list row;
      for (int d = 1; d < rank(v); ++d) row.push_back(dims(v)[d]);
      return broadcasts(row, dims(to));
    };
    const int start = any([&](int v) { return is_f64(v) && rank(v) < 5; });
    if (start < 0) return false;
    int xs = any([&](int v) { return rows_broadcast(v, start); });
    if (xs < 0 || below(3) == 0) {
      std::string text(1, letter());
      if (below(3) > 0) letters_of(dims(start), &text);
      xs = new_input(text, gs::dtype::f64);
    }
    if (xs < 0 || !rows_broadcast(xs, start)) return false;
    const int y = any([&](int v) { return broadcasts(v, start); });
    return add({verb::scan, {start, xs, y}, {}, {below(scan_bodies), below(3)}, layout(rank(start), false)});
  }
};

}  // namespace random_program::detail
