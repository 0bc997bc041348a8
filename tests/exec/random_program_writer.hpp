// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_draft.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

// Recipes at random.
namespace random_program {

namespace detail {

class writer : draft {
 public:
  using draft::draft;

  recipe write() {
    r_.on.mesh_known = below(3) == 0;
    r_.on.dims_known = below(2) == 0;
    r_.on.keep_pending = below(4) == 0;
    for (int i = 0; i < 3; ++i) new_input(letters(4), gs::dtype::f64);
    const int wanted = 3 + below(28);
    for (int made = 0; made < wanted;) made += operation();
    finish();
    return r_;
  }

 private:
  using trial = bool (writer::*)();

  bool operation() {
    static constexpr std::array trials{
        &writer::einsum,   &writer::einsum,  &writer::einsum,    &writer::einsum,     &writer::annotate, &writer::annotate, &writer::annotate,
        &writer::map,      &writer::map,     &writer::linear,    &writer::linear,     &writer::scale,    &writer::over,     &writer::over,
        &writer::extremum, &writer::softmax, &writer::softmax,   &writer::layer_norm, &writer::merge,    &writer::split,    &writer::split,
        &writer::slice,    &writer::slice,   &writer::pad,       &writer::pad,        &writer::reverse,  &writer::roll,     &writer::concat,
        &writer::cumsum,   &writer::sort,    &writer::top_k,     &writer::gather,     &writer::scatter,  &writer::iota,     &writer::conv,
        &writer::conv,     &writer::pool,    &writer::dropout,   &writer::cast,       &writer::argmax,   &writer::cross_entropy};
    return (this->*trials[std::size_t(below(int(trials.size())))])();
  }

  bool einsum() {
    const int count = 1 + (below(4) > 0);
    std::vector<int> operands, dims;
    std::string text;
    facts f{1, true, 0};
    for (int i = 0; i < count; ++i) {
      const int x = any([&](int v) { return is_real(v) && (operands.empty() || type(v) == type(operands[0])); });
      if (x < 0) return false;
      operands.push_back(x);
      f = f.times(about(x));
      std::vector<int> mine;
      text += i ? "," : "";
      for (int d = 0; d < at(x).rank(); ++d) {
        std::vector<int> fits;
        for (int k = 0; k < int(dims.size()); ++k)
          if (dims[std::size_t(k)] == at(x).get().dims[d] && (below(4) == 0 || std::find(mine.begin(), mine.end(), k) == mine.end())) fits.push_back(k);
        int factor = int(dims.size());
        if (!fits.empty() && below(5) > 0) factor = fits[std::size_t(below(int(fits.size())))];
        else dims.push_back(at(x).get().dims[d]);
        mine.push_back(factor);
        text += char('a' + factor);
      }
    }
    if (dims.size() > 8) return false;
    std::vector<int> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    shuffle(order);
    text += "->";
    std::int64_t loops = 1;
    double summed = 1;
    int rank = 0;
    for (const int k : order) {
      const std::int64_t extent = extent_of_dim(dims[std::size_t(k)]);
      loops *= std::max<std::int64_t>(extent, 1);
      if (below(3) > 0 && rank < 5) {
        text += char('a' + k);
        ++rank;
      } else {
        summed *= double(extent);
      }
    }
    return loops <= 20000 && add({verb::einsum, operands, text}, f.summed(summed));
  }

  /// "abc->ca", and how many elements are reduced to one.
  std::string equation(int x, bool one, double& count) {
    std::vector<int> order(std::size_t(at(x).rank()));
    std::iota(order.begin(), order.end(), 0);
    std::string from, to;
    for (const int d : order) from += char('a' + d);
    const int left = order.empty() ? -1 : below(int(order.size()));
    if (below(3) == 0) shuffle(order);
    count = 1;
    for (const int d : order) {
      if (one ? d == left : below(2)) count *= double(extent(x, d));
      else to += char('a' + d);
    }
    return from + "->" + to;
  }
  bool over() {
    const verb what = below(2) ? verb::mean : verb::logsumexp;
    const int x = any([&](int v) { return is_f64(v); });
    double count = 1;
    const std::string text = equation(x, false, count);
    return add({what, {x}, text}, facts{about(x).top + 3, false, 0}.ending(count == 0));
  }
  bool extremum() {
    const int what = 1 + below(3);
    const int x = any([&](int v) { return is_exact(v); });
    double count = 1;
    const std::string text = equation(x, false, count);
    facts f = about(x);
    if (gs::reduction(what) == gs::reduction::prod) {
      if (count > 12) return false;
      f.top = std::pow(std::max(1.0, f.top), count);
      f.bits *= int(count);
    }
    return add({verb::reduce, {x}, text, {what}}, f.ending(count == 0));
  }
  bool argmax() {
    const int x = any([&](int v) { return is_exact(v) && at(v).rank() > 0; });
    if (x < 0) return false;
    double count = 1;
    const std::string text = equation(x, true, count);
    return add({verb::argmax, {x}, text, {below(2)}}, facts::ids(std::int64_t(count)).ending(count == 0));
  }

  bool map() {
    const int k = below(int(functions.size()));
    const function& how = functions[std::size_t(k)];
    const int x = any([&](int v) { return how.smooth ? is_f64(v) : is_exact(v); });
    std::vector<int> operands{x};
    double top = about(x).top;
    int bits = about(x).bits;
    for (int i = 1; i < how.operands; ++i) {
      const int y = any([&](int v) { return broadcasts(v, x) && (how.smooth || about(v).exact); });
      operands.push_back(y);
      top = std::max(top, about(y).top);
      bits = std::max(bits, about(y).bits);
    }
    shuffle(operands);
    const std::array<double, 10> tops{1, top * top, 1, top, 2 * top, top, top, top * top + top, top, 2 * top * top + top};
    return add({verb::map, operands, {}, {k}}, {tops[std::size_t(k)], !how.smooth, bits});
  }
  bool linear() {
    const int x = any([&](int v) { return is_real(v); }), y = any([&](int v) { return broadcasts(v, x); });
    std::vector<int> operands{x, y};
    shuffle(operands);
    const facts &f = about(x), &g = about(y);
    const int what = below(3);
    if (what == 2) return add({verb::multiply, operands}, f.times(g));
    return add({what ? verb::add : verb::subtract, operands}, f.plus(g));
  }
  bool scale() {
    const int x = any([&](int v) { return is_real(v); }), power = below(3) - 1;
    return add({verb::scale, {x}, {}, {power}}, about(x).scaled(power));
  }

  bool softmax() {
    const int x = any([&](int v) { return is_f64(v) && at(v).rank() > 0; });
    return x >= 0 && add({verb::softmax, {x}}, {1, false, 0});
  }
  /// The tensor of one dim that is what another is along its last one.
  int row_of(int x) {
    const int known = any([&](int v) { return is_f64(v) && at(v).rank() == 1 && at(v).get().dims[0] == at(x).get().dims[at(x).rank() - 1]; });
    if (known >= 0 && below(3)) return known;
    const gs::dim& last = b_.program.dims[std::size_t(at(x).get().dims[at(x).rank() - 1])];
    if (last.what == gs::dim::kind::bound) return new_input(std::string(1, last.letter), gs::dtype::f64);
    std::string text;
    double count = 1;
    for (int d = 0; d < at(x).rank(); ++d) {
      text += char('a' + d);
      if (d + 1 < at(x).rank()) count *= double(extent(x, d));
    }
    return add({verb::einsum, {x}, text + "->" + text.back()}, about(x).summed(count)) ? newest() : -1;
  }
  bool layer_norm() {
    const int x = any([&](int v) { return is_f64(v) && at(v).rank() > 0; });
    if (x < 0) return false;
    const int gamma = row_of(x), beta = row_of(x);
    if (gamma < 0 || beta < 0) return false;
    return add({verb::layer_norm, {x, gamma, beta}}, {about(gamma).top * std::sqrt(double(extent(x, at(x).rank() - 1))) + about(beta).top, false, 0});
  }
  bool cross_entropy() {
    const int x = any([&](int v) { return is_f64(v) && at(v).rank() > 0 && extent(v, at(v).rank() - 1) > 0; });
    if (x < 0) return false;
    gs::dim_list rows = at(x).get().dims;
    rows.pop_back();
    const std::int64_t classes = extent(x, at(x).rank() - 1);
    int labels = any([&](int v) { return is_ids(v, classes) && at(v).get().dims == rows; });
    if (labels < 0 && letters_of(rows, nullptr)) {
      std::string text;
      letters_of(rows, &text);
      labels = new_ids(text, classes, -1);
    }
    if (labels < 0 && about(x).exact) {
      double count = 0;
      std::string from;
      for (int d = 0; d < at(x).rank(); ++d) from += char('a' + d);
      count = double(classes);
      if (add({verb::argmax, {x}, from + "->" + from.substr(0, from.size() - 1), {0}}, facts::ids(std::int64_t(count)))) labels = newest();
    }
    return labels >= 0 && add({verb::cross_entropy, {x, labels}, {}, {below(2)}}, {2 * about(x).top + 3, false, 0});
  }

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

}  // namespace detail

/// The program of a seed.
inline recipe written(std::uint32_t seed) { return detail::writer(seed).write(); }

}  // namespace random_program
