// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels that send tokens to experts and back: dispatch, combine and one-hot.
//
// A slot is e * C + c, or -1 for a dropped choice. Kernels handle the experts of a device. Slots of other experts count as dropped.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/moe/routing/gating_kernel.hpp>
#include <gshard/moe/routing/routing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// The buffers of the local experts. Row (e, g, c) has `model` contiguous elements at data + e * stride_e + g * stride_g + c * stride_c.
/// e is 0 for the first local expert.
template <class T>
struct expert_buffers {
  T* data = nullptr;
  std::int64_t stride_e = 0, stride_g = 0, stride_c = 0;
  std::int64_t e_begin = 0, e_count = 0;
  std::int64_t model = 0;
};

namespace detail {

/// The slots of the local experts in a group: slot - offset is in [0, size).
struct local_slots {
  std::int64_t offset, size;

  local_slots(std::int64_t e_begin, std::int64_t e_count, const gating_sizes& sizes)
      : offset(e_begin * sizes.capacity), size(e_count * sizes.capacity) {}

  bool contains(std::int32_t slot) const { return slot >= offset && slot < offset + size; }
};

template <class T>
T* row_of_slot(const expert_buffers<T>& buffers, std::int64_t local_slot, std::int64_t g,
               std::int64_t capacity) {
  return buffers.data + local_slot / capacity * buffers.stride_e + g * buffers.stride_g +
         local_slot % capacity * buffers.stride_c;
}

}  // namespace detail

/// buffers[e,g,c,:] = weight[g,s,k] * x[g,s,:] where slot[g,s,k] = e * C + c, zero in empty slots. `weight` may be null (all ones). x is
/// [G,S,M], contiguous.
template <class T>
void dispatch(const std::int32_t* slot, const T* weight, const T* x, const expert_buffers<T>& buffers,
              const gating_sizes& sizes) {
  const detail::local_slots local(buffers.e_begin, buffers.e_count, sizes);
  const std::int64_t choices_of_token = sizes.choices, n = choices_of_token * sizes.tokens, model = buffers.model;
  thread_local std::vector<std::int64_t> choice_of;  // inverse of slot, so that every row is written once
  choice_of.assign(std::size_t(sizes.groups * local.size), -1);
  for (std::int64_t i = 0; i < sizes.groups * n; ++i)
    if (local.contains(slot[i])) choice_of[std::size_t(i / n * local.size + slot[i] - local.offset)] = i;
  const std::int64_t* const choices = choice_of.data();  // of the calling thread
  parallel_rows(sizes.groups * local.size, model, [=, &buffers, &sizes](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      T* row = detail::row_of_slot(buffers, at % local.size, at / local.size, sizes.capacity);
      const std::int64_t i = choices[at];
      if (i < 0) {
        std::fill_n(row, model, T(0));
        continue;
      }
      const T* token = x + i / choices_of_token * model;
      if (weight == nullptr) {
        std::copy_n(token, model, row);
      } else {
        const T w = weight[i];
        for (std::int64_t m = 0; m < model; ++m) row[m] = w * token[m];
      }
    }
  });
}

/// y[g,s,:] = sum over the choices k, in order, of weight[g,s,k] * buffers[e,g,c,:] where slot[g,s,k] = e * C + c.
/// `weight` may be null (all ones). y is [G,S,M], contiguous; a token without a kept choice gets zeros.
template <class T>
void combine(const std::int32_t* slot, const T* weight, const expert_buffers<const T>& buffers, T* y,
             const gating_sizes& sizes) {
  const detail::local_slots local(buffers.e_begin, buffers.e_count, sizes);
  const std::int64_t model = buffers.model;
  parallel_rows(sizes.groups * sizes.tokens, (sizes.choices + 1) * model, [=, &buffers, &sizes](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      T* const to = y + token * model;
      // Choices are added in pairs. The first pair overwrites; an odd last choice is added alone.
      const T* row[2]{};
      T w[2]{};
      int waiting = 0;
      bool written = false;
      for (std::int64_t i = sizes.choices * token; i < sizes.choices * (token + 1); ++i) {
        if (!local.contains(slot[i])) continue;
        row[waiting] = detail::row_of_slot(buffers, slot[i] - local.offset, token / sizes.tokens, sizes.capacity);
        w[waiting++] = weight == nullptr ? T(1) : weight[i];
        if (waiting < 2) continue;
        waiting = 0;
        if (written)
          for (std::int64_t m = 0; m < model; ++m) to[m] = (to[m] + w[0] * row[0][m]) + w[1] * row[1][m];
        else
          for (std::int64_t m = 0; m < model; ++m) to[m] = w[0] * row[0][m] + w[1] * row[1][m];
        written = true;
      }
      if (waiting == 0) {
        if (!written) std::fill_n(to, model, T(0));
      } else if (written) {
        for (std::int64_t m = 0; m < model; ++m) to[m] += w[0] * row[0][m];
      } else {
        for (std::int64_t m = 0; m < model; ++m) to[m] = w[0] * row[0][m];
      }
    }
  });
}

/// The derivative of combine with respect to its weights: dweight[g,s,k] = <buffers[e,g,c,:], dy[g,s,:]> where slot[g,s,k] = e * C + c,
/// else 0.
template <class T>
void combine_weight_grad(const std::int32_t* slot, const expert_buffers<const T>& buffers, const T* dy,
                         T* dweight, const gating_sizes& sizes) {
  const detail::local_slots local(buffers.e_begin, buffers.e_count, sizes);
  const std::int64_t choices = sizes.choices;
  parallel_rows(choices * sizes.groups * sizes.tokens, 2 * buffers.model, [=, &buffers, &sizes](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      dweight[i] = !local.contains(slot[i])
                       ? T(0)
                       : detail::dot<T>(buffers.model,
                                        detail::row_of_slot(buffers, slot[i] - local.offset,
                                                            i / choices / sizes.tokens, sizes.capacity),
                                        dy + i / choices * buffers.model);
  });
}

/// out[g,s,e,c] = weight[g,s,k] where slot[g,s,k] = e * C + c, else 0, for the local experts. This is the combine tensor of the paper, or
/// its dispatch mask if `weight` is null. out is [G,S,e_count,C], contiguous.
template <class T>
void one_hot(const std::int32_t* slot, const T* weight, T* out, const gating_sizes& sizes,
             std::int64_t e_begin, std::int64_t e_count) {
  const detail::local_slots local(e_begin, e_count, sizes);
  const std::int64_t tokens = sizes.groups * sizes.tokens, choices = sizes.choices;
  parallel_rows(tokens, local.size, [=](std::int64_t begin, std::int64_t end) {
    std::fill_n(out + begin * local.size, (end - begin) * local.size, T(0));
    for (std::int64_t i = choices * begin; i < choices * end; ++i)
      if (local.contains(slot[i]))
        out[i / choices * local.size + slot[i] - local.offset] = weight == nullptr ? T(1) : weight[i];
  });
}

/// The derivative of one_hot with respect to its weights: dweight[g,s,k] = d[g,s,e,c] where slot[g,s,k] = e * C + c, else 0.
template <class T>
void one_hot_grad(const std::int32_t* slot, const T* d, T* dweight, const gating_sizes& sizes,
                  std::int64_t e_begin, std::int64_t e_count) {
  const detail::local_slots local(e_begin, e_count, sizes);
  const std::int64_t choices = sizes.choices;
  parallel_rows(choices * sizes.groups * sizes.tokens, 16, [=](std::int64_t begin, std::int64_t end) {  // cost of a cache miss
    for (std::int64_t i = begin; i < end; ++i)
      dweight[i] = local.contains(slot[i]) ? d[i / choices * local.size + slot[i] - local.offset] : T(0);
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

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
