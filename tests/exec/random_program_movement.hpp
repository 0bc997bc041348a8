// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace random_program::detail {

/// Steps that move elements, or read them through windows or by index.
class movement : public arithmetic {
 public:
  using arithmetic::arithmetic;

 protected:
  bool merge() {
    const int x = any([&](int v) { return is_usable(v) && at(v).rank() > 1; });
    return x >= 0 && add({verb::merge_dims, {x}, {}, {below(at(x).rank() - 1)}}, about(x));
  }
  bool split() {
    const auto merged = [&](int v, int d) { return b_.program.dims[std::size_t(at(v).get().dims[d])].what == gs::dim::kind::product; };
    const auto at_dim = [&](int v) {
      for (int d = 0; d < at(v).rank(); ++d)
        if (merged(v, d)) return d;
      return -1;
    };
    const int x = any([&](int v) { return is_usable(v) && at_dim(v) >= 0 && at(v).rank() < 6; });
    return x >= 0 && add({verb::split_dim, {x}, {}, {at_dim(x)}}, about(x));
  }

  /// Any tensor of one dim or more, and one of its dims.
  std::pair<int, int> with_dim(bool real = false) {
    const int x = any([&](int v) { return is_usable(v) && at(v).rank() > 0 && (!real || is_real(v)); });
    return {x, x < 0 ? 0 : below(at(x).rank())};
  }
  bool slice() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    const int n = int(extent(x, d)), start = below(n + 1), stop = start + below(n - start + 1);
    if (stop == start && below(4)) return false;
    return add({verb::slice, {x}, {}, {d, start, stop, 1 + below(3)}}, about(x));
  }
  bool pad() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    facts f = about(x);
    const int fill = type(x) == gs::dtype::i32 ? 0 : below(9) - 4;
    f.top = std::max(f.top, std::abs(fill) / 4.0);
    f.bits = std::max(f.bits, 2);
    const int least = -std::min(2, int(extent(x, d)));
    return add({verb::pad, {x}, {}, {d, least + below(5), least + below(5), below(4) ? 0 : 1 + below(2), fill}}, f);
  }
  bool reverse() {
    const auto [x, d] = with_dim();
    return x >= 0 && add({verb::reverse, {x}, {}, {d}}, about(x));
  }
  bool roll() {
    const auto [x, d] = with_dim();
    return x >= 0 && add({verb::roll, {x}, {}, {d, below(15) - 7}}, about(x));
  }
  bool concat() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    std::vector<int> parts{x};
    facts f = about(x);
    for (int more = 1 + below(3); more > 0; --more) {
      const int y = any([&, dim = d, first = x](int v) {
        if (!is_usable(v) || type(v) != type(first) || at(v).rank() != at(first).rank()) return false;
        for (int k = 0; k < at(v).rank(); ++k)
          if (k != dim && at(v).get().dims[k] != at(first).get().dims[k]) return false;
        return true;
      });
      parts.push_back(y);
      f = f.either(about(y));
    }
    shuffle(parts);
    return add({verb::concat, parts, {}, {d}}, f);
  }
  bool cumsum() {
    const auto [x, d] = with_dim(true);
    return x >= 0 && add({verb::cumsum, {x}, {}, {d, below(2), below(2)}}, about(x).summed(double(extent(x, d))));
  }
  bool sort() {
    const int x = any([&](int v) { return is_exact(v) && at(v).rank() > 0; });
    if (x < 0) return false;
    const int d = below(at(x).rank()), ids = below(3) == 0;
    return add({verb::sort, {x}, {}, {d, below(2), ids}}, ids ? facts::ids(extent(x, d)) : about(x));
  }
  bool top_k() {
    const int x = any([&](int v) { return is_exact(v) && at(v).rank() > 0; });
    if (x < 0) return false;
    const int d = below(at(x).rank()), n = int(extent(x, d)), ids = below(3) == 0;
    return n > 0 && add({verb::top_k, {x}, {}, {1 + below(n), d, below(2), ids}}, ids ? facts::ids(n) : about(x));
  }

  int ids_below(std::int64_t n) {
    const int known = any([&](int v) { return is_ids(v, n) && at(v).rank() < 3; });
    return known >= 0 && below(2) ? known : new_ids(letters(2), n, 0);
  }
  int gathered(int x, int d, int ids) {
    return at(x).rank() - 1 + at(ids).rank() <= 5 && add({verb::gather, {x, ids}, {}, {d}}, about(x)) ? newest() : -1;
  }
  bool gather() {
    const auto [x, d] = with_dim(true);
    if (x < 0 || extent(x, d) == 0) return false;
    const int ids = ids_below(extent(x, d));
    return ids >= 0 && gathered(x, d, ids) >= 0;
  }
  bool scatter() {
    const auto [x, d] = with_dim(true);
    if (x < 0 || extent(x, d) == 0) return false;
    const int ids = ids_below(extent(x, d));
    if (ids < 0) return false;
    const int y = any([&, first = x](int v) { return is_real(v) && type(v) == type(first) && at(v).get().dims == at(first).get().dims; });
    const int updates = gathered(y, d, ids);
    if (updates < 0) return false;
    return add({verb::scatter_add, {x, ids, updates}, {}, {d}}, about(x).plus(about(updates).summed(double(size(ids)))));
  }
  bool iota() {
    const std::string text = letters(3);
    if (text.empty()) return false;
    const int along = below(int(text.size()));
    return add({verb::iota, {}, text, {along}}, facts::ids(r_.on.dims.find(text[std::size_t(along)])));
  }

  std::vector<int> random_window() {
    return {1 + (below(2) ? 0 : below(3)), below(4) - 1, below(4) - 1, 1 + (below(3) == 0), 1 + (below(3) == 0)};
  }
  bool conv() {
    const int x = any([&](int v) { return is_f64(v) && at(v).rank() > 0 && at(v).rank() < 5; });
    if (x < 0) return false;
    const int rank = at(x).rank(), first = below(rank), second = below(3) ? first : below(rank);
    std::string text, output;
    std::vector<std::pair<char, char>> kernel;  // letter of the equation, dim
    std::vector<int> how;
    double summed = 1;
    for (int d = 0; d < rank; ++d) {
      const char letter = char('P' + d);
      const gs::dim& dim = b_.program.dims[std::size_t(at(x).get().dims[d])];
      text += letter;
      if (d == first || d == second) {
        const char taps = below(2) ? 'K' : 'L';
        kernel.emplace_back(char(letter - 'A' + 'a'), taps);
        output += letter;
        summed *= double(r_.on.dims.find(taps));
        for (const int n : random_window()) how.push_back(n);
        continue;
      }
      if (dim.what == gs::dim::kind::bound && below(2)) kernel.emplace_back(letter, dim.letter);
      if (below(2)) output += letter;
      else summed *= double(extent(x, d));
    }
    if (output.size() < 5 && below(2)) {
      const char more = letters(1, 1)[0];
      kernel.emplace_back('Z', more);
      if (below(5)) output += 'Z';
      else summed *= double(r_.on.dims.find(more));
    }
    if (kernel.size() > 4) return false;
    shuffle(kernel);
    shuffle(output);
    std::string kernel_letters, kernel_dims;
    for (const auto& [letter, dim] : kernel) {
      kernel_letters += letter;
      kernel_dims += dim;
    }
    const int w = new_input(kernel_dims, gs::dtype::f64);
    return w >= 0 && add({verb::conv, {x, w}, text + "," + kernel_letters + "->" + output, how}, about(x).times(about(w)).summed(summed));
  }
  bool pool() {
    const std::array verbs{verb::sum_pool, verb::mean_pool, verb::max_pool, verb::min_pool};
    const verb what = verbs[std::size_t(below(4))];
    const bool order = what == verb::max_pool || what == verb::min_pool;
    const int x = any([&](int v) { return order ? is_exact(v) && at(v).rank() > 0 : is_real(v) && at(v).rank() > 0; });
    if (x < 0) return false;
    facts f = about(x);
    double count = 1;
    std::vector<int> n;
    bool reads = true;
    const int first = below(at(x).rank()), second = below(3) ? first : below(at(x).rank());
    for (int d = 0; d < at(x).rank(); ++d) {
      if (d != first && d != second) continue;
      const int taps = 1 + below(3);
      const std::vector<int> w = random_window();
      n.insert(n.end(), {d, taps});
      n.insert(n.end(), w.begin(), w.end());
      count *= taps;
      reads = reads && every_window_reads(window_at(w, 0), taps, extent(x, d));
    }
    if (order) return add({what, {x}, {}, n}, f.ending(!reads));
    f = f.summed(count);
    if (what == verb::mean_pool) f = {f.top, false, 0};
    return add({what, {x}, {}, n}, f);
  }

  bool dropout() {
    const int rate = below(2) ? 5 : 3, x = any([&](int v) { return is_f64(v); });
    facts f = about(x).scaled(1);
    f.exact = f.exact && rate == 5;
    return add({verb::dropout, {x}, {}, {rate}}, f);
  }
  bool cast() {
    int x = any([&](int v) { return is_usable(v); });
    const facts f = about(x);
    if (type(x) == gs::dtype::i32) return f.below >= 0 && add({verb::cast, {x}, {}, {int(gs::dtype::f64)}}, {double(f.below), true, 0});
    if (type(x) == gs::dtype::f32) return add({verb::cast, {x}, {}, {int(gs::dtype::f64)}}, f);
    // No gradient flows through float, which would round it.
    if (!f.exact || !add({verb::stop_gradient, {x}}, f)) return false;
    x = newest();
    if (below(4) == 0) return add({verb::cast, {x}, {}, {int(gs::dtype::i32)}}, facts::ids(-1));
    return add({verb::cast, {x}, {}, {int(gs::dtype::f32)}}, f);
  }
  bool annotate() {
    const int x = any([&](int v) { return is_usable(v); });
    return add({verb::annotate, {x}, {}, {}, layout(at(x).rank(), false)}, about(x));
  }
};

}  // namespace random_program::detail
