// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel of iota.

#include <gshard/core/trace/iota.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel {

/// out[index] = the global index along dim `dim`.
inline void iota(std::int32_t* out, const placement& at, int dim) {
  const auto d = std::size_t(dim);
  const std::int64_t inner = row_major_strides(at.rank, at.extent)[d], n = element_count(at.rank, at.extent);
  for (std::int64_t i = 0, k = 0; i < n; i += inner, k = k + 1 == at.extent[d] ? 0 : k + 1)
    std::fill_n(out + i, inner, static_cast<std::int32_t>(at.offset[d] + k));
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::iota>, const local_step<T>& step) {
  check_indices("iota", step.out_line().whole);
  return [y = step.out_ids(), at = step.out_place(), along = step.n.attr.dim](const run_context&) { kernel::iota(y, at, along); };
}

}}}  // namespace gshard::v0::detail
