// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rounding to bf16 with error feedback: the rounding error of one step is added in the next.

#include <gshard/base/bf16.hpp>
#include <gshard/kernel/threads.hpp>

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
