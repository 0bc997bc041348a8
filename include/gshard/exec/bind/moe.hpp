// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds gating and the movement of tokens to and from experts to kernels.

#include <gshard/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/looped_step.hpp>
#include <gshard/kernel/gemm/grouped.hpp>
#include <gshard/kernel/moe/dispatch.hpp>
#include <gshard/kernel/moe/expert_choice.hpp>
#include <gshard/kernel/moe/expert_groups.hpp>
#include <gshard/kernel/moe/expert_rows.hpp>
#include <gshard/kernel/moe/gating.hpp>
#include <gshard/moe/expert_groups.hpp>
#include <gshard/moe/gating.hpp>
#include <gshard/moe/grouped_product.hpp>
#include <gshard/moe/routing.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Throws if there are no experts.
template <class T>
kernel::gating_sizes gating_sizes_of(const local_step<T>& step) {
  const auto a = own<gating_attributes>(step.n);
  const kernel::placement& gates = step.in_place(0);
  const std::int64_t experts = gates.extent[2], choices = a.by_experts ? experts : a.k;
  if (experts < 1) {
    const plan_view& plan = step.plan.plan;
    throw error((a.by_experts ? "expert_choice_gating: " : "top_k_gating: ") +
                text_of(plan.dims[std::size_t(plan.at(step.n.input(0)).dims[2])]) + " has extent 0: a gating needs an expert");
  }
  return {gates.extent[0], gates.extent[1], experts, step.plan.sizes.dim(step.n.attr.dims[0]), choices};
}
/// The optional operand of gating, or null. `before`: the number of operands before the optional ones.
template <class T>
const T* gating_operand_of(const local_step<T>& step, route::gating_input which, int before = 1) {
  const int at = route::gating_operand(own<gating_attributes>(step.n), which, before);
  return at < 0 ? nullptr : step.in(at);
}
template <class T>
kernel::gating_rules<T> gating_rules_of(const local_step<T>& step, int before = 1) {
  const auto a = own<gating_attributes>(step.n);
  kernel::gating_rules<T> r;
  r.scores = gating_operand_of(step, route::gating_input::scores, before);
  r.importance = gating_operand_of(step, route::gating_input::importance, before);
  r.has_threshold = a.second == second_expert::above_threshold;
  r.threshold = a.threshold;
  r.gates_as_weights = a.gates_as_weights;
  return r;
}

template <class T>
action bind(kernel_of<op::top_k_gating>, const local_step<T>& step) {
  const auto a = own<gating_attributes>(step.n);
  const T* const mask = gating_operand_of(step, route::gating_input::padding);
  if (a.by_experts)
    return [gates = step.in(0), mask, slot = step.out_ids(0), weight = step.out(1), aux = step.out(2), load = step.out(3),
            overflow = step.out(4), demand = step.out(5), s = gating_sizes_of(step), rules = gating_rules_of(step)](const run_context&) {
      kernel::expert_choice<T>(gates, mask, slot, weight, aux, load, overflow, demand, s, rules.scores);
    };
  return [gates = step.in(0), mask, slot = step.out_ids(0), weight = step.out(1), aux = step.out_if_read(2),
          load = step.out_if_read(3), overflow = step.out_if_read(4), demand = step.out_if_read(5), s = gating_sizes_of(step),
          rules = gating_rules_of(step), first = step.in_place(0).offset[0], key = std::uint32_t(step.n.attr.key),
          random = a.second == second_expert::random](const run_context& run) {
    const random_key numbers{run.seed, run.step, key};
    kernel::top_k_gating<T>(gates, mask, slot, weight, aux, load, overflow, demand, s, random, numbers, first, rules);
  };
}

template <class T>
action bind(kernel_of<op::top_k_gating_grad>, const local_step<T>& step) {
  if (own<gating_attributes>(step.n).by_experts)
    return [slot = step.ids(1), dweight = step.in(2), dgates = step.out(), s = gating_sizes_of(step)](const run_context&) {
      kernel::expert_choice_grad<T>(slot, dweight, dgates, s);
    };
  return [gates = step.in(0), slot = step.ids(1), dweight = step.in(2), daux = step.in(3), dgates = step.out(),
          mask = gating_operand_of(step, route::gating_input::padding, 4), s = gating_sizes_of(step),
          rules = gating_rules_of(step, 4)](const run_context&) {
    kernel::top_k_gating_grad<T>(gates, mask, slot, dweight, daux, dgates, s, rules);
  };
}

/// The sizes of a step that has a tensor of gating slots as operand 0, and rows [G,S,N] and slots of rows [N,G,R,K].
template <class T>
kernel::expert_group_sizes expert_group_sizes_of(const local_step<T>& step, const kernel::placement& row,
                                                 const kernel::placement& of_rows) {
  const kernel::placement& slot = step.in_place(0);
  const dim_list& dims = step.n.attr.dims;
  return {{slot.extent[0], slot.extent[1], step.plan.sizes.dim(dims[0]), step.plan.sizes.dim(dims[1]), slot.extent[2]},
          row.extent[2],
          of_rows.extent[2]};
}

template <class T>
action bind(kernel_of<op::expert_group_slots>, const local_step<T>& step) {
  return [slot = step.ids(0), weight = step.in(1), row = step.out_ids(0), group_slot = step.out_ids(1), group_weight = step.out(2),
          overflow = step.out(3), s = expert_group_sizes_of(step, step.out_place(0), step.out_place(1))](const run_context&) {
    kernel::expert_group_slots<T>(slot, weight, row, group_slot, group_weight, overflow, s);
  };
}

template <class T>
action bind(kernel_of<op::expert_group_slots_grad>, const local_step<T>& step) {
  return [slot = step.ids(0), row = step.ids(1), d = step.in(2), dweight = step.out(),
          s = expert_group_sizes_of(step, step.in_place(1), step.in_place(2))](const run_context&) {
    kernel::expert_group_slots_grad<T>(slot, row, d, dweight, s);
  };
}

template <class T>
action bind(kernel_of<op::expert_rows>, const local_step<T>& step) {
  const kernel::placement &slot = step.in_place(0), &count = step.out_place(1);
  const dim_list& dims = step.n.attr.dims;
  kernel::expert_group_sizes s{{slot.extent[0], slot.extent[1], count.extent[2], step.plan.sizes.dim(dims[1]), slot.extent[2]},
                               count.extent[0],
                               step.plan.sizes.dim(dims[2])};
  return [slot = step.ids(0), row = step.out_ids(0), count = step.out_ids(1), overflow = step.out(2), s](const run_context&) {
    kernel::expert_rows<T>(slot, row, count, overflow, s);
  };
}

/// The sizes of a product of rows [N,G,R,in], with results of `out` elements per row.
template <class T>
kernel::grouped_sizes grouped_sizes_of(const local_step<T>& step, std::int64_t out) {
  const kernel::placement &x = step.in_place(0), &count = step.in_place(2);
  return {x.extent[0], x.extent[1], x.extent[2], count.extent[2], x.extent[3], out};
}

template <class T>
action bind(kernel_of<op::grouped_product>, const local_step<T>& step) {
  return [x = step.in(0), w = step.in(1), transposed = step.n.rule.in[1].same(route::transposed_matrices), count = step.ids(2),
          y = step.out(), s = grouped_sizes_of(step, step.out_place().extent[3]), rounds = precision_of(step.n)](const run_context&) {
    kernel::grouped_product<T>(x, w, transposed, count, y, s, rounds);
  };
}

template <class T>
action bind(kernel_of<op::grouped_weight_grad>, const local_step<T>& step) {
  return [x = step.in(0), dy = step.in(1), count = step.ids(2), dw = step.out(), s = grouped_sizes_of(step, step.in_place(1).extent[3]),
          rounds = precision_of(step.n)](const run_context&) {
    kernel::grouped_weight_grad<T>(x, dy, count, dw, s, rounds);
  };
}

/// The expert buffers of a step: a tensor with dims group, expert, capacity slot and maybe model, in any order. With a dim of
/// expert groups, each expert group has its own tokens, slots and buffers.
struct expert_side {
  kernel::gating_sizes sizes;
  std::int64_t expert_stride = 0, group_stride = 0, place_stride = 0, expert_group_stride = 0;
  std::int64_t first_expert = 0, experts = 0, model = 0, expert_groups = 1;

  std::int64_t tokens() const { return sizes.groups * sizes.tokens; }
  template <class U>
  kernel::expert_buffers<U> buffers(U* data, std::int64_t expert_group) const {
    return {data + expert_group * expert_group_stride, expert_stride, group_stride, place_stride, first_expert, experts, model};
  }
  /// The slots or weights of an expert group. Null if `data` is null.
  template <class U>
  U* slots(U* data, std::int64_t expert_group) const {
    return data ? data + expert_group * tokens() * sizes.choices : nullptr;
  }
  template <class U>
  U* tokens(U* data, std::int64_t expert_group) const {
    return data + expert_group * tokens() * model;
  }
};

/// The expert buffers with these factors, for the tokens of a tensor of slots.
inline expert_side expert_side_of(const kernel::placement& at, const short_list& factors, const kernel::placement& slot) {
  const kernel::index_array stride = kernel::row_major_strides(at.rank, at.extent);
  const auto last = std::size_t(slot.rank) - 1;
  expert_side r;
  r.sizes.groups = slot.extent[last - 2];
  r.sizes.tokens = slot.extent[last - 1];
  r.sizes.choices = slot.extent[last];
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
      case route::expert_group:
        r.expert_group_stride = stride[i];
        r.expert_groups = at.extent[i];
        break;
      default: break;
    }
  }
  return r;
}
/// The result as expert buffers, for the slots in operand `slot`. operand_side: operand 0 as expert buffers, for the slots in operand 1.
template <class T>
expert_side result_side(const local_step<T>& step, int slot) {
  return expert_side_of(step.out_place(), step.n.rule.out[0], step.in_place(slot));
}
template <class T>
expert_side operand_side(const local_step<T>& step) {
  return expert_side_of(step.in_place(0), step.n.rule.in[0], step.in_place(1));
}

template <class T>
action bind(kernel_of<op::one_hot>, const local_step<T>& step) {
  return [slot = step.ids(0), weight = step.in_or_null(1), y = step.out(), r = result_side(step, 0)](const run_context&) {
    kernel::one_hot<T>(slot, weight, y, r.sizes, r.first_expert, r.experts);
  };
}

template <class T>
action bind(kernel_of<op::one_hot_grad>, const local_step<T>& step) {
  return [d = step.in(0), slot = step.ids(1), dweight = step.out(), r = operand_side(step)](const run_context&) {
    kernel::one_hot_grad<T>(slot, d, dweight, r.sizes, r.first_expert, r.experts);
  };
}

template <class T>
action bind(kernel_of<op::dispatch>, const local_step<T>& step) {
  return [x = step.in(0), slot = step.ids(1), weight = step.in_or_null(2), y = step.out(), r = result_side(step, 1)](const run_context&) {
    for (std::int64_t n = 0; n < r.expert_groups; ++n)
      kernel::dispatch<T>(r.slots(slot, n), r.slots(weight, n), r.tokens(x, n), r.buffers(y, n), r.sizes);
  };
}

template <class T>
action bind(kernel_of<op::combine>, const local_step<T>& step) {
  return [h = step.in(0), slot = step.ids(1), weight = step.in_or_null(2), y = step.out(), r = operand_side(step)](const run_context&) {
    for (std::int64_t n = 0; n < r.expert_groups; ++n)
      kernel::combine<T>(r.slots(slot, n), r.slots(weight, n), r.buffers(h, n), r.tokens(y, n), r.sizes);
  };
}

template <class T>
action bind(kernel_of<op::combine_weight_grad>, const local_step<T>& step) {
  return [h = step.in(0), slot = step.ids(1), dy = step.in(2), dweight = step.out(), r = operand_side(step)](const run_context&) {
    for (std::int64_t n = 0; n < r.expert_groups; ++n)
      kernel::combine_weight_grad<T>(r.slots(slot, n), r.buffers(h, n), r.tokens(dy, n), r.slots(dweight, n), r.sizes);
  };
}

}}}  // namespace gshard::v0::detail
