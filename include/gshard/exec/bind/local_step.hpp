// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A step of a plan on one device: its attributes, and the shards that its kernel reads and writes.

#include <gshard/core/ir/op.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/action.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/move/move.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// Throws unless the indices of a dim of this extent are int32 numbers.
inline void check_indices(const char* operation, std::int64_t extent) {
  if (extent - 1 > std::numeric_limits<std::int32_t>::max())
    throw error(std::string(operation) + ": the indices of a dim of extent " + std::to_string(extent) + " do not fit into int32");
}

/// Names an operation in the overloads of `bind`.
template <const operation& Kind>
struct kernel_of {};

/// A compute step of a plan on one device. T: the element type of its real tensors. A kernel is bound by a function
///
///     template <class T>
///     action bind(kernel_of<op::...>, const local_step<T>& step)
///
/// in the header next to that of its verb: that of `ops/along/cumsum.hpp` in `ops/along/cumsum_kernel.hpp`. It looks up sizes and addresses
/// once. The action runs the kernel.
template <class T>
class local_step {
 public:
  local_step(const node& step, const bound_plan& all, std::size_t on) : n(step), plan(all), device(on) {}

  const node& n;
  const bound_plan& plan;
  std::size_t device;  ///< Its index among the devices that this process holds.

  const bound_value& in_value(int i) const { return plan.values[std::size_t(n.input(i))]; }
  const bound_value& out_value(int i) const { return plan.values[std::size_t(n.output(i))]; }
  /// The elements of operands and results on this device.
  const T* in(int i) const { return in_value(i).template as<const T>(device); }
  const T* in_or_null(int i) const { return i < n.inputs ? in(i) : nullptr; }
  const std::int32_t* ids(int i) const { return in_value(i).template as<const std::int32_t>(device); }
  T* out(int i = 0) const { return out_value(i).template as<T>(device); }
  /// A result, or null if no step and no output reads it.
  T* out_if_read(int i) const {
    const lifetime& l = plan.plan.lifetimes[std::size_t(n.output(i))];
    return l.last > l.first ? out(i) : nullptr;
  }
  std::int32_t* out_ids(int i = 0) const { return out_value(i).template as<std::int32_t>(device); }

  const kernel::placement& in_place(int i) const { return in_value(i).places[device]; }
  const kernel::placement& out_place(int i = 0) const { return out_value(i).places[device]; }
  std::int64_t in_elements(int i) const { return in_value(i).elements(device); }
  std::int64_t out_elements(int i = 0) const { return out_value(i).elements(device); }

  /// Operand 0 as a matrix whose rows are its last dim.
  std::int64_t rows() const { return in_value(0).span(device, 0, in_value(0).rank() - 1); }
  std::int64_t cols() const { return in_value(0).extent(device, in_value(0).rank() - 1); }

  /// A shard as [outer, n, inner], with one dim as n. `first`: the global index of its first element along that dim. `whole`: the dim's
  /// global extent.
  struct along_dim {
    std::int64_t outer = 1, n = 1, inner = 1, first = 0, whole = 1;
  };
  along_dim line(const bound_value& v, int dim) const {
    const auto d = std::size_t(dim);
    return {v.span(device, 0, dim), v.extent(device, dim), v.span(device, dim + 1, v.rank()), v.places[device].offset[d], v.extents[d]};
  }
  along_dim in_line(int i) const { return line(in_value(i), n.attr.dim); }
  along_dim out_line(int i = 0) const { return line(out_value(i), n.attr.dim); }
  along_dim last_line(const bound_value& v) const { return line(v, v.rank() - 1); }

  /// The factors and extents of the dims of a shard.
  kernel::operand_dims dims_of(const bound_value& v, const short_list& factors) const {
    kernel::operand_dims d{};
    d.rank = v.rank();
    for (int i = 0; i < d.rank; ++i) {
      d.factor[std::size_t(i)] = factors[i];
      d.extent[std::size_t(i)] = v.extent(device, i);
    }
    return d;
  }
  kernel::operand_dims in_dims(int i) const { return dims_of(in_value(i), n.rule.in[i]); }
  kernel::operand_dims out_dims(int i = 0) const { return dims_of(out_value(i), n.rule.out[i]); }

  /// The windows through which the step reads the dims of an operand. {} for dims without a window.
  kernel::window_array windows(int operand) const {
    kernel::window_array w{};
    for (int d = 0; d < in_value(operand).rank(); ++d)
      if (const int row = window_row(n, operand, d)) w[std::size_t(d)] = plan.plan.windows[std::size_t(row)].bind(plan.sizes);
    return w;
  }
};

}}}  // namespace gshard::v0::detail
