// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel of dropout: sets random elements to 0 and scales the others.

#include <gshard/core/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/move/random_fill.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/ops/random/dropout.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
void dropout_here(const T* x, T* y, const placement& at, double rate, random_key key) {
  const T scale = T(1 / (1 - rate));
  const auto threshold = static_cast<float>(rate);
  for_each_run(at, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
    const auto first = std::uint64_t(global);
    for_uniform01(
        key, first, std::uint64_t(count), [&](std::uint64_t begin, std::uint64_t n, const float* u) {
          const T* from = x + local + (begin - first);
          T* to = y + local + (begin - first);
          for (std::uint64_t i = 0; i < n; ++i) {
            const T kept = from[i] * scale;  // computed first, so that the selection needs no branch
            to[i] = u[i] >= threshold ? kept : T(0);
          }
        });
  });
}

}  // namespace detail

/// y = x / (1 - rate) where uniform01(key, global linear index) >= rate, else 0. With dy for x, the same call computes the derivative. In
/// place if y == x.
template <class T>
void dropout(const T* x, T* y, const placement& at, double rate, random_key key) {
  // Threads share the first dim with more than one index.
  std::size_t d = 0;
  while (d + 1 < std::size_t(at.rank) && at.extent[d] == 1) ++d;
  const std::int64_t n = at.rank == 0 ? 1 : at.extent[d], size = n == 0 ? 0 : element_count(at.rank, at.extent) / n;
  parallel_rows(n, 4 * size, [=](std::int64_t begin, std::int64_t end) {
    placement part = at;
    if (at.rank > 0) {
      part.extent[d] = end - begin;
      part.offset[d] += begin;
    }
    detail::dropout_here(x + begin * size, y + begin * size, part, rate, key);
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::dropout>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), at = step.out_place(), rate = own<dropout_attributes>(step.n).rate,
          key = std::uint32_t(step.n.attr.key)](const run_context& run) {
    kernel::dropout<T>(x, y, at, rate, random_key{run.seed, run.step, key});
  };
}

}}}  // namespace gshard::v0::detail
