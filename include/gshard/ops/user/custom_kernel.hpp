// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Calls the kernels of operations of the user.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/ops/user/call_on_shards_kernel.hpp>
#include <gshard/ops/user/custom.hpp>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::custom>, const local_step<T>& step) {
  const custom_operation& what = *step.n.attr.custom;
  return dtype_of<T> == what.element_f32 ? bind_user_code(step, what.f32) : bind_user_code(step, what.f64);
}

}}}  // namespace gshard::v0::detail
