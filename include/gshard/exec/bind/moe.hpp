// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds gating and the movement of tokens to and from experts to kernels.

#include <gshard/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/kernel/moe/dispatch.hpp>
#include <gshard/kernel/moe/gating.hpp>
#include <gshard/trace/routing.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
kernel::gating_sizes gating_sizes_of(const local_step<T>& step) {
  const kernel::placement& gates = step.in_place(0);
  return {gates.extent[0], gates.extent[1], gates.extent[2], step.plan.sizes.dim(step.n.attr.dims[0])};
}

template <class T>
action bind(operation<op::top2_gating>, const local_step<T>& step) {
  return [gates = step.in(0), mask = step.in_or_null(1), slot = step.out_ids(0), weight = step.out(1), aux = step.out(2),
          load = step.out(3), overflow = step.out(4), s = gating_sizes_of(step), first = step.in_place(0).offset[0],
          key = std::uint32_t(step.n.attr.key), random = step.n.attr.second == second_expert::random](const run_context& run) {
    kernel::top2_gating<T>(gates, mask, slot, weight, aux, load, overflow, s, random, random_key{run.seed, run.step, key}, first);
  };
}

template <class T>
action bind(operation<op::top2_gating_grad>, const local_step<T>& step) {
  return [gates = step.in(0), slot = step.ids(1), dweight = step.in(2), daux = step.in(3), mask = step.in_or_null(4),
          dgates = step.out(), s = gating_sizes_of(step)](const run_context&) {
    kernel::top2_gating_grad<T>(gates, mask, slot, dweight, daux, dgates, s);
  };
}

/// The expert buffers of a step: a tensor with dims group, expert, capacity slot and maybe model, in any order.
struct expert_side {
  kernel::gating_sizes sizes;
  std::int64_t expert_stride = 0, group_stride = 0, place_stride = 0;
  std::int64_t first_expert = 0, experts = 0, model = 0;

  template <class U>
  kernel::expert_buffers<U> buffers(U* data) const {
    return {data, expert_stride, group_stride, place_stride, first_expert, experts, model};
  }
};

/// The expert buffers with these factors, for the tokens of a tensor of slots.
inline expert_side expert_side_of(const kernel::placement& at, const short_list& factors, const kernel::placement& slot) {
  const kernel::index_array stride = kernel::row_major_strides(at.rank, at.extent);
  expert_side r;
  r.sizes.groups = slot.extent[0];
  r.sizes.tokens = slot.extent[1];
  for (int d = 0; d < factors.size(); ++d) {
    const auto i = std::size_t(d);
    switch (factors[d]) {
      case route::group: r.group_stride = stride[i]; break;
      case route::expert:
        r.expert_stride = stride[i];
        r.first_expert = at.offset[i];
        r.experts = at.extent[i];
        r.sizes.experts = at.global[i];
        break;
      case route::place:
        r.place_stride = stride[i];
        r.sizes.capacity = at.extent[i];
        break;
      case route::model: r.model = at.extent[i]; break;
      default: break;
    }
  }
  return r;
}
/// The result as expert buffers, for the slots in operand 1; operand 0 as expert buffers, likewise.
template <class T>
expert_side result_side(const local_step<T>& step, int slot) {
  return expert_side_of(step.out_place(), step.n.rule.out[0], step.in_place(slot));
}
template <class T>
expert_side operand_side(const local_step<T>& step) {
  return expert_side_of(step.in_place(0), step.n.rule.in[0], step.in_place(1));
}

template <class T>
action bind(operation<op::one_hot>, const local_step<T>& step) {
  return [slot = step.ids(0), weight = step.in_or_null(1), y = step.out(), r = result_side(step, 0)](const run_context&) {
    kernel::one_hot<T>(slot, weight, y, r.sizes, r.first_expert, r.experts);
  };
}

template <class T>
action bind(operation<op::one_hot_grad>, const local_step<T>& step) {
  return [d = step.in(0), slot = step.ids(1), dweight = step.out(), r = operand_side(step)](const run_context&) {
    kernel::one_hot_grad<T>(slot, d, dweight, r.sizes, r.first_expert, r.experts);
  };
}

template <class T>
action bind(operation<op::dispatch>, const local_step<T>& step) {
  return [x = step.in(0), slot = step.ids(1), weight = step.in_or_null(2), y = step.out(), r = result_side(step, 1)](const run_context&) {
    kernel::dispatch<T>(slot, weight, x, r.buffers(y), r.sizes);
  };
}

template <class T>
action bind(operation<op::combine>, const local_step<T>& step) {
  return [h = step.in(0), slot = step.ids(1), weight = step.in_or_null(2), y = step.out(), r = operand_side(step)](const run_context&) {
    kernel::combine<T>(slot, weight, r.buffers(h), y, r.sizes);
  };
}

template <class T>
action bind(operation<op::combine_weight_grad>, const local_step<T>& step) {
  return [h = step.in(0), slot = step.ids(1), dy = step.in(2), dweight = step.out(), r = operand_side(step)](const run_context&) {
    kernel::combine_weight_grad<T>(slot, r.buffers(h), dy, dweight, r.sizes);
  };
}

}}}  // namespace gshard::v0::detail
