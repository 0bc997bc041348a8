// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_draft.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace random_program::detail {

/// Steps that compute. All return whether they found operands.
class arithmetic : public draft {
 public:
  using draft::draft;

 protected:
  bool einsum() {
    const int count = 1 + (below(4) > 0);
    std::vector<int> operands;
    std::vector<std::pair<int, std::int64_t>> dims_of;  // by letter: the dim, its extent
    std::string text;
    for (int i = 0; i < count; ++i) {
      const int x = any([&](int v) { return is_real(v) && (operands.empty() || type(v) == type(operands[0])); });
      if (x < 0) return false;
      operands.push_back(x);
      std::vector<int> mine;
      text += i ? "," : "";
      for (int d = 0; d < rank(x); ++d) {
        std::vector<int> fits;
        for (int k = 0; k < int(dims_of.size()); ++k)
          if (dims_of[std::size_t(k)].first == dims(x)[d] && (below(4) == 0 || std::find(mine.begin(), mine.end(), k) == mine.end()))
            fits.push_back(k);
        int factor = int(dims_of.size());
        if (!fits.empty() && below(5) > 0) factor = fits[std::size_t(below(int(fits.size())))];
        else dims_of.emplace_back(dims(x)[d], extent(x, d));
        mine.push_back(factor);
        text += char('a' + factor);
      }
    }
    if (dims_of.size() > 8) return false;
    std::vector<int> order(dims_of.size());
    std::iota(order.begin(), order.end(), 0);
    shuffle(order);
    text += "->";
    std::int64_t loops = 1;
    int kept = 0;
    for (const int k : order) {
      loops *= std::max<std::int64_t>(dims_of[std::size_t(k)].second, 1);
      if (below(3) > 0 && kept < 5) {
        text += char('a' + k);
        ++kept;
      }
    }
    return loops <= 20000 && add({verb::einsum, operands, text});
  }

  /// "abc->ca": drops some of the letters, or exactly one. Sometimes two dims of one extent share a letter.
  std::string equation(int x, bool one) {
    std::string from, kept;
    for (int d = 0; d < rank(x); ++d) from += char('a' + d);
    for (int d = 1; d < rank(x); ++d)
      if (dims(x)[d] == dims(x)[d - 1] && below(3) == 0) from[std::size_t(d)] = from[std::size_t(d) - 1];
    for (const char c : from)
      if (kept.find(c) == std::string::npos) kept += c;
    if (below(3) == 0) shuffle(kept);
    std::string to;
    const std::size_t without = kept.empty() ? 0 : std::size_t(below(int(kept.size())));
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (one ? i != without : below(2)) to += kept[i];
    return from + "->" + to;
  }
  bool over() {
    const verb what = below(2) ? verb::mean : verb::logsumexp;
    const int x = any([&](int v) { return is_f64(v); });
    return add({what, {x}, equation(x, false)});
  }
  bool extremum() {
    const int what = 1 + below(3);
    const int x = any([&](int v) { return is_exact(v); });
    return add({verb::reduce, {x}, equation(x, false), {what}});
  }
  bool argmax() {
    const int x = any([&](int v) { return is_exact(v) && rank(v) > 0; });
    return x >= 0 && add({verb::argmax, {x}, equation(x, true), {below(2)}});
  }

  bool map() {
    const int k = below(int(functions.size()));
    const function& how = functions[std::size_t(k)];
    const int x = any([&](int v) { return how.smooth ? is_f64(v) : is_exact(v); });
    if (x < 0) return false;
    std::vector<int> operands{x};
    for (int i = 1; i < how.operands; ++i) operands.push_back(any([&](int v) { return broadcasts(v, x) && (how.smooth || of(v).exact); }));
    shuffle(operands);
    return add({verb::map, operands, {}, {k}});
  }
  bool linear() {
    const int x = any([&](int v) { return is_real(v); }), y = any([&](int v) { return broadcasts(v, x); });
    std::vector<int> operands{x, y};
    shuffle(operands);
    return add({std::array{verb::subtract, verb::add, verb::multiply}[std::size_t(below(3))], operands});
  }
  bool relu() {
    const int x = any([&](int v) { return is_exact(v); });
    return add({verb::relu, {x}});
  }
  bool larger_or_smaller() {
    const int x = any([&](int v) { return is_exact(v); }), y = any([&](int v) { return broadcasts(v, x) && of(v).exact; });
    std::vector<int> operands{x, y};
    shuffle(operands);
    return add({below(2) ? verb::maximum : verb::minimum, operands});
  }
  /// A tensor broadcast along its own dims and some of those of one or two others, in any order.
  bool broadcast() {
    const int x = any([&](int v) { return is_real(v) && rank(v) < 4; });
    if (x < 0) return false;
    std::vector<int> operands{x}, dim_of;
    std::string text, kept, lent;
    for (int d = 0; d < rank(x); ++d) {
      kept += char('a' + d);
      dim_of.push_back(dims(x)[d]);
    }
    text = kept;
    for (int more = 1 + below(2); more > 0; --more) {
      const int like = any([&](int v) { return is_usable(v) && rank(v) > 0; });
      if (like < 0) return false;
      operands.push_back(like);
      text += ',';
      for (int d = 0; d < rank(like); ++d) {
        const auto known = std::find(dim_of.begin(), dim_of.end(), dims(like)[d]);
        const bool same = known != dim_of.end() && below(2);
        const char letter = same ? char('a' + (known - dim_of.begin())) : char('a' + int(dim_of.size()));
        if (!same) {
          dim_of.push_back(dims(like)[d]);
          lent += letter;
        }
        text += letter;
      }
    }
    if (dim_of.size() > 8) return false;
    for (const char c : lent)
      if (kept.size() < 5 && below(3) > 0) kept += c;
    shuffle(kept);
    return add({verb::broadcast, operands, text + "->" + kept});
  }
  /// Two tensors whose dims do not match. The library must refuse them.
  bool mismatched() {
    const int x = any([&](int v) { return is_real(v); });
    const int y = any([&](int v) { return is_real(v) && type(v) == type(x) && !broadcasts(v, x) && !broadcasts(x, v); });
    if (y < 0) return false;
    const step s{verb::add, {x, y}};
    if (!refuses(s)) throw std::logic_error("dims that do not match were taken: " + code_of(s));
    return false;
  }
  bool scale() {
    const int x = any([&](int v) { return is_real(v); });
    return add({verb::scale, {x}, {}, {below(3) - 1}});
  }

  bool loop() {
    const int x = any([&](int v) { return is_f64(v); }), y = any([&](int v) { return broadcasts(v, x); });
    int count = any([&](int v) { return is_exact(v) && rank(v) == 0 && of(v).top <= 4 && !of(v).special(); });
    if (count < 0 || below(2)) count = new_input("", gs::dtype::f64);
    return count >= 0 && add({verb::loop, {x, y, count}, {}, {below(loop_bodies)}, layout(rank(x), false)});
  }

  bool softmax() {
    const int x = any([&](int v) { return is_f64(v) && rank(v) > 0; });
    return x >= 0 && add({verb::softmax, {x}});
  }
  /// A tensor of one dim, the last dim of another tensor.
  int row_of(int x) {
    const int known = any([&](int v) { return is_f64(v) && rank(v) == 1 && dims(v)[0] == dims(x)[rank(x) - 1]; });
    if (known >= 0 && below(3)) return known;
    const gs::dim& last = dim(x, rank(x) - 1);
    if (last.what == gs::dim::kind::bound) return new_input(std::string(1, last.letter), gs::dtype::f64);
    std::string text;
    for (int d = 0; d < rank(x); ++d) text += char('a' + d);
    return add({verb::einsum, {x}, text + "->" + text.back()}) ? newest() : -1;
  }
  bool layer_norm() {
    const int x = any([&](int v) { return is_f64(v) && rank(v) > 0; });
    if (x < 0) return false;
    const int gamma = row_of(x), beta = row_of(x);
    if (gamma < 0 || beta < 0) return false;
    return add({verb::layer_norm, {x, gamma, beta}});
  }
  bool cross_entropy() {
    const int x = any([&](int v) { return is_f64(v) && rank(v) > 0 && extent(v, rank(v) - 1) > 0; });
    if (x < 0) return false;
    gs::dim_list rows = dims(x);
    rows.pop_back();
    const std::int64_t classes = extent(x, rank(x) - 1);
    int labels = any([&](int v) { return is_labels(v, classes) && dims(v) == rows; });
    if (labels < 0 && letters_of(rows, nullptr)) {
      std::string text;
      letters_of(rows, &text);
      labels = new_ids(text, classes, -1);
    }
    if (labels < 0 && of(x).exact) {
      std::string from;
      for (int d = 0; d < rank(x); ++d) from += char('a' + d);
      if (add({verb::argmax, {x}, from + "->" + from.substr(0, from.size() - 1), {0}})) labels = newest();
    }
    return labels >= 0 && add({verb::cross_entropy, {x, labels}, {}, {below(2)}});
  }
};

}  // namespace random_program::detail
