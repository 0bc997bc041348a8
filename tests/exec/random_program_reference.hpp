// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_analysis.hpp"
#include "random_program_layers_reference.hpp"
#include "random_program_tensor.hpp"

#include <gshard/core/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Random programs by the definitions of their verbs: whole tensors, one loop over indices each. It uses only the library's random numbers.
// The results of one device are compared with it; with dual numbers, the gradients as well.
namespace random_program {

namespace reference {

/// Evaluates the program's steps.
template <class T>
class interpreter {
 public:
  interpreter(const recipe& r, const analysis& a) : r_(r), a_(a) {}

  const std::vector<tensor<T>>& run(std::vector<tensor<T>> inputs) {
    std::size_t next = 0;
    std::uint32_t keys = 0, loops = 0;
    for (std::size_t i = 0; i < r_.steps.size(); ++i) {
      const step& s = r_.steps[i];
      if (s.what == verb::input) values_.push_back(std::move(inputs[next++]));
      else if (s.what == verb::dropout) values_.push_back(dropout(s, values_[std::size_t(s.in[0])], keys));
      else if (s.what == verb::attention) values_.push_back(attention(s, a_.about(int(i)).extents, keys));
      else if (s.what == verb::scan) values_.push_back(scan(s, a_.about(int(i)).extents, loops + 1, keys));
      else values_.push_back(call(s, int(i)));
      keys += random_keys_of(s);
      loops += loops_of(s);
      if (a_.about(int(i)).type == gs::dtype::f32)
        for (T& v : values_.back().e) v = as_float(v);
    }
    return values_;
  }

 private:
  using list = std::vector<std::int64_t>;

  const recipe& r_;
  const analysis& a_;
  std::vector<tensor<T>> values_;

  static bool is_elementwise(verb v) {
    return v == verb::map || v == verb::maximum || v == verb::minimum || v == verb::add || v == verb::subtract || v == verb::multiply;
  }
  const tensor<T>& in(const step& s, std::size_t k) const { return values_[std::size_t(s.in[k])]; }
  std::vector<const tensor<T>*> operands(const step& s) const {
    std::vector<const tensor<T>*> all;
    for (std::size_t k = 0; k < s.in.size(); ++k) all.push_back(&in(s, k));
    return all;
  }

  tensor<T> call(const step& s, int id) const {
    const std::vector<int>& n = s.number;
    const list& extents = a_.about(id).extents;
    const gs::dim_list& dims = a_.dims(id);
    const auto x = [&](std::size_t k = 0) -> const tensor<T>& { return in(s, k); };
    std::vector<std::vector<int>> lines;
    if (is_elementwise(s.what))
      for (const int v : s.in) lines.push_back(matched(a_.dims(v), dims));
    const auto each = [&](auto f) {
      return made<T>(extents, [&](const index& at) { return f([&](std::size_t k) { return broadcast(x(k), lines[k], at); }); });
    };
    const auto grouped = [&](auto f) {
      tensor<T> y{extents, {}};
      for (const std::vector<T>& g : groups(s.text, x(), std::size_t(count_of(extents)))) y.e.push_back(f(g));
      return y;
    };
    const auto element_wise = [&](auto f) {
      tensor<T> y = x();
      for (T& v : y.e) v = f(v);
      return y;
    };
    const auto moved = [&](int dim, T fill, auto from) {
      return made<T>(extents, [&](index at) {
        std::int64_t& i = at[std::size_t(dim)];
        i = from(i);
        return i < 0 || i >= x().extent(std::size_t(dim)) ? fill : element(x(), at);
      });
    };
    switch (s.what) {
      case verb::einsum: return einsum(s.text, operands(s), extents);
      case verb::mean: {
        tensor<T> y = einsum<T>(s.text, {&x()}, extents);
        const double count = detail::summed_by(s.text, {a_.about(s.in[0])}).count;
        for (T& v : y.e) v = v * T(1 / count);
        return y;
      }
      case verb::logsumexp: return grouped([](const auto& g) { return logsumexp(g); });
      case verb::reduce:
        return grouped([&](const auto& g) {
          if (gs::reduction(n[0]) != gs::reduction::prod) return extremum(g, gs::reduction(n[0]) == gs::reduction::max);
          return std::accumulate(g.begin(), g.end(), T(1), std::multiplies<>());
        });
      case verb::argmax:
        return grouped([&](const auto& g) {
          const double best = value(extremum(g, n[0] == 0));
          std::size_t i = 0;
          while (i < g.size() && !(value(g[i]) == best || is_nan(value(g[i])))) ++i;
          return T(i < g.size() ? double(i) : double(std::numeric_limits<std::int32_t>::max()));
        });
      case verb::map:
        return each([&](auto operand) {
          std::vector<T> v;
          for (std::size_t k = 0; k < s.in.size(); ++k) v.push_back(operand(k));
          return functions[std::size_t(n[0])](v.data());
        });
      case verb::relu: return element_wise([](const T& v) { return is_nan(value(v)) || value(v) > 0 ? v : T(0); });
      case verb::maximum: return each([](auto operand) { return extremum<T>({operand(0), operand(1)}, true); });
      case verb::minimum: return each([](auto operand) { return extremum<T>({operand(0), operand(1)}, false); });
      case verb::broadcast: {
        const letters l(s.text);
        return made<T>(extents, [&](const index& at) {
          index from;
          for (const char c : l.operands[0]) from.push_back(at[l.output.find(c)]);
          return element(x(), from);
        });
      }
      case verb::add: return each([](auto operand) { return operand(0) + operand(1); });
      case verb::subtract: return each([](auto operand) { return operand(0) - operand(1); });
      case verb::multiply: return each([](auto operand) { return operand(0) * operand(1); });
      case verb::scale: return element_wise([&](const T& v) { return v * T(std::ldexp(1.0, n[0])); });
      case verb::stop_gradient: return element_wise([](const T& v) { return constant_of(v); });
      case verb::softmax:
        return along(x(), extents.size() - 1, extents, [](std::vector<T> row) {
          const T most = constant_of(extremum(row, true));
          T sum = T(0);
          for (T& v : row) sum = sum + (v = gs::exp(v - most));
          for (T& v : row) v = v / sum;
          return row;
        });
      case verb::layer_norm:
        return along(x(), extents.size() - 1, extents, [&](std::vector<T> row) {
          const T count = T(double(row.size()));
          const T mean = std::accumulate(row.begin(), row.end(), T(0)) / count;
          T variance = T(0);
          for (const T& v : row) variance = variance + (v - mean) * (v - mean) / count;
          for (std::size_t i = 0; i < row.size(); ++i) row[i] = (row[i] - mean) / gs::sqrt(variance + T(0.125)) * x(1).e[i] + x(2).e[i];
          return row;
        });
      case verb::cross_entropy: {
        const double smoothing = n[0] / 8.0;
        return made<T>(extents, [&](index at) {
          const double label = value(element(x(1), at));
          if (label < 0) return T(0);
          std::vector<T> row;
          at.push_back(0);
          for (std::int64_t& v = at.back(); v < x().extents.back(); ++v) row.push_back(element(x(), at));
          const T total = logsumexp(row);
          T cost = total - row[std::size_t(label)];
          if (smoothing > 0) {
            cost = cost * T(1 - smoothing);
            for (const T& v : row) cost = cost + (total - v) * T(smoothing / double(row.size()));
          }
          return cost;
        });
      }
      case verb::merge_dims:
      case verb::split_dim: return {extents, x().e};
      case verb::annotate:
      case verb::check_finite: return x();
      case verb::slice: return moved(n[0], T(0), [&](std::int64_t i) { return n[1] + n[3] * i; });
      case verb::pad:
        return moved(n[0], T(n[4] / 4.0), [&](std::int64_t i) {
          const std::int64_t p = i - n[1], apart = 1 + n[3];
          return p >= 0 && p % apart == 0 ? p / apart : -1;
        });
      case verb::reverse: return moved(n[0], T(0), [&](std::int64_t i) { return extents[std::size_t(n[0])] - 1 - i; });
      case verb::roll:
        return moved(n[0], T(0), [&](std::int64_t i) {
          const std::int64_t all = extents[std::size_t(n[0])];
          return ((i - n[1]) % all + all) % all;
        });
      case verb::concat:
        return made<T>(extents, [&](index at) {
          std::int64_t& i = at[std::size_t(n[0])];
          std::size_t k = 0;
          while (i >= x(k).extent(std::size_t(n[0]))) i -= x(k++).extent(std::size_t(n[0]));
          return element(x(k), at);
        });
      case verb::cumsum:
        return along(x(), std::size_t(n[0]), extents, [&](std::vector<T> row) {
          if (n[2]) std::reverse(row.begin(), row.end());
          T sum = T(0);
          for (T& v : row) {
            const T before = sum;
            sum = sum + v;
            v = n[1] ? before : sum;
          }
          if (n[2]) std::reverse(row.begin(), row.end());
          return row;
        });
      case verb::sort: return in_order(x(), n[0], n[1] != 0, n[2] != 0, extents);
      case verb::top_k: return in_order(x(), n[1], n[2] != 0, n[3] != 0, extents);
      case verb::gather:
        return made<T>(extents, [&](const index& at) { return element(x(), row_index(at, n[0], n[1], x(1))); });
      case verb::scatter_add: {
        tensor<T> y = x();
        for_each_index(x(2).extents, [&](const index& at) {
          T& to = y.e[linear(row_index(at, n[0], n[1], x(1)), extents)];
          to = to + element(x(2), at);
        });
        return y;
      }
      case verb::dynamic_slice: {
        const std::int64_t start = start_of(x(1), x().extent(std::size_t(n[0])) - n[1]);
        return moved(n[0], T(0), [&](std::int64_t i) { return start + i; });
      }
      case verb::dynamic_update: {
        const std::size_t dim = std::size_t(n[0]);
        const std::int64_t size = x(1).extent(dim), start = start_of(x(2), x().extent(dim) - size);
        return made<T>(extents, [&](index at) {
          const bool inside = at[dim] >= start && at[dim] < start + size;
          if (inside) at[dim] -= start;
          return element(x(inside), at);
        });
      }
      case verb::iota: return made<T>(extents, [&](const index& at) { return T(double(at[std::size_t(n[0])])); });
      case verb::conv: return conv(s, extents);
      case verb::sum_pool:
      case verb::mean_pool:
      case verb::max_pool:
      case verb::min_pool: return pool(s, extents);
      case verb::cast:
        return element_wise([&](const T& v) { return gs::dtype(n[0]) == gs::dtype::i32 ? T(std::trunc(value(v))) : v; });
      case verb::one_hot:
        return made<T>(extents, [&](index at) {
          const std::int64_t e = at.back();
          at.pop_back();
          return T(value(element(x(), at)) == double(e));
        });
      case verb::experts: return experts_by_definition<T>(s.number, operands(s)).run();
      case verb::loop: return loop(n[0], x(0), broadcast_to(s, dims), value(x(2).e[0]), extents);
      case verb::input:
      case verb::dropout:
      case verb::attention:
      case verb::scan:
      case verb::count_: break;
    }
    return {};
  }

  /// The index in a table that is gathered to an index.
  static index row_index(const index& at, int dim, int batch, const tensor<T>& ids) {
    const auto first = at.begin() + dim, last = first + std::ptrdiff_t(ids.extents.size()) - batch;
    index from(at.begin(), first), of_id(at.begin(), at.begin() + batch);
    of_id.insert(of_id.end(), first, last);
    from.push_back(std::int64_t(value(element(ids, of_id))));
    from.insert(from.end(), last, at.end());
    return from;
  }

  /// The start of a slice.
  static std::int64_t start_of(const tensor<T>& start, std::int64_t most) {
    return std::clamp<std::int64_t>(std::int64_t(value(start.e[0])), 0, most);
  }

  static tensor<T> in_order(const tensor<T>& x, int dim, bool descending, bool ids, const list& extents) {
    return along(x, std::size_t(dim), extents, [&](const std::vector<T>& row) {
      std::vector<std::size_t> order(row.size());
      std::iota(order.begin(), order.end(), std::size_t(0));
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return before(value(row[a]), value(row[b]), descending); });
      std::vector<T> sorted;
      for (const std::size_t i : order) sorted.push_back(ids ? T(double(i)) : row[i]);
      return sorted;
    });
  }

  tensor<T> conv(const step& s, const list& extents) const {
    const letters l(s.text);
    const tensor<T>&x = in(s, 0), &w = in(s, 1);
    const std::string &of_x = l.operands[0], &of_w = l.operands[1];
    const auto has = [](const std::string& text, char c) { return text.find(c) != std::string::npos; };
    const auto tap_of = [](char c) { return char(c - 'A' + 'a'); };
    // The loops: the output's indices, the taps, and other summed indices.
    std::string all = l.output;
    std::map<char, std::int64_t> extent;
    for (std::size_t d = 0; d < l.output.size(); ++d) extent[l.output[d]] = extents[d];
    for (const auto& [text, t] : {std::pair(&of_x, &x), std::pair(&of_w, &w)})
      for (std::size_t d = 0; d < text->size(); ++d)
        if (!has(all, (*text)[d])) {
          all += (*text)[d];
          extent[all.back()] = t->extent(d);
        }
    list loops;
    for (const char c : all) loops.push_back(extent[c]);
    tensor<T> y = filled(extents, T(0));
    for_each_index(loops, [&](const index& at) {
      const auto of = [&](char c) { return at[all.find(c)]; };
      index from, kernel;
      std::size_t window = 0;
      bool outside = false;
      for (std::size_t d = 0; d < of_x.size(); ++d) {
        from.push_back(of(of_x[d]));
        if (!has(of_w, tap_of(of_x[d]))) continue;
        const gs::conv_window how = window_at(s.number, 5 * window++);
        from.back() = read_by(how, from.back(), x.extent(d), of(tap_of(of_x[d])));
        if (from.back() < 0) outside = true;
      }
      for (const char c : of_w) kernel.push_back(of(c));
      index to;
      for (const char c : l.output) to.push_back(of(c));
      T& sum = y.e[linear(to, extents)];
      sum = sum + (outside ? T(0) : element(x, from)) * element(w, kernel);
    });
    return y;
  }

  tensor<T> pool(const step& s, const list& extents) const {
    const tensor<T>& x = in(s, 0);
    const std::vector<gs::pool_window> windows = pool_windows(s.number);
    double count = 1;
    for (const gs::pool_window& w : windows) count *= w.taps;
    return made<T>(extents, [&](const index& at) {
      std::vector<index> read{at};
      for (const gs::pool_window& w : windows) {
        std::vector<index> more;
        for (const index& r : read)
          for (int tap = 0; tap < w.taps; ++tap) {
            const std::int64_t i = read_by(w.how, at[std::size_t(w.dim)], x.extent(std::size_t(w.dim)), tap);
            if (i < 0) continue;
            more.push_back(r);
            more.back()[std::size_t(w.dim)] = i;
          }
        read = std::move(more);
      }
      T sum = T(0);
      const bool largest = s.what == verb::max_pool;
      T best = T(largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
      for (const index& r : read) {
        const T& v = element(x, r);
        sum = sum + v;
        if (is_nan(value(best))) continue;
        if (is_nan(value(v)) || (largest ? value(best) < value(v) : value(v) < value(best))) best = v;
      }
      if (s.what == verb::sum_pool) return sum;
      return s.what == verb::mean_pool ? sum * T(1 / count) : best;
    });
  }

  /// The number of keys of random numbers that a step draws.
  static std::uint32_t random_keys_of(const step& s) {
    if (s.what == verb::attention) return std::uint32_t(attention_settings(s.number).random_keys());
    if (s.what == verb::scan) return s.number[0] == scan_with_dropout;
    return s.what == verb::dropout || s.what == verb::experts;
  }
  /// The number of loops of a step.
  static std::uint32_t loops_of(const step& s) {
    if (s.what == verb::loop) return 1 + (s.number[0] == loop_bodies - 1);
    return s.what == verb::scan ? 1 + (s.number[0] == scan_with_loop) : 0;
  }
  static gs::random_key random_key(std::uint32_t key) {
    const gs::run_context run = run_graph::setting{}.context;
    return {run.seed, run.step, key};
  }
  tensor<T> attention(const step& s, const list& extents, std::uint32_t key) const {
    const gs::dim_list& of_k = a_.dims(s.in[1]);
    gs::dim_list of_keys;
    for (int d = 0; d < of_k.size() - 2; ++d) of_keys.push_back(of_k[d]);
    return attention_by_definition<T>(s.number, operands(s), of_keys, a_.dims(s.in.back())).run(extents, random_key(key));
  }
  tensor<T> scan(const step& s, const list& extents, std::uint32_t loop, std::uint32_t key) const {
    const gs::dim_list &state = a_.dims(s.in[0]), &xs = a_.dims(s.in[1]);
    gs::dim_list row;
    for (int d = 1; d < xs.size(); ++d) row.push_back(xs[d]);
    return scan_by_definition<T>(s.number[0], in(s, 0), in(s, 1), in(s, 2), matched(row, state), matched(a_.dims(s.in[2]), state), loop,
                                 random_key(key))
        .run(s.number[1], extents);
  }

  static tensor<T> dropout(const step& s, const tensor<T>& x, std::uint32_t key) {
    const double rate = s.number[0] / 10.0;
    tensor<T> y = x;
    for (std::size_t i = 0; i < y.e.size(); ++i)
      y.e[i] = gs::uniform01(random_key(key), i) >= float(rate) ? x.e[i] * T(1 / (1 - rate)) : T(0);
    return y;
  }

  tensor<T> broadcast_to(const step& s, const gs::dim_list& dims) const {
    const std::vector<int> of = matched(a_.dims(s.in[1]), dims);
    return made<T>(in(s, 0).extents, [&](const index& at) { return broadcast(in(s, 1), of, at); });
  }
  /// See random_program::loop.
  static tensor<T> loop(int body, const tensor<T>& x, const tensor<T>& y, double count, const list& extents) {
    using pair = std::pair<T, T>;
    const auto both = [](const tensor<T>& a, const tensor<T>& b, auto f) {
      tensor<T> r = a;
      for (std::size_t i = 0; i < r.e.size(); ++i) r.e[i] = f(pair(a.e[i], b.e[i]));
      return r;
    };
    const auto mean = [&](const tensor<T>& a, const tensor<T>& b) {
      return both(a, b, [](const pair& p) { return T(0.5) * (p.first + p.second); });
    };
    tensor<T> s = x, before = x;
    for (T& v : s.e) v = constant_of(v);
    tensor<T> outer = y;
    for (T& v : outer.e) v = constant_of(v);
    before = s;
    const auto row_wise = [&](std::size_t dim, auto f) { return along(s, dim, extents, f); };
    for (double turn = 0; turn < count; ++turn) {
      tensor<T> next = before;
      switch (body) {
        case 0: next = mean(s, outer); break;
        case 1:
          if (!extents.empty())
            next = mean(row_wise(extents.size() - 1, [](std::vector<T> row) {
                          const T most = extremum(row, true);
                          T sum = T(0);
                          for (T& v : row) sum = sum + (v = gs::exp(v - most));
                          for (T& v : row) v = v / sum;
                          return row;
                        }), before);
          break;
        case 2:
          next = s;
          if (!extents.empty()) {
            next = row_wise(0, [](std::vector<T> row) {
              if (!row.empty()) std::rotate(row.begin(), row.end() - 1, row.end());
              return row;
            });
            next = mean(next, outer);
          }
          break;
        case 3: {
          const T sum = std::accumulate(s.e.begin(), s.e.end(), T(0));
          next = mean(both(before, s, [&](const pair& p) { return gs::tanh(p.first - sum); }), s);
          break;
        }
        case 4:
          if (!extents.empty())
            next = row_wise(0, [](std::vector<T> row) {
              T sum = T(0);
              for (T& v : row) v = gs::tanh(sum = sum + v);
              return row;
            });
          break;
        default:
          next = s;
          for (double inner = 0; inner < count; ++inner) next = mean(next, outer);
      }
      before = s;
      s = next;
    }
    return s;
  }
};

}  // namespace reference

namespace detail {

inline reference::tensor<double> whole_of(const known& k, const run_graph::array& a) { return {k.extents, a}; }

/// Compares the gradients with the definitions: their product with a direction is the slope of the loss along it. Returns the difference,
/// or nothing.
inline std::string wrong_gradients(const recipe& r, const analysis& a, const run_graph::arrays& inputs, const run_graph::arrays& results) {
  using number = gs::dual<double>;
  std::vector<reference::tensor<number>> moving;
  std::vector<run_graph::array> directions;
  std::vector<std::size_t> input_of(r.steps.size(), 0);
  std::mt19937 gen(r.seed);
  for (std::size_t i = 0, k = 0; i < r.steps.size(); ++i) {
    if (r.steps[i].what != verb::input) continue;
    const bool moves = std::any_of(r.gradients.begin(), r.gradients.end(), [&](const result& y) { return std::size_t(y.of) == i; });
    reference::tensor<number> x{a.about(int(i)).extents, {}};
    directions.emplace_back();
    for (const double v : inputs[k]) {
      directions.back().push_back(moves ? int(gen() % 5) - 2 : 0);
      x.e.push_back({v, directions.back().back()});
    }
    moving.push_back(std::move(x));
    input_of[i] = k++;
  }
  reference::interpreter<number> program(r, a);
  const auto& made = program.run(std::move(moving));
  double expected = 0, slope = 0, scale = 1;
  for (const int v : r.loss)
    for (const number& e : made[std::size_t(v)].e) expected += gs::tanh(e).slope;
  for (std::size_t i = 0; i < r.gradients.size(); ++i) {
    const run_graph::array &g = results[r.results.size() + i], &d = directions[input_of[std::size_t(r.gradients[i].of)]];
    for (std::size_t e = 0; e < g.size(); ++e) {
      slope += g[e] * d[e];
      scale += std::abs(g[e] * d[e]);
    }
  }
  if (!std::isfinite(expected) || std::abs(slope - expected) <= 1e-8 * scale) return {};
  return "the slope along a direction is " + std::to_string(expected) + ", by the gradients it is " + std::to_string(slope);
}

}  // namespace detail

/// The difference between the results of one device and the definitions of the verbs, or nothing.
inline std::string wrong_results(const recipe& r, const analysis& a, const run_graph::arrays& inputs, const run_graph::arrays& results) {
  std::vector<reference::tensor<double>> given;
  bool special = false;
  for (std::size_t i = 0, k = 0; i < r.steps.size(); ++i) {
    special = special || a.about(int(i)).of.special();
    if (r.steps[i].what == verb::input) given.push_back(detail::whole_of(a.about(int(i)), inputs[k++]));
  }
  reference::interpreter<double> program(r, a);
  const auto& made = program.run(std::move(given));
  const std::string how = agreement(r, a);
  for (std::size_t i = 0; i < r.results.size(); ++i) {
    // The signs of zeros and the last bits of functions are not defined.
    const facts& f = a.about(r.results[i].of).of;
    const char closely = f.blurred ? how[i] : f.exact ? on_mesh::same_values : on_mesh::nearly;
    if (const std::string said = on_mesh::difference(results[i], made[std::size_t(r.results[i].of)].e, closely); !said.empty())
      return "result " + std::to_string(i) + " by definition: " + said;
  }
  return r.gradients.empty() || special ? "" : detail::wrong_gradients(r, a, inputs, results);
}

}  // namespace random_program
