// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds einsums and attention to kernels: contractions, contractions in a ring of devices, and attention in blocks.

#include <gshard/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/looped_step.hpp>
#include <gshard/exec/memory/buffer_reuse.hpp>
#include <gshard/kernel/gemm/attention.hpp>
#include <gshard/kernel/gemm/contract.hpp>
#include <gshard/kernel/move/copy.hpp>
#include <gshard/ops/attention/attention.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

/// The shapes of an attention on a device, and the positions of its heads and batch entries in the whole tensor.
struct attention_place {
  kernel::attention_sizes sizes;
  double rate = 0;
  std::uint32_t key = 0;
  std::vector<std::int64_t> batch;
  kernel::attention_dropout where;  // without the batch and the key of a run

  template <class T>
  explicit attention_place(const local_step<T>& step)
      : rate(own<attention_attributes>(step.n).dropout), key(std::uint32_t(step.n.attr.key)) {
    const bound_value &q = step.in_value(0), &k = step.in_value(1);
    const kernel::placement& at = step.in_place(0);
    const int batches = k.rank() - 3, heads = batches + 1, last = q.rank() - 1;
    const bool grouped = q.rank() > k.rank();
    const auto extent = [&](int d) { return at.extent[std::size_t(d)]; };
    sizes = {q.span(step.device, 0, batches), extent(batches), k.extent(step.device, batches), extent(heads),
             grouped ? extent(heads + 1) : 1, extent(last),    at.offset[std::size_t(batches)], own<attention_attributes>(step.n).causal};
    check_indices("attention", k.extents[std::size_t(batches)] + q.extents[std::size_t(batches)]);
    where.first_head = at.offset[std::size_t(heads)];
    where.first_repeat = grouped ? at.offset[std::size_t(heads) + 1] : 0;
    where.heads = q.extents[std::size_t(heads)];
    where.repeats = grouped ? q.extents[std::size_t(heads) + 1] : 1;
    where.queries = q.extents[std::size_t(batches)];
    for (std::int64_t b = 0; rate > 0 && b < sizes.batch; ++b) {
      std::int64_t global = 0, rest = b, stride = 1;
      for (int d = batches; d-- > 0; rest /= extent(d), stride *= q.extents[std::size_t(d)])
        global += (rest % extent(d) + at.offset[std::size_t(d)]) * stride;
      batch.push_back(global);
    }
  }
  kernel::attention_dropout dropout(const run_context& run) const {
    kernel::attention_dropout d = where;
    d.rate = rate;
    d.key = random_key{run.seed, run.step, key};
    d.batch = batch.data();
    return d;
  }
};

template <class T>
action bind(kernel_of<op::attention>, const local_step<T>& step) {
  return [q = step.in(0), k = step.in(1), v = step.in(2), seen_from = step.n.inputs > 3 ? step.ids(3) : nullptr, y = step.out(0),
          log_sum = step.out(1), at = attention_place(step)](const run_context& run) {
    kernel::attention<T>(q, k, v, seen_from, y, log_sum, at.sizes, at.dropout(run));
  };
}

template <class T>
action bind(kernel_of<op::attention_grad>, const local_step<T>& step) {
  return [q = step.in(0), k = step.in(1), v = step.in(2), log_sum = step.in(3), delta = step.in(4), dy = step.in(5),
          seen_from = step.n.inputs > 6 ? step.ids(6) : nullptr, dq = step.out(0), dk = step.out(1), dv = step.out(2),
          at = attention_place(step)](const run_context& run) {
    kernel::attention_grad<T>(q, k, v, log_sum, delta, dy, seen_from, dq, dk, dv, at.sizes, at.dropout(run));
  };
}

}}}  // namespace gshard::v0::detail
