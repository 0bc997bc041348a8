// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of random tensors.

#include <gshard/core/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/move/fill.hpp>
#include <gshard/ops/random/random.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::random>, const local_step<T>& step) {
  return [y = step.out(), at = step.out_place(), normal = own<random_attributes>(step.n).normal,
          key = std::uint32_t(step.n.attr.key)](const run_context& run) {
    const random_key of_run{run.seed, run.step, key};
    if (normal) kernel::fill_normal<T>(y, at, 1, of_run);
    else kernel::fill_uniform<T>(y, at, of_run);
  };
}

}}}  // namespace gshard::v0::detail
