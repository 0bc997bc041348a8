// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Mixture-of-experts dispatch and combine: copies tokens to expert buffers and back by the slots of top_k_gating. Algorithm 2 of the paper
// writes these as einsums with one-hot tensors [G,S,E,C]. A slot is e * C + c, or -1 for a dropped choice. All functions handle the local
// experts [e_begin, e_begin + e_count). Slots of other experts count as dropped.

#include <gshard/kernel/moe/gating.hpp>
#include <gshard/kernel/threads.hpp>
#include <gshard/kernel/vector.hpp>

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
