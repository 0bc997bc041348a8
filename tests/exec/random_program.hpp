// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_layers.hpp"

#include <gshard/core/base/dual.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Programs as data, which can be generated at random, run, shrunk, and printed as code.
namespace random_program {

namespace gs = gshard;
using gs::cos, gs::erf, gs::exp, gs::sin, gs::sqrt, gs::tanh;
using gs::symbol;
using symbols = gs::list<symbol>;
using on_mesh::place;

enum class verb : std::uint8_t {
  input,          // text: dims; number: dtype, letter of the extent that bounds ids, smallest id, seed, special numbers
  einsum,         // text: the equation
  mean,           // text: the equation
  logsumexp,      // text: the equation
  reduce,         // text: the equation; number: reduction
  argmax,         // text: the equation; number: 1 for argmin
  map,            // number: index of the function
  relu,
  maximum,
  minimum,
  broadcast,      // text: the equation
  add,
  subtract,
  multiply,
  scale,          // number: power of 2
  stop_gradient,
  softmax,
  layer_norm,
  cross_entropy,  // number: smoothing in eighths
  merge_dims,     // number: dim
  split_dim,      // number: dim
  slice,          // number: dim, start, stop, stride
  pad,            // number: dim, low, high, interior, fill in quarters
  reverse,        // number: dim
  roll,           // number: dim, shift
  concat,         // number: dim
  cumsum,         // number: dim, exclusive, reverse
  sort,           // number: dim, descending, 1 for the ids
  top_k,          // number: k, dim, largest, 1 for the ids
  gather,         // number: dim, batch dims
  scatter_add,    // number: dim, batch dims
  dynamic_slice,  // number: dim, size
  dynamic_update, // number: dim
  iota,           // text: dims; number: dim
  conv,           // text: the equation; number: stride, low, high, step, dilation for every spatial dim
  sum_pool,       // number: dim, taps, then as for conv, for every window
  mean_pool,
  max_pool,
  min_pool,
  dropout,        // number: rate in tenths
  cast,           // number: dtype
  annotate,       // layout
  one_hot,        // text: the letter
  attention,      // number: see attention_settings
  experts,        // number: see expert_settings
  check_finite,   // of a tensor without special numbers
  loop,           // number: the body; layout: of a state
  scan,           // number: the body, the result; layout: of a state
  count_
};

/// One call. Its operands are results of earlier steps.
struct step {
  verb what = verb::input;
  std::vector<int> in{};
  std::string text{};
  std::vector<int> number{};
  gs::sharding layout{};  // of inputs and annotations

  bool operator==(const step&) const = default;
};

/// A result of a program: a step, and its final sharding, if any.
struct result {
  int of = 0;
  bool laid = false;
  gs::sharding layout{};

  bool operator==(const result&) const = default;
};

struct recipe {
  std::uint32_t seed = 0;
  place on;
  std::vector<step> steps;
  std::vector<result> results;    // of steps
  std::vector<int> loss;          // steps of the loss, if any
  std::vector<result> gradients;  // with respect to inputs
};

/// A function for maps, as code and as a callable.
struct function {
  std::string_view text;
  const gs::pointwise* row;
  int operands;
  bool smooth;  // accepts numbers that are not exact
  double (*of_numbers)(const double*);
  gs::dual<double> (*of_duals)(const gs::dual<double>*);

  double operator()(const double* x) const { return of_numbers(x); }
  gs::dual<double> operator()(const gs::dual<double>* x) const { return of_duals(x); }
};
namespace detail {
template <auto F, int Operands, class T>
T called(const T* x) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return F(x[I]...); }(std::make_index_sequence<std::size_t(Operands)>());
}
template <int Operands, auto F>
function function_of(std::string_view text, bool smooth) {
  return {text, &gs::pointwise_of<F, Operands>, Operands, smooth, called<F, Operands, double>, called<F, Operands, gs::dual<double>>};
}
}  // namespace detail
#define GSHARD_FUNCTION(operands, smooth, ...) detail::function_of<operands, __VA_ARGS__>(#__VA_ARGS__, smooth)
inline const std::array functions{
    GSHARD_FUNCTION(1, true, [](auto v) { return tanh(v); }),
    GSHARD_FUNCTION(1, true, [](auto v) { return v * v; }),
    GSHARD_FUNCTION(1, true, [](auto v) { return 1 / sqrt(1 + v * v); }),
    GSHARD_FUNCTION(1, false, [](auto v) { return 0 < v ? v : decltype(v)(0); }),
    GSHARD_FUNCTION(2, true, [](auto v, auto w) { return v * tanh(w) + w; }),
    GSHARD_FUNCTION(2, true, [](auto v, auto w) { return v / (1 + w * w); }),
    GSHARD_FUNCTION(2, false, [](auto v, auto w) { return v < w ? v : w; }),
    GSHARD_FUNCTION(3, true, [](auto u, auto v, auto w) { return u * v - w; }),
    GSHARD_FUNCTION(3, false, [](auto u, auto v, auto w) { return u < v ? v : w; }),
    GSHARD_FUNCTION(5, true, [](auto a, auto b, auto c, auto d, auto e) { return a * b - c * d + e; }),
    GSHARD_FUNCTION(1, true, [](auto v) { return sin(v) * cos(v); }),
    GSHARD_FUNCTION(1, true, [](auto v) { return erf(v); }),
};
#undef GSHARD_FUNCTION

inline gs::equation equation_of(gs::builder& b, const std::string& text) { return gs::parse_equation(text, b.program.problem); }

inline gs::conv_window window_at(const std::vector<int>& n, std::size_t i) {
  return {.stride = n[i], .low = n[i + 1], .high = n[i + 2], .step = n[i + 3], .dilation = n[i + 4]};
}
inline std::vector<gs::pool_window> pool_windows(const std::vector<int>& n) {
  std::vector<gs::pool_window> list;
  for (std::size_t i = 0; i + 6 < n.size(); i += 7) list.push_back({n[i], n[i + 1], window_at(n, i + 2)});
  return list;
}

namespace detail {

inline symbol input(gs::builder& b, const step& s) {
  const symbol x{&b, b.add_value(b.dims_of(s.text, "input"), gs::dtype(s.number[0]))};
  b.program.inputs.push_back({gs::tensor_name(s.text), x.id});
  return x;
}
inline symbol einsum(gs::builder& b, const step& s, const symbols& x) {
  const gs::equation e = equation_of(b, s.text);
  return gs::detail::emit_einsum(b, x, gs::list_view(e.operands.data(), x.size()), e.output, s.text);
}
inline symbol over_equation(gs::builder& b, const step& s, symbol x) {
  const gs::equation e = equation_of(b, s.text);
  if (b.failed()) return b.nothing();
  switch (s.what) {
    case verb::reduce: return gs::detail::emit_reduce(x, gs::reduction(s.number[0]), e.operands[0], e.output, s.text);
    case verb::argmax:
      return gs::detail::emit_argmax(x, s.number[0] ? gs::reduction::min : gs::reduction::max, e.operands[0], e.output, s.text);
    case verb::logsumexp: return gs::detail::emit_logsumexp(x, e.operands[0], e.output, s.text);
    default: {
      const symbol total = gs::detail::emit_einsum(b, gs::list_view(&x, 1), gs::list_view(e.operands.data(), 1), e.output, s.text);
      return b.failed() ? b.nothing() : gs::detail::emit_scale(total, 1, gs::detail::dims_lacking(x, e.operands[0], e.output), -1);
    }
  }
}
inline symbol conv(gs::builder& b, const step& s, symbol x, symbol w) {
  std::vector<gs::conv_window> how;
  for (std::size_t i = 0; i + 4 < s.number.size(); i += 5) how.push_back(window_at(s.number, i));
  return gs::detail::emit_windowed_einsum(x, w, equation_of(b, s.text), how, s.text);
}
inline symbol broadcast(gs::builder& b, const step& s, const symbols& x) {
  const gs::equation e = equation_of(b, s.text);
  return b.failed() ? b.nothing() : gs::detail::emit_broadcast_like(b, x, e, s.text);
}
inline symbol iota(gs::builder& b, const step& s) {
  gs::sharding_rule rule;
  const gs::dim_list dims = b.dims_of(s.text, "iota");
  rule.out[0] = gs::detail::counting(dims.size());
  return {&b, b.add_node(gs::op::iota, {}, rule, {.dim = s.number[0]}, {{dims, gs::dtype::i32}})};
}
}  // namespace detail

/// A loop of `count` iterations without a gradient. y is broadcast to x. The result is at most the largest of x, y and 1.
inline constexpr int loop_bodies = 6;
constexpr symbol loop(int body, symbol x, symbol y, symbol count, const gs::sharding& layout) {
  if (x.owner->failed()) return x.owner->nothing();
  const symbol outer = gs::stop_gradient(y);
  const auto turn = [&](symbol s, symbol before) {
    const auto mean_with = [](symbol a, symbol b) { return 0.5 * gs::map<[](auto v, auto w) { return v + w; }>(a, b); };
    const auto made = [&] {
      switch (body) {
        case 0: return mean_with(s, outer);
        case 1: return s.rank() > 0 ? mean_with(gs::softmax(s), before) : before;
        case 2: return s.rank() > 0 ? mean_with(gs::roll(s, 0, 1), outer) : s;
        case 3: return mean_with(gs::map<[](auto v, auto w) { return tanh(v - w); }>(before, gs::sum(s)), s);
        case 4: return s.rank() > 0 ? gs::map<[](auto v) { return tanh(v); }>(gs::cumsum(s, 0)) : before;
        default: return gs::repeat(count, [&](symbol u) { return mean_with(u, outer); }, s);
      }
    }();
    return std::array{made, on_mesh::annotate(s, layout)};
  };
  const symbol start = gs::stop_gradient(x);
  return gs::repeat(count, turn, start, start)[0];
}

/// The verb of a step, applied to these operands.
inline symbol call(gs::builder& b, const step& s, const symbols& x) {
  const std::vector<int>& n = s.number;
  if (b.failed()) return b.nothing();
  switch (s.what) {
    case verb::input: return detail::input(b, s);
    case verb::einsum: return detail::einsum(b, s, x);
    case verb::mean:
    case verb::logsumexp:
    case verb::reduce:
    case verb::argmax: return detail::over_equation(b, s, x[0]);
    case verb::map: return gs::detail::emit_map(b, *functions[std::size_t(n[0])].row, x);
    case verb::relu: return gs::relu(x[0]);
    case verb::maximum: return gs::map<[](auto v, auto w) { return gs::max(v, w); }>(x[0], x[1]);
    case verb::minimum: return gs::map<[](auto v, auto w) { return gs::min(v, w); }>(x[0], x[1]);
    case verb::broadcast: return detail::broadcast(b, s, x);
    case verb::add: return x[0] + x[1];
    case verb::subtract: return x[0] - x[1];
    case verb::multiply: return x[0] * x[1];
    case verb::scale: return std::ldexp(1.0, n[0]) * x[0];
    case verb::stop_gradient: return gs::stop_gradient(x[0]);
    case verb::softmax: return gs::softmax(x[0]);
    case verb::layer_norm: return gs::layer_norm(x[0], x[1], x[2], 0.125);
    case verb::cross_entropy: return gs::cross_entropy(x[0], x[1], n[0] / 8.0);
    case verb::merge_dims: return gs::detail::emit_merge(x[0], n[0]);
    case verb::split_dim: return gs::detail::emit_split(x[0], n[0]);
    case verb::slice: return gs::slice(x[0], n[0], n[1], n[2], n[3]);
    case verb::pad: return gs::pad(x[0], n[0], n[1], n[2], n[3], n[4] / 4.0);
    case verb::reverse: return gs::reverse(x[0], n[0]);
    case verb::roll: return gs::roll(x[0], n[0], n[1]);
    case verb::concat: return gs::concat(x, n[0]);
    case verb::cumsum: return gs::cumsum(x[0], n[0], n[1] != 0, n[2] != 0);
    case verb::sort: {
      const gs::sorted r = gs::sort(x[0], n[0], n[1] != 0);
      return n[2] ? r.ids : r.values;
    }
    case verb::top_k: {
      const gs::sorted r = gs::top_k(x[0], n[0], n[1], n[2] != 0);
      return n[3] ? r.ids : r.values;
    }
    case verb::gather: return gs::gather(x[0], x[1], n[0], n[1]);
    case verb::scatter_add: return gs::scatter_add(x[0], x[1], x[2], n[0], n[1]);
    case verb::dynamic_slice: return gs::dynamic_slice(x[0], n[0], x[1], n[1]);
    case verb::dynamic_update: return gs::dynamic_update_slice(x[0], x[1], n[0], x[2]);
    case verb::iota: return detail::iota(b, s);
    case verb::conv: return detail::conv(b, s, x[0], x[1]);
    case verb::sum_pool: return gs::sum_pool(x[0], pool_windows(n));
    case verb::mean_pool: return gs::mean_pool(x[0], pool_windows(n));
    case verb::max_pool: return gs::max_pool(x[0], pool_windows(n));
    case verb::min_pool: return gs::min_pool(x[0], pool_windows(n));
    case verb::dropout: return gs::dropout(x[0], n[0] / 10.0);
    case verb::cast: return gs::cast(x[0], gs::dtype(n[0]));
    case verb::annotate: return on_mesh::annotate(x[0], s.layout);
    case verb::check_finite: return gs::check_finite(x[0], "x");
    case verb::one_hot:
      return b.failed() ? b.nothing() : gs::detail::emit_equal_index(x[0], b.dims_of(s.text, "one_hot")[0], gs::dtype::f64);
    case verb::attention: return random_program::attention(n, x);
    case verb::experts: return experts(n, x);
    case verb::scan: return scan(n[0], n[1], x[0], x[1], x[2], s.layout);
    case verb::loop: return loop(n[0], x[0], x[1], x[2], s.layout);
    case verb::count_: break;
  }
  return b.nothing();
}

/// The results of a recipe for the inputs `given`.
inline symbols follow(const recipe& r, gs::builder& b, std::span<const symbol> given) {
  symbols made, results;
  std::size_t inputs = 0;
  const auto all = [&](const auto& steps, auto index) {
    symbols list;
    for (const auto& i : steps) list.push_back(made[std::size_t(index(i))]);
    return list;
  };
  const auto plain = [](int i) { return i; };
  const auto give = [&](symbol s, const result& how) { results.push_back(how.laid ? on_mesh::annotate(s, how.layout) : s); };
  for (const step& s : r.steps) made.push_back(s.what == verb::input ? given[inputs++] : call(b, s, all(s.in, plain)));
  for (const result& y : r.results) give(made[std::size_t(y.of)], y);
  if (r.gradients.empty() || b.failed()) return results;
  const symbols found = on_mesh::gradients_of(all(r.loss, plain), all(r.gradients, [](const result& y) { return y.of; }));
  for (std::size_t i = 0; i < found.size() && !b.failed(); ++i) give(found[i], r.gradients[i]);
  return results;
}

inline run_graph::model model_of(const recipe& r) {
  return [&r](const gs::parameter_scope& m, std::span<const symbol> x) { return follow(r, m.owner(), x); };
}
inline std::vector<on_mesh::input> inputs_of(const recipe& r) {
  std::vector<on_mesh::input> list;
  for (const step& s : r.steps)
    if (s.what == verb::input)
      list.push_back({{s.text, gs::dtype(s.number[0]), char(s.number[1]), s.number[2]}, s.layout, s.number[3], s.number[4]});
  return list;
}

}  // namespace random_program
