// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds each local operation of a plan to its kernel on a device.

#include <gshard/base/random.hpp>
#include <gshard/exec/bind/action.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/memory/buffer_reuse.hpp>
#include <gshard/kernel/elementwise/adam.hpp>
#include <gshard/kernel/elementwise/dropout.hpp>
#include <gshard/kernel/elementwise/pointwise.hpp>
#include <gshard/kernel/gemm/contract.hpp>
#include <gshard/kernel/moe/dispatch.hpp>
#include <gshard/kernel/moe/gating.hpp>
#include <gshard/kernel/move/cast.hpp>
#include <gshard/kernel/move/embedding.hpp>
#include <gshard/kernel/move/iota.hpp>
#include <gshard/kernel/move/move.hpp>
#include <gshard/kernel/rows/argmax.hpp>
#include <gshard/kernel/rows/cross_entropy.hpp>
#include <gshard/kernel/rows/cumsum.hpp>
#include <gshard/kernel/rows/layer_norm.hpp>
#include <gshard/kernel/rows/reduce.hpp>
#include <gshard/kernel/rows/softmax.hpp>
#include <gshard/kernel/rows/sort.hpp>
#include <gshard/kernel/window/convolution.hpp>
#include <gshard/kernel/window/pooling.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/trace/routing.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline kernel::precision precision_of(const node& einsum) {
  return rounds_factors_to_bf16(einsum) ? kernel::precision::bf16 : kernel::precision::full;
}

/// Binds one compute step of a plan on one device to its kernel. Sizes and addresses are looked up once, here.
template <class T>
class local_step {
 public:
  local_step(const node& step, const bound_plan& all, std::size_t device)
      : n_(step), plan_(all.plan), values_(all.values), sizes_(all.sizes), device_(device) {}

  /// A new operation needs one branch here.
  template <op Kind>
  action bind() const {
    if constexpr (Kind == op::einsum) return bind_einsum();
    else if constexpr (Kind == op::map) return bind_map();
    else if constexpr (Kind == op::scale) return bind_scale();
    else if constexpr (Kind == op::reduce) return bind_reduce();
    else if constexpr (Kind == op::argmax) return bind_argmax();
    else if constexpr (Kind == op::cast) return bind_cast();
    else if constexpr (Kind == op::softmax)
      return [x = in(0), y = out(0), rows = rows_of(in_value(0)), cols = cols_of(in_value(0))](const run_context&) {
        kernel::softmax<T>(x, y, rows, cols);
      };
    else if constexpr (Kind == op::softmax_grad)
      return [y = in(0), dy = in(1), dx = out(0), rows = rows_of(in_value(0)), cols = cols_of(in_value(0))](const run_context&) {
        kernel::softmax_grad<T>(y, dy, dx, rows, cols);
      };
    else if constexpr (Kind == op::layer_norm)
      return [x = in(0), gamma = in(1), beta = in(2), y = out(0), rows = rows_of(in_value(0)), cols = cols_of(in_value(0)),
              epsilon = T(n_.attr.number[0])](const run_context&) {
        kernel::layer_norm<T>(x, gamma, beta, y, rows, cols, epsilon);
      };
    else if constexpr (Kind == op::layer_norm_grad)
      return [x = in(0), gamma = in(1), dy = in(2), dx = out(0), dgamma = out(1), dbeta = out(2), rows = rows_of(in_value(0)),
              cols = cols_of(in_value(0)), epsilon = T(n_.attr.number[0])](const run_context&) {
        kernel::layer_norm_grad<T>(x, gamma, dy, dx, dgamma, dbeta, rows, cols, epsilon);
      };
    else if constexpr (Kind == op::cross_entropy)
      return [logits = in(0), labels = in<std::int32_t>(1), loss = out(0), rows = rows_of(in_value(0)), cols = cols_of(in_value(0)),
              smoothing = T(n_.attr.number[0])](const run_context&) {
        kernel::cross_entropy<T>(logits, labels, loss, rows, cols, smoothing);
      };
    else if constexpr (Kind == op::cross_entropy_grad)
      return [logits = in(0), labels = in<std::int32_t>(1), dloss = in(2), log_sum = n_.inputs > 3 ? in(3) : nullptr, dlogits = out(0),
              l = line(in_value(0), in_value(0).rank() - 1), smoothing = T(n_.attr.number[0])](const run_context&) {
        kernel::cross_entropy_grad<T>(logits, labels, dloss, log_sum, dlogits, l.outer, {l.first, l.n, l.whole}, smoothing);
      };
    else if constexpr (Kind == op::block_cross_entropy)
      return [logits = in(0), labels = in<std::int32_t>(1), log_sum = out(0), target = out(1),
              l = line(in_value(0), in_value(0).rank() - 1), block = line(out_value(0), out_value(0).rank() - 1).first,
              smoothing = T(n_.attr.number[0])](const run_context&) {
        kernel::block_cross_entropy<T>(logits, labels, log_sum, target, l.outer, {l.first, l.n, l.whole}, smoothing, block);
      };
    else if constexpr (Kind == op::cumsum)
      return [x = in(0), carry = n_.inputs > 1 ? in(1) : nullptr, y = out(0), l = line(in_value(0), n_.attr.integer[0]),
              exclusive = n_.attr.integer[1] != 0, reverse = n_.attr.integer[2] != 0](const run_context&) {
        kernel::cumsum<T>(x, carry, y, l.outer, l.n, l.inner, exclusive, reverse);
      };
    else if constexpr (Kind == op::sort || Kind == op::top_k) return bind_top_k();
    else if constexpr (Kind == op::scatter_along)
      return [ids = in<std::int32_t>(0), dy = in(1), y = out(0), from = line(in_value(0), n_.attr.integer[0]),
              to = line(out_value(0), n_.attr.integer[0])](const run_context&) {
        kernel::scatter_along<T>(ids, dy, y, to.outer, from.n, to.inner, to.first, to.n);
      };
    else if constexpr (Kind == op::block_sum)
      return [x = in(0), y = out(0), l = line(in_value(0), n_.attr.integer[0])](const run_context&) {
        kernel::block_sum<T>(x, y, l.outer, l.n, l.inner);
      };
    else if constexpr (Kind == op::gather)
      return [x = in(0), ids = in<std::int32_t>(1), y = out(0), l = line(in_value(0), n_.attr.integer[0]),
              count = in_value(1).elements(device_)](const run_context&) {
        kernel::gather_along<T>(x, ids, y, l.outer, {l.first, l.n, l.whole}, l.inner, count);
      };
    else if constexpr (Kind == op::scatter_add)
      return [ids = in<std::int32_t>(0), dy = in(1), y = out(0), l = line(out_value(0), n_.attr.integer[0]),
              count = in_value(0).elements(device_)](const run_context&) {
        kernel::scatter_add_along<T>(ids, dy, y, l.outer, {l.first, l.n, l.whole}, l.inner, count);
      };
    else if constexpr (Kind == op::strided_slice || Kind == op::pad || Kind == op::reverse || Kind == op::roll) return bind_moved();
    else if constexpr (Kind == op::concat) return bind_concat();
    else if constexpr (Kind == op::convolution) return bind_convolution();
    else if constexpr (Kind == op::pool)
      return [pool = kernel::pooling(in_value(0).places[device_], out_value(0).places[device_], bound_windows(0)),
              what = reduction(n_.attr.integer[0]), x = in(0), y = out(0),
              tap = out<std::int32_t>(1)](const run_context&) { pool.run(what, x, y, tap); };
    else if constexpr (Kind == op::pool_grad)
      return [pool = kernel::pooling_grad(in_value(0).places[device_], in_value(1).places[device_], out_value(0).places[device_],
                                          inverse_windows()),
              tap = in<std::int32_t>(0), dy = in(1), dx = out(0)](const run_context&) { pool.run(tap, dy, dx); };
    else if constexpr (Kind == op::per_shard) return bind_user_code(n_.attr.function->shards_f32, n_.attr.function->shards_f64);
    else if constexpr (Kind == op::custom) return bind_user_code(n_.attr.custom->f32, n_.attr.custom->f64);
    else if constexpr (Kind == op::iota)
      return [y = out<std::int32_t>(0), at = out_value(0).places[device_], along = n_.attr.integer[0]](const run_context&) {
        kernel::iota(y, at, along);
      };
    else if constexpr (Kind == op::dropout)
      return [x = in(0), y = out(0), at = out_value(0).places[device_], rate = n_.attr.number[0],
              key = n_.attr.integer[0]](const run_context& run) {
        kernel::dropout<T>(x, y, at, rate, random_key{run.seed, run.step, std::uint32_t(key)});
      };
    else if constexpr (Kind == op::top2_gating) return bind_gating();
    else if constexpr (Kind == op::top2_gating_grad) return bind_gating_grad();
    else if constexpr (Kind == op::one_hot)
      return [slot = in<std::int32_t>(0), weight = n_.inputs > 1 ? in(1) : nullptr, y = out(0),
              r = routing(out_value(0), n_.loops.out[0], in_value(0))](const run_context&) {
        kernel::one_hot<T>(slot, weight, y, r.sizes, r.first_expert, r.experts);
      };
    else if constexpr (Kind == op::one_hot_grad)
      return [d = in(0), slot = in<std::int32_t>(1), dweight = out(0),
              r = routing(in_value(0), n_.loops.in[0], in_value(1))](const run_context&) {
        kernel::one_hot_grad<T>(slot, d, dweight, r.sizes, r.first_expert, r.experts);
      };
    else if constexpr (Kind == op::dispatch)
      return [x = in(0), slot = in<std::int32_t>(1), weight = n_.inputs > 2 ? in(2) : nullptr, y = out(0),
              r = routing(out_value(0), n_.loops.out[0], in_value(1))](const run_context&) {
        kernel::dispatch<T>(slot, weight, x, r.buffers(y), r.sizes);
      };
    else if constexpr (Kind == op::combine)
      return [h = in(0), slot = in<std::int32_t>(1), weight = n_.inputs > 2 ? in(2) : nullptr, y = out(0),
              r = routing(in_value(0), n_.loops.in[0], in_value(1))](const run_context&) {
        kernel::combine<T>(slot, weight, r.buffers(h), y, r.sizes);
      };
    else if constexpr (Kind == op::combine_weight_grad)
      return [h = in(0), slot = in<std::int32_t>(1), dy = in(2), dweight = out(0), r = routing(in_value(0), n_.loops.in[0], in_value(1))](
                 const run_context&) { kernel::combine_weight_grad<T>(slot, r.buffers(h), dy, dweight, r.sizes); };
    else if constexpr (Kind == op::adam)
      return [p = out(0), m = out(1), v = out(2), g = in(3), rate = in(4), count = out_value(0).elements(device_),
              a = n_.attr](const run_context& run) {
        kernel::adam<T>(p, g, m, v, count, double(*rate), a.number[0], a.number[1], a.number[2], a.number[3],
                        std::int64_t(run.step) + 1);
      };
    else if constexpr (Kind == op::carry)
      return [from = in_value(n_.inputs - 1).data[device_], to = out_value(0).data[device_],
              bytes = out_value(0).bytes(device_)](const run_context&) {
        if (bytes > 0 && from != to) std::memcpy(to, from, std::size_t(bytes));
      };
    else if constexpr (Kind == op::reshape) return check_reshape();
    else if constexpr (Kind == op::annotate) return {};
    else throw error("executor: a plan step of kind " + std::string(name(n_.kind)) + " cannot be run");
  }

 private:
  node n_;
  plan_view plan_;
  std::span<const bound_value> values_;
  const extents& sizes_;
  std::size_t device_;

  const bound_value& in_value(int i) const { return values_[std::size_t(n_.input(i))]; }
  const bound_value& out_value(int i) const { return values_[std::size_t(n_.output(i))]; }
  template <class U = T>
  const U* in(int i) const {
    return in_value(i).template as<const U>(device_);
  }
  template <class U = T>
  U* out(int i) const {
    return out_value(i).template as<U>(device_);
  }
  std::int64_t rows_of(const bound_value& v) const { return v.span(device_, 0, v.rank() - 1); }
  std::int64_t cols_of(const bound_value& v) const { return v.extent(device_, v.rank() - 1); }

  kernel::operand_dims dims_of(const bound_value& v, const short_list& factors) const {
    kernel::operand_dims d{};
    d.rank = v.rank();
    for (int i = 0; i < d.rank; ++i) {
      d.factor[std::size_t(i)] = factors[i];
      d.extent[std::size_t(i)] = v.extent(device_, i);
    }
    return d;
  }
  action bind_einsum() const {
    const auto a = dims_of(in_value(0), n_.loops.in[0]), y = dims_of(out_value(0), n_.loops.out[0]);
    if (n_.inputs == 1)
      return [c = kernel::contraction<T>(a, y), x = in(0), r = out(0)](const run_context&) { c.run(x, r); };
    const auto b = dims_of(in_value(1), n_.loops.in[1]);
    action whole = [c = kernel::contraction<T>(a, b, y, 1, false, precision_of(n_)), x = in(0), w = in(1), r = out(0)](const run_context&) {
      c.run(x, w, r);
    };
    if (const batch_dim batch = batch_of(n_, values_, device_); batch.factor >= 0) {
      whole.elements = out_value(0).elements(device_);
      const auto [left, left_step] = block_of(a, batch.factor);
      const auto [right, right_step] = block_of(b, batch.factor);
      const auto [result, size] = block_of(y, batch.factor);
      whole.piece = [c = kernel::contraction<T>(left, right, result, 1, false, precision_of(n_)), x = in(0), w = in(1), r = out(0),
                     left_step,
                     right_step, size](const run_context&, std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin / size; at < end / size; ++at) c.run(x + at * left_step, w + at * right_step, r + at * size);
      };
    }
    return whole;
  }
  /// The dims of an operand at one index of a factor, and the stride to the next index.
  static std::pair<kernel::operand_dims, std::int64_t> block_of(kernel::operand_dims d, int factor) {
    d.stride = kernel::row_major_strides(d.rank, d.extent);
    const auto at = std::size_t(std::find(d.factor.begin(), d.factor.begin() + d.rank, factor) - d.factor.begin());
    d.extent[at] = 1;
    return {d, (*d.stride)[at]};
  }
  action bind_map() const {
    const bound_value& y = out_value(0);
    const auto& extent = y.places[device_].extent;
    std::array<const T*, rule::most_in> x{};
    std::array<kernel::index_array, rule::most_in> stride{};
    for (int i = 0; i < n_.inputs; ++i) {
      const auto at = std::size_t(i);
      x[at] = in(i);
      const kernel::index_array own = kernel::row_major_strides(in_value(i).rank(), in_value(i).places[device_].extent);
      const short_list& factors = n_.loops.in[at];
      for (int d = 0; d < factors.size(); ++d) stride[at][std::size_t(n_.loops.out[0].find(factors[d]))] += own[std::size_t(d)];
    }
    row_function<T> f;
    if constexpr (std::is_same_v<T, float>) f = n_.attr.function->f32;
    else f = n_.attr.function->f64;
    if (is_elementwise(n_)) {
      std::array<std::int64_t, rule::most_in> one{};
      one.fill(1);
      const auto count = std::size_t(n_.inputs);
      return action::elementwise(y.elements(device_), [=, r = out(0)](const run_context&, std::int64_t begin, std::int64_t end) {
        std::array<const T*, rule::most_in> from{};
        for (std::size_t i = 0; i < count; ++i) from[i] = x[i] + begin;
        f(from.data(), one.data(), r + begin, end - begin);
      });
    }
    return [=, r = out(0), count = n_.inputs, rank = y.rank()](const run_context&) {
      kernel::apply_rows<T>(f, count, x.data(), stride.data(), r, extent, rank);
    };
  }
  action bind_scale() const {
    double factor = n_.attr.number[0];
    if (n_.attr.number[1] != 0) {
      double over = 1;
      for (int i = 0; i < n_.attr.dims.size(); ++i) over *= double(sizes_.dim(n_.attr.dims[i]));
      factor *= std::pow(over, n_.attr.number[1]);
    }
    return action::elementwise(out_value(0).elements(device_),
                               [x = in(0), y = out(0), factor = T(factor)](const run_context&, std::int64_t begin, std::int64_t end) {
                                 for (std::int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
                               });
  }
  /// A shard as [outer, n, inner], with one dim as n. `first`: the global index of its first element along that dim. `whole`: the dim's
  /// global extent.
  struct along_dim {
    std::int64_t outer = 1, n = 1, inner = 1, first = 0, whole = 1;
  };
  along_dim line(const bound_value& v, int at) const {
    const auto d = std::size_t(at);
    return {v.span(device_, 0, at), v.extent(device_, at), v.span(device_, at + 1, v.rank()), v.places[device_].offset[d], v.extents[d]};
  }
  action bind_reduce() const {
    const auto a = dims_of(in_value(0), n_.loops.in[0]), y = dims_of(out_value(0), n_.loops.out[0]);
    return [r = kernel::reduction_kernel<T>(reduction(n_.attr.integer[0]), a, y), x = in(0),
            to = out(0)](const run_context&) { r.run(x, to); };
  }
  action bind_argmax() const {
    const auto a = dims_of(in_value(0), n_.loops.in[0]), m = dims_of(in_value(1), n_.loops.in[1]);
    const int along = n_.attr.integer[0];
    return [k = kernel::first_equal<T>(a, m, n_.loops.in[0][along],
                                       in_value(0).places[device_].offset[std::size_t(along)]),
            x = in(0), best = in(1), y = out<std::int32_t>(0)](const run_context&) { k.run(x, best, y); };
  }
  action bind_top_k() const {
    const auto l = line(in_value(0), n_.attr.integer[0]);
    const std::int64_t k = out_value(0).extent(device_, n_.attr.integer[0]);
    if (n_.attr.integer[2] > l.whole)
      throw error("top_k: " + std::to_string(n_.attr.integer[2]) + " of " + std::to_string(l.whole) + " elements are asked for");
    return [x = in(0), ids = n_.inputs > 1 ? in<std::int32_t>(1) : nullptr, y = out(0), y_ids = out<std::int32_t>(1), l, k,
            largest = n_.attr.integer[1] != 0, nan_first = n_.attr.number[0] != 0](const run_context&) {
      kernel::top_k<T>(x, ids, l.first, y, y_ids, l.outer, l.n, l.inner, k, largest, nan_first);
    };
  }
  /// The windows of a node by the dims of an operand. {} for dims without a window.
  kernel::window_array bound_windows(int operand) const {
    kernel::window_array w{};
    for (int d = 0; d < in_value(operand).rank(); ++d)
      if (const int row = window_row(n_, operand, d)) w[std::size_t(d)] = plan_.windows[std::size_t(row)].bind(sizes_);
    return w;
  }
  /// The inverses of the windows of operand 0.
  kernel::window_array inverse_windows() const {
    kernel::window_array w = bound_windows(0);
    for (bound_window& x : w) x = x.inverse();
    return w;
  }
  /// The block of a factor that this device computes: its block of the dim with this factor in the result, else in the second operand.
  interval block_of_factor(int factor) const {
    const auto block = [&](const bound_value& v, int d) {
      const auto at = std::size_t(d);
      return interval{v.places[device_].offset[at], v.places[device_].offset[at] + v.places[device_].extent[at]};
    };
    if (const int d = n_.loops.out[0].find(factor); d >= 0) return block(out_value(0), d);
    return block(in_value(1), n_.loops.in[1].find(factor));
  }
  action bind_convolution() const {
    kernel::windowed_dims a;
    const bound_value& x = in_value(0);
    a.at = x.places[device_];
    a.indices = a.at;
    a.windows = bound_windows(0);
    for (int d = 0; d < x.rank(); ++d) {
      const auto at = std::size_t(d);
      a.factor[at] = n_.loops.in[0][d];
      if (window_row(n_, 0, d) == 0) continue;
      a.tap_factor[at] = n_.attr.dims[d] - 1;
      if (const int tap = tap_factor(n_, 0, d); tap >= 0) {
        const interval taps = block_of_factor(tap);
        a.windows[at].low += a.windows[at].step * taps.begin;
        a.windows[at].taps = taps.size();
      }
      const interval block = block_of_factor(a.factor[at]);
      a.indices.offset[at] = block.begin;
      a.indices.extent[at] = block.size();
    }
    const auto y = dims_of(out_value(0), n_.loops.out[0]);
    if (n_.inputs == 1)
      return [c = kernel::convolution<T>(a, y), from = in(0), to = out(0)](const run_context&) { c.run(from, to); };
    return [c = kernel::convolution<T>(a, dims_of(in_value(1), n_.loops.in[1]), y), from = in(0), w = in(1),
            to = out(0)](const run_context&) { c.run(from, w, to); };
  }
  static shard_place place_of(const kernel::placement& p) { return {p.rank, p.extent, p.offset, p.global}; }
  action bind_user_code(shard_function<float> f32, shard_function<double> f64) const {
    std::array<const T*, rule::most_in> x{};
    std::array<shard_place, rule::most_in> at{};
    for (std::size_t i = 0; i < n_.inputs; ++i) {
      x[i] = in(int(i));
      at[i] = place_of(in_value(int(i)).places[device_]);
    }
    shard_function<T> f;
    if constexpr (std::is_same_v<T, float>) f = f32;
    else f = f64;
    return [=, y = out(0), y_at = place_of(out_value(0).places[device_])](const run_context&) { f(x.data(), at.data(), y, y_at); };
  }
  action bind_moved() const {
    const kernel::window_array w = bound_windows(0);
    const bound_value &x = in_value(0), &y = out_value(0);
    for (int d = 0; d < x.rank() && n_.attr.integer[0]; ++d) {
      const auto at = std::size_t(d);
      if (y.extents[at] > 0 && w[at].position(0) < 0)
        throw error("slice: index " + std::to_string(w[at].position(0)) + " is before the first of dim " + std::to_string(d));
      if (y.extents[at] > 0 && w[at].position(y.extents[at] - 1) >= x.extents[at])
        throw error("slice: index " + std::to_string(w[at].position(y.extents[at] - 1)) +
                    " is beyond the extent " + std::to_string(x.extents[at]) + " of dim " +
                    std::to_string(d));
    }
    return [move = kernel::window_move<T>(x.places[device_], y.places[device_], w), from = in(0), to = out(0),
            fill = T(n_.attr.number[0])](const run_context&) { move.run(from, to, fill); };
  }
  action bind_concat() const {
    std::vector<std::pair<const T*, kernel::window_move<T>>> parts;
    for (int i = 0; i < n_.inputs; ++i)
      parts.emplace_back(in(i), kernel::window_move<T>(in_value(i).places[device_], out_value(0).places[device_], bound_windows(i)));
    return [parts, to = out(0)](const run_context&) {
      for (const auto& [from, move] : parts) move.run_into(from, to);
    };
  }
  /// A reshape moves no data. This checks its extents.
  action check_reshape() const {
    std::int64_t before = 1, after = 1;
    for (const std::int64_t e : in_value(0).extents) before *= e;
    for (const std::int64_t e : out_value(0).extents) after *= e;
    if (before != after) check_shards();
    if (before != after)
      throw error("reshape: a tensor of " + std::to_string(before) + " elements cannot have dims of " + std::to_string(after));
    return {};
  }
  /// Throws if the reshape splits a dim into its shards (per_shard), and the number of devices does not divide its extent.
  void check_shards() const {
    const int at = n_.attr.integer[0];
    const bool merges = n_.attr.integer[1] > 0;
    const dim_list &apart = plan_.at(merges ? n_.input(0) : n_.output()).dims, &whole = plan_.at(merges ? n_.output() : n_.input(0)).dims;
    const dim& devices = plan_.dims[std::size_t(apart[at])];
    if (devices.what != dim::kind::blocks) return;
    std::string axes;
    for (int a = 0; a < plan_.mesh.rank(); ++a)
      if ((devices.first >> a) & 1u) axes += (axes.empty() ? "\"" : ", \"") + std::string(plan_.mesh.name(a)) + "\"";
    const char letter = plan_.dims[std::size_t(whole[at])].letter;
    throw error("per_shard: dim " + (letter ? std::string("'") + letter + "'" : std::to_string(at)) + " of extent " +
                std::to_string(sizes_.dim(whole[at])) + " is not cut into equal shards by the " + std::to_string(sizes_.dim(apart[at])) +
                " devices along " + axes);
  }
  action bind_cast() const {
    const std::int64_t count = out_value(0).elements(device_);
    return with_element(in_value(0).type, [&]<class From>(From*) {
      return with_element(out_value(0).type, [&]<class To>(To*) -> action {
        return [count, x = in<From>(0), y = out<To>(0)](const run_context&) { kernel::cast(x, y, count); };
      });
    });
  }

  kernel::gating_sizes gating() const {
    const bound_value& gates = in_value(0);
    return {gates.extent(device_, 0), gates.extent(device_, 1), gates.extent(device_, 2), sizes_.dim(n_.attr.dims[0])};
  }
  action bind_gating() const {
    return [gates = in(0), mask = n_.inputs > 1 ? in(1) : nullptr, slot = out<std::int32_t>(0),
            weight = out(1), aux = out(2), load = out(3), overflow = out(4), s = gating(),
            first = in_value(0).places[device_].offset[0], key = n_.attr.integer[0],
            random = n_.attr.integer[1] == 0](const run_context& run) {
      kernel::top2_gating<T>(gates, mask, slot, weight, aux, load, overflow, s, random,
                             random_key{run.seed, run.step, std::uint32_t(key)}, first);
    };
  }
  action bind_gating_grad() const {
    return [gates = in(0), slot = in<std::int32_t>(1), dweight = in(2), daux = in(3),
            mask = n_.inputs > 4 ? in(4) : nullptr, dgates = out(0), s = gating()](const run_context&) {
      kernel::top2_gating_grad<T>(gates, mask, slot, dweight, daux, dgates, s);
    };
  }
  /// The expert buffers of a routing step: a tensor with dims group, expert, capacity slot and maybe model, in any order.
  struct expert_side {
    kernel::gating_sizes sizes;
    std::int64_t expert_stride = 0, group_stride = 0, place_stride = 0;
    std::int64_t first_expert = 0, experts = 0, model = 0;

    template <class U>
    kernel::expert_buffers<U> buffers(U* data) const {
      return {data, expert_stride, group_stride, place_stride, first_expert, experts, model};
    }
  };
  expert_side routing(const bound_value& side, const short_list& factors, const bound_value& slot) const {
    const kernel::placement& at = side.places[device_];
    const kernel::index_array stride = kernel::row_major_strides(at.rank, at.extent);
    expert_side r;
    r.sizes.groups = slot.extent(device_, 0);
    r.sizes.tokens = slot.extent(device_, 1);
    for (int d = 0; d < factors.size(); ++d) {
      const auto i = std::size_t(d);
      switch (factors[d]) {
        case route::group: r.group_stride = stride[i]; break;
        case route::expert:
          r.expert_stride = stride[i];
          r.first_expert = at.offset[i];
          r.experts = at.extent[i];
          r.sizes.experts = at.global[i];
          break;
        case route::place:
          r.place_stride = stride[i];
          r.sizes.capacity = at.extent[i];
          break;
        case route::model: r.model = at.extent[i]; break;
        default: break;
      }
    }
    return r;
  }
};

}}}  // namespace gshard::v0::detail
