// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of slices, padding, reversal, rotation and permutation of blocks.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/move/cast.hpp>
#include <gshard/exec/kernel/move/move.hpp>
#include <gshard/ops/window/moved.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// The bits of a number of this element type, as an element of the kernel.
template <class T>
T fill_of(dtype type, double number) {
  T bits{};
  with_element(type, [&]<class Element>(Element*) {
    const auto x = kernel::detail::converted<Element>(number);
    if constexpr (sizeof(Element) == sizeof(T)) std::memcpy(&bits, &x, sizeof(T));
  });
  return bits;
}

template <class T>
action bind(kernel_of<op::strided_slice>, const local_step<T>& step) {
  const kernel::window_array w = step.windows(0);
  const bound_value &x = step.in_value(0), &y = step.out_value(0);
  for (int d = 0; d < x.rank() && step.n.attr.inside; ++d) {
    const auto at = std::size_t(d);
    if (y.extents[at] > 0 && w[at].position(0) < 0)
      throw error("slice: index " + std::to_string(w[at].position(0)) + " is before the first of dim " + std::to_string(d));
    if (y.extents[at] > 0 && w[at].position(y.extents[at] - 1) >= x.extents[at])
      throw error("slice: index " + std::to_string(w[at].position(y.extents[at] - 1)) + " is beyond the extent " +
                  std::to_string(x.extents[at]) + " of dim " + std::to_string(d));
  }
  return [move = kernel::window_move<T>(step.in_place(0), step.out_place(), w), from = step.in(0), to = step.out(),
          fill = fill_of<T>(x.type, step.n.attr.fill)](const run_context&) { move.run(from, to, fill); };
}
template <class T>
action bind(kernel_of<op::pad>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}
template <class T>
action bind(kernel_of<op::reverse>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}
template <class T>
action bind(kernel_of<op::roll>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}

template <class T>
action bind(kernel_of<op::permute>, const local_step<T>& step) {
  const kernel::window_array w = step.windows(0);
  for (int d = 0; d < step.in_value(0).rank(); ++d) {
    const pair_list& pairs = w[std::size_t(d)].pairs;
    const std::int64_t devices = step.in_value(0).extents[std::size_t(d)];
    for (int i = 0; i < pairs.count; ++i)
      if (const device_pair& p = pairs.data[i]; p.source >= devices || p.target >= devices)
        throw error("collective_permute: the pair {" + std::to_string(p.source) + ", " + std::to_string(p.target) + "} is beyond the " +
                    std::to_string(devices) + " devices along the axis");
  }
  return bind(kernel_of<op::strided_slice>{}, step);
}

}}}  // namespace gshard::v0::detail
