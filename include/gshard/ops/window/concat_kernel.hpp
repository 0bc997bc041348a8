// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel of concat.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/move/move.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/moved_kernel.hpp>

#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::concat>, const local_step<T>& step) {
  std::vector<std::pair<const T*, kernel::window_move<T>>> parts;
  for (int i = 0; i < step.n.inputs; ++i)
    parts.emplace_back(step.in(i), kernel::window_move<T>(step.in_place(i), step.out_place(), step.windows(i)));
  return [parts, to = step.out()](const run_context&) {
    for (const auto& [from, move] : parts) move.run_into(from, to);
  };
}

}}}  // namespace gshard::v0::detail
