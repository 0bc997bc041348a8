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
    const int x = any([&](int v) { return is_usable(v) && rank(v) > 1; });
    return x >= 0 && add({verb::merge_dims, {x}, {}, {below(rank(x) - 1)}});
  }
  bool split() {
    const auto merged = [&](int v, int d) { return dim(v, d).what == gs::dim::kind::product; };
    const auto at_dim = [&](int v) {
      for (int d = 0; d < rank(v); ++d)
        if (merged(v, d)) return d;
      return -1;
    };
    const int x = any([&](int v) { return is_usable(v) && at_dim(v) >= 0 && rank(v) < 6; });
    return x >= 0 && add({verb::split_dim, {x}, {}, {at_dim(x)}});
  }

  /// A tensor with at least one dim, and one of its dims.
  std::pair<int, int> with_dim(bool real = false) {
    const int x = any([&](int v) { return is_usable(v) && rank(v) > 0 && (!real || is_real(v)); });
    return {x, x < 0 ? 0 : below(rank(x))};
  }
  bool slice() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    const int n = int(extent(x, d)), start = below(n + 1), stop = start + below(n - start + 1);
    if (stop == start && below(4)) return false;
    return add({verb::slice, {x}, {}, {d, start, stop, 1 + below(3)}});
  }
  bool pad() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    const int fill = type(x) == gs::dtype::i32 ? 0 : below(9) - 4;
    const int least = -std::min(2, int(extent(x, d)));
    return add({verb::pad, {x}, {}, {d, least + below(5), least + below(5), below(4) ? 0 : 1 + below(2), fill}});
  }
  bool reverse() {
    const auto [x, d] = with_dim();
    return x >= 0 && add({verb::reverse, {x}, {}, {d}});
  }
  bool roll() {
    const auto [x, d] = with_dim();
    return x >= 0 && add({verb::roll, {x}, {}, {d, below(15) - 7}});
  }
  bool concat() {
    const auto [x, d] = with_dim();
    if (x < 0) return false;
    std::vector<int> parts{x};
    for (int more = 1 + below(3); more > 0; --more) {
      const int y = any([&, dim = d, first = x](int v) {
        if (!is_usable(v) || type(v) != type(first) || rank(v) != rank(first)) return false;
        for (int k = 0; k < rank(v); ++k)
          if (k != dim && dims(v)[k] != dims(first)[k]) return false;
        return true;
      });
      parts.push_back(y);
    }
    shuffle(parts);
    return add({verb::concat, parts, {}, {d}});
  }
  bool cumsum() {
    const auto [x, d] = with_dim(true);
    return x >= 0 && add({verb::cumsum, {x}, {}, {d, below(2), below(2)}});
  }
  bool sort() {
    const int x = any([&](int v) { return is_exact(v) && rank(v) > 0; });
    if (x < 0) return false;
    const int d = below(rank(x)), ids = below(3) == 0;
    return add({verb::sort, {x}, {}, {d, below(2), ids}});
  }
  bool top_k() {
    const int x = any([&](int v) { return is_exact(v) && rank(v) > 0; });
    if (x < 0) return false;
    const int d = below(rank(x)), n = int(extent(x, d)), ids = below(3) == 0;
    return n > 0 && add({verb::top_k, {x}, {}, {1 + below(n), d, below(2), ids}});
  }

  /// Ids below n, in a tensor that begins with the first `batch` dims of x.
  int ids_below(std::int64_t n, int x, int batch) {
    const auto fits = [&](int v) {
      for (int d = 0; d < batch; ++d)
        if (rank(v) <= d || dims(v)[d] != dims(x)[d]) return false;
      return is_ids(v, n) && rank(v) < 3 + batch;
    };
    const int known = any(fits);
    if (known >= 0 && below(2)) return known;
    gs::dim_list shared;
    for (int d = 0; d < batch; ++d) shared.push_back(dims(x)[d]);
    std::string text;
    return letters_of(shared, &text) ? new_ids(text + letters(2), n, 0) : -1;
  }
  int gathered(int x, int d, int ids, int batch) {
    return rank(x) - 1 + rank(ids) - batch <= 5 && add({verb::gather, {x, ids}, {}, {d, batch}}) ? newest() : -1;
  }
  bool gather() {
    const auto [x, d] = with_dim(true);
    if (x < 0 || extent(x, d) == 0) return false;
    const int batch = below(d + 1), ids = ids_below(extent(x, d), x, batch);
    return ids >= 0 && gathered(x, d, ids, batch) >= 0;
  }
  bool scatter() {
    const auto [x, d] = with_dim(true);
    if (x < 0 || extent(x, d) == 0) return false;
    const int batch = below(d + 1), ids = ids_below(extent(x, d), x, batch);
    if (ids < 0) return false;
    const int y = any([&, first = x](int v) { return is_real(v) && type(v) == type(first) && dims(v) == dims(first); });
    const int updates = gathered(y, d, ids, batch);
    if (updates < 0) return false;
    return add({verb::scatter_add, {x, ids, updates}, {}, {d, batch}});
  }

  /// A scalar, the start of a slice. If it is too large, or negative, the verbs clamp it.
  int start_below(std::int64_t n) {
    const int known = any([&](int v) { return is_usable(v) && about(v).is_ids() && rank(v) == 0; });
    return known >= 0 && below(3) ? known : new_ids("", n + 2, -below(2));
  }
  bool dynamic_slice() {
    const auto [x, d] = with_dim();
    if (x < 0 || extent(x, d) == 0) return false;
    const int n = int(extent(x, d)), start = start_below(n);
    return start >= 0 && add({verb::dynamic_slice, {x, start}, {}, {d, 1 + below(n)}});
  }
  bool dynamic_update() {
    const auto [x, d] = with_dim(true);
    if (x < 0 || extent(x, d) == 0) return false;
    const int n = int(extent(x, d)), start = start_below(n);
    const auto fits = [&, to = x, along = d](int v) {
      if (!is_real(v) || type(v) != type(to) || rank(v) != rank(to) || extent(v, along) < 1 || extent(v, along) > n) return false;
      for (int k = 0; k < rank(v); ++k)
        if (k != along && dims(v)[k] != dims(to)[k]) return false;
      return true;
    };
    int update = any([&, same = x](int v) { return v != same && fits(v); });
    if (update < 0 && add({verb::slice, {x}, {}, {d, 0, 1 + below(n), 1}})) update = newest();
    return start >= 0 && update >= 0 && add({verb::dynamic_update, {x, update, start}, {}, {d}});
  }
  bool iota() {
    const std::string text = letters(3);
    if (text.empty()) return false;
    return add({verb::iota, {}, text, {below(int(text.size()))}});
  }

  std::vector<int> random_window() {
    return {1 + (below(2) ? 0 : below(3)), below(4) - 1, below(4) - 1, 1 + (below(3) == 0), 1 + (below(3) == 0)};
  }
  bool conv() {
    const int x = any([&](int v) { return is_f64(v) && rank(v) > 0 && rank(v) < 5; });
    if (x < 0) return false;
    const int first = below(rank(x)), second = below(3) ? first : below(rank(x));
    std::string text, output;
    std::vector<std::pair<char, char>> kernel;  // letter of the equation, dim
    std::vector<int> how;
    for (int d = 0; d < rank(x); ++d) {
      const char letter = char('P' + d);
      text += letter;
      if (d == first || d == second) {
        const char taps = below(2) ? 'K' : 'L';
        kernel.emplace_back(char(letter - 'A' + 'a'), taps);
        output += letter;
        for (const int n : random_window()) how.push_back(n);
        continue;
      }
      if (dim(x, d).what == gs::dim::kind::bound && below(2)) kernel.emplace_back(letter, dim(x, d).letter);
      if (below(2)) output += letter;
    }
    if (output.size() < 5 && below(2)) {
      const char more = letters(1, 1)[0];
      kernel.emplace_back('Z', more);
      if (below(5)) output += 'Z';
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
    return w >= 0 && add({verb::conv, {x, w}, text + "," + kernel_letters + "->" + output, how});
  }
  bool pool() {
    const std::array verbs{verb::sum_pool, verb::mean_pool, verb::max_pool, verb::min_pool};
    const verb what = verbs[std::size_t(below(4))];
    const bool order = what == verb::max_pool || what == verb::min_pool;
    const int x = any([&](int v) { return order ? is_exact(v) && rank(v) > 0 : is_real(v) && rank(v) > 0; });
    if (x < 0) return false;
    std::vector<int> n;
    const int first = below(rank(x)), second = below(3) ? first : below(rank(x));
    for (int d = 0; d < rank(x); ++d) {
      if (d != first && d != second) continue;
      const std::vector<int> w = random_window();
      n.insert(n.end(), {d, 1 + below(3)});
      n.insert(n.end(), w.begin(), w.end());
    }
    return add({what, {x}, {}, n});
  }

  bool dropout() {
    const int x = any([&](int v) { return is_f64(v); });
    return add({verb::dropout, {x}, {}, {below(2) ? 5 : 3}});
  }
  bool cast() {
    const int x = any([&](int v) { return is_usable(v); });
    const auto to = [](int v, gs::dtype type) { return step{verb::cast, {v}, {}, {int(type)}}; };
    if (type(x) != gs::dtype::f64) return add(to(x, gs::dtype::f64));
    // No gradient flows through float, which would round it. Half precision is used only for data movement.
    if (!of(x).exact || !add({verb::stop_gradient, {x}})) return false;
    return add(
        to(newest(), std::array{gs::dtype::i32, gs::dtype::f32, gs::dtype::f32, gs::dtype::f16, gs::dtype::bf16}[std::size_t(below(5))]));
  }
  bool check_finite() {
    const int x = any([&](int v) { return is_f64(v) && !of(v).special(); });
    return x >= 0 && add({verb::check_finite, {x}});
  }
  bool annotate() {
    const int x = any([&](int v) { return is_usable(v); });
    return add({verb::annotate, {x}, {}, {}, layout(rank(x), false)});
  }
};

}  // namespace random_program::detail
