// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_draft.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace random_program::detail {

/// Steps that compute. All say whether they found operands.
class arithmetic : public draft {
 public:
  using draft::draft;

 protected:
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

  bool loop() {
    const int x = any([&](int v) { return is_f64(v); }), y = any([&](int v) { return broadcasts(v, x); });
    int count = any([&](int v) { return is_exact(v) && at(v).rank() == 0 && about(v).top <= 4; });
    if (count < 0 || below(2)) count = new_input("", gs::dtype::f64);
    return count >= 0 && add({verb::loop, {x, y, count}, {}, {below(loop_bodies)}, layout(at(x).rank(), false)},
                             {std::max({about(x).top, about(y).top, 1.0}), false, 0});
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
};

}  // namespace random_program::detail
