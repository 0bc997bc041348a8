// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel that writes the states of loops.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/ops/loop/loop.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace gshard { inline namespace v0 { namespace detail {

/// Writes the state of a loop, which is the result. Without operands it writes zeros. With one, it copies the initial state. With two, the
/// old state and the new one, it copies the new one. With three, the state, a row and an index, it writes the row at the index.
template <class T>
action bind(kernel_of<op::carry>, const local_step<T>& step) {
  if (step.n.inputs == 0)
    return [to = step.out_value(0).data[step.device], bytes = step.out_value(0).bytes(step.device)](const run_context&) {
      if (bytes > 0) std::memset(to, 0, std::size_t(bytes));
    };
  if (writes_row(step.n))
    return [row = step.in(1), at = step.ids(2), to = step.out(), count = step.in_elements(1)](const run_context&) {
      std::copy_n(row, count, to + *at * count);
    };
  return [from = step.in_value(step.n.inputs - 1).data[step.device], to = step.out_value(0).data[step.device],
          bytes = step.out_value(0).bytes(step.device)](const run_context&) {
    if (bytes > 0 && from != to) std::memcpy(to, from, std::size_t(bytes));
  };
}

}}}  // namespace gshard::v0::detail
