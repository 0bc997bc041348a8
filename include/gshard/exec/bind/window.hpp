// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds operations on windows to kernels: convolution and pooling.

#include <gshard/base/interval.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/kernel/window/convolution.hpp>
#include <gshard/kernel/window/pooling.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pool.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The block of a factor that a device computes: its block of the dim with this factor in the result, or otherwise in the second operand.
template <class T>
interval block_of_factor(const local_step<T>& step, int factor) {
  const auto block = [](const kernel::placement& p, int d) {
    const auto at = std::size_t(d);
    return interval{p.offset[at], p.offset[at] + p.extent[at]};
  };
  if (const int d = step.n.rule.out[0].find(factor); d >= 0) return block(step.out_place(), d);
  return block(step.in_place(1), step.n.rule.in[1].find(factor));
}

template <class T>
action bind(kernel_of<op::convolution>, const local_step<T>& step) {
  const node& n = step.n;
  kernel::windowed_dims a;
  a.at = step.in_place(0);
  a.indices = a.at;
  a.windows = step.windows(0);
  for (int d = 0; d < step.in_value(0).rank(); ++d) {
    const auto at = std::size_t(d);
    a.factor[at] = n.rule.in[0][d];
    if (window_row(n, 0, d) == 0) continue;
    a.tap_factor[at] = n.attr.dims[d] - 1;
    if (const int tap = tap_factor(n, 0, d); tap >= 0) {
      const interval taps = block_of_factor(step, tap);
      a.windows[at].low += a.windows[at].step * taps.begin;
      a.windows[at].taps = taps.size();
    }
    const interval block = block_of_factor(step, a.factor[at]);
    a.indices.offset[at] = block.begin;
    a.indices.extent[at] = block.size();
  }
  const auto y = step.out_dims();
  if (n.inputs == 1)
    return [c = kernel::convolution<T>(a, y), from = step.in(0), to = step.out()](const run_context&) { c.run(from, to); };
  return [c = kernel::convolution<T>(a, step.in_dims(1), y), from = step.in(0), w = step.in(1),
          to = step.out()](const run_context&) { c.run(from, w, to); };
}

template <class T>
action bind(kernel_of<op::pool>, const local_step<T>& step) {
  return [pool = kernel::pooling(step.in_place(0), step.out_place(), step.windows(0)), what = step.n.attr.combine, x = step.in(0),
          y = step.out(0), tap = step.out_ids(1)](const run_context&) { pool.run(what, x, y, tap); };
}

template <class T>
action bind(kernel_of<op::pool_grad>, const local_step<T>& step) {
  kernel::window_array inverse = step.windows(0);
  for (bound_window& w : inverse) w = w.inverse();
  return [pool = kernel::pooling_grad(step.in_place(0), step.in_place(1), step.out_place(), inverse), tap = step.ids(0), dy = step.in(1),
          dx = step.out()](const run_context&) { pool.run(tap, dy, dx); };
}

}}}  // namespace gshard::v0::detail
