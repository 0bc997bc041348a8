// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel that rounds gradients to bf16 with feedback of the error.

#include <gshard/core/base/bf16.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/train/gradient_wire.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

/// For each of n elements, with c = g + residual: sent = c, rounded to bf16, and residual = c - sent. The difference is exact, so
/// sent + residual is c. If sent is not finite, the residual stays as it was.
template <class T>
void round_with_feedback(T* __restrict residual, const T* __restrict g, T* __restrict sent, std::int64_t n) {
  parallel_rows(n, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T before = residual[i], whole = g[i] + before;
      const T near = T(gshard::detail::to_float(gshard::detail::to_bf16(float(whole)))), rest = whole - near;
      sent[i] = near;
      residual[i] = rest - rest == T(0) ? rest : before;
    }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::feedback>, const local_step<T>& step) {
  return [residual = step.out(0), g = step.in(1), sent = step.out(1), count = step.out_elements(1)](const run_context&) {
    kernel::round_with_feedback<T>(residual, g, sent, count);
  };
}

}}}  // namespace gshard::v0::detail
