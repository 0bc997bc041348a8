// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of einsums, also of those that exchange blocks while they compute.

#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/looped_step.hpp>
#include <gshard/exec/bind/pieces.hpp>
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/move/copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// The dims of an operand at one index of a factor, and the stride to the next index.
inline std::pair<kernel::operand_dims, std::int64_t> block_of(kernel::operand_dims d, int factor) {
  d.stride = kernel::row_major_strides(d.rank, d.extent);
  const auto at = std::size_t(std::find(d.factor.begin(), d.factor.begin() + d.rank, factor) - d.factor.begin());
  d.extent[at] = 1;
  return {d, (*d.stride)[at]};
}

/// An einsum of one operand that sums nothing: a transposition or a diagonal.
template <class T>
action bind_rearrangement(const local_step<T>& step) {
  const kernel::operand_dims x = step.in_dims(0), y = step.out_dims();
  const kernel::index_array own = kernel::row_major_strides(x.rank, x.extent);
  kernel::index_array from{};
  for (std::size_t d = 0; d < std::size_t(y.rank); ++d)
    for (std::size_t k = 0; k < std::size_t(x.rank); ++k)
      if (x.factor[k] == y.factor[d]) from[d] += own[k];
  return [from, to = kernel::row_major_strides(y.rank, y.extent), extent = y.extent, rank = y.rank,
          in = reinterpret_cast<const std::byte*>(step.in(0)), out = reinterpret_cast<std::byte*>(step.out())](const run_context&) {
    kernel::copy_block(in, from, out, to, extent, rank, sizeof(T));
  };
}

/// The whole einsum, and its pieces, which have the same bits. Therefore a result does not depend on the steps that are fused with it.
template <class T>
action bind_contraction(const local_step<T>& step) {
  const auto a = step.in_dims(0), y = step.out_dims();
  if (step.n.inputs == 1)
    return [c = kernel::contraction<T>(a, y), x = step.in(0), r = step.out()](const run_context&) { c.run(x, r); };
  const auto b = step.in_dims(1);
  const kernel::precision precision = precision_of(step.n);
  const batch_dim batch = batch_of(step.n, step.plan.values, step.device);
  const auto contraction = [&](const kernel::operand_dims& left, const kernel::operand_dims& right, const kernel::operand_dims& result) {
    const std::optional<int> pieces = batch.factor >= 0 ? std::optional(batch.factor) : std::nullopt;
    return kernel::contraction<T>(left, right, result, 1, false, precision, pieces);
  };
  action whole = [c = contraction(a, b, y), x = step.in(0), w = step.in(1), r = step.out()](const run_context&) { c.run(x, w, r); };
  if (batch.factor < 0) return whole;
  whole.elements = step.out_elements();
  const auto [left, left_step] = block_of(a, batch.factor);
  const auto [right, right_step] = block_of(b, batch.factor);
  const auto [result, size] = block_of(y, batch.factor);
  whole.piece = [c = contraction(left, right, result), x = step.in(0), w = step.in(1), r = step.out(), left_step, right_step,
                 size](const run_context&, std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin / size; at < end / size; ++at) c.run(x + at * left_step, w + at * right_step, r + at * size);
  };
  return whole;
}

template <class T>
action bind(kernel_of<op::einsum>, const local_step<T>& step) {
  if constexpr (has_sums(dtype_of<T>)) return bind_contraction(step);
  else return bind_rearrangement(step);
}

/// One action for all devices of this process, which exchange blocks in every iteration.
template <class T>
action bind(kernel_of<op::looped_einsum>, const local_step<T>& step) {
  return [loop = std::make_shared<looped_step<T>>(step.n, step.plan)](const run_context&) { (*loop)(); };
}

}}}  // namespace gshard::v0::detail
