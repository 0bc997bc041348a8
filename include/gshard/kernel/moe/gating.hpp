// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Top-2 gating of a mixture of experts: chooses two experts, and a capacity slot of each, for every token.

#include <gshard/base/random.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/kernel/threads.hpp>
#include <gshard/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// G local groups of S tokens; E experts with capacity for C tokens of each group.
struct gating_sizes {
  std::int64_t groups = 0, tokens = 0, experts = 0, capacity = 0;
};

namespace detail {

/// The two largest gates of a token. The smaller index wins ties, and NaN is the largest. second < 0 if there is only one expert.
struct top_two {
  std::int64_t first = 0, second = -1;
};

template <class T, class IsLarger>
top_two top_two_by(const T* gates, std::int64_t experts, IsLarger is_larger) {
  top_two top{0, experts > 1 ? 1 : -1};
  T largest = gates[0], runner_up = -std::numeric_limits<T>::infinity();
  for (std::int64_t e = 1; e < experts; ++e) {
    if (is_larger(gates[e], largest)) {
      top = {e, top.first};
      runner_up = largest;
      largest = gates[e];
    } else if (is_larger(gates[e], runner_up)) {
      top.second = e;
      runner_up = gates[e];
    }
  }
  return top;
}
template <class T>
top_two top_two_of(const T* gates, std::int64_t experts, bool looks_for_nan) {
  if (looks_for_nan) return top_two_by(gates, experts, [](T a, T b) { return a > b || (a != a && b == b); });
  return top_two_by(gates, experts, [](T a, T b) { return a > b; });
}

/// False if all numbers are finite. Costs little compared with the choice among the gates.
template <class T>
bool may_be_nan(const T* x, std::int64_t n) {
  return sum_of<T>(n, [=](auto at) { return at(x) * T(0); }) != T(0);
}

/// The gates of both choices, divided by their sum.
template <class T>
struct top_two_weights {
  T first, second, sum;

  top_two_weights(const T* gates, top_two top) {
    const T g1 = gates[top.first], g2 = top.second < 0 ? T(0) : gates[top.second];
    sum = g1 + g2;
    first = sum == T(0) ? T(0) : g1 / sum;
    second = sum == T(0) ? T(0) : g2 / sum;
  }
};

template <class T>
bool is_padding(const T* mask, std::int64_t token) {
  return mask != nullptr && mask[token] == T(0);
}

template <class T>
std::int64_t count_real_tokens(const T* mask, std::int64_t tokens) {
  std::int64_t n = 0;
  for (std::int64_t s = 0; s < tokens; ++s) n += is_padding(mask, s) ? 0 : 1;
  return std::max<std::int64_t>(n, 1);
}

}  // namespace detail

/// Top-2 gating, Algorithm 1 of the paper, for every group on its own. `gates` [G,S,E] is the softmax over the experts. `mask` [G,S] is 1
/// for a token and 0 for padding, which is neither routed nor counted (null: no padding). Results:
/// - slot [G,S,2]: e * C + c for a choice with capacity slot c of expert e, else -1;
/// - weight [G,S,2]: g1 / (g1 + g2) and g2 / (g1 + g2), normalized before choices are dropped; 0 where slot is -1;
/// - aux [G]: 1/E * sum over e of (c_e / n) * m_e. c_e: first choices of e among n tokens, overflowed ones too; m_e: the mean gate of e;
/// - load [G,E]: kept choices of each expert;
/// - overflow [G]: choices that were dropped because the expert was full.
/// aux, load and overflow may be null. All first choices of a group are served before any second one. With `random`, a second choice is
/// kept only if 2 * g2 / (g1 + g2) > uniform01(key, (group_offset + g) * S + s). It occupies a capacity slot either way. `group_offset`:
/// the global number of the first group. A gate that is NaN counts as the largest; the weights of its token are NaN, and so is aux.
template <class T>
void top2_gating(const T* gates, const T* mask, std::int32_t* slot, T* weight, T* aux, T* load, T* overflow,
                 const gating_sizes& sizes, bool random, random_key key, std::int64_t group_offset) {
  const auto [groups, tokens, experts, capacity] = sizes;
  if (experts * capacity > std::numeric_limits<std::int32_t>::max())
    throw error("top2_gating: " + std::to_string(experts) + " experts of capacity " +
                std::to_string(capacity) + " have more slots than an int32 can number");
  std::fill_n(slot, groups * tokens * 2, -1);
  std::fill_n(weight, groups * tokens * 2, T(0));
  if (experts == 0) {
    if (aux != nullptr) std::fill_n(aux, groups, T(0));
    if (overflow != nullptr) std::fill_n(overflow, groups, T(0));
    return;
  }
  const auto choose = [&](std::int64_t g) {
    thread_local std::vector<detail::top_two> top;
    thread_local std::vector<std::int64_t> used;  // capacity slots of each expert that were given away or refused
    thread_local std::vector<T> gate_sum;
    top.resize(std::size_t(tokens));
    used.assign(std::size_t(experts), 0);
    gate_sum.assign(std::size_t(experts), T(0));
    const T* const group = gates + g * tokens * experts;
    const bool looks_for_nan = detail::may_be_nan(group, tokens * experts);
    const T* const real = mask ? mask + g * tokens : nullptr;
    std::int32_t* const place = slot + g * tokens * 2;
    T* const kept = weight + g * tokens * 2;
    std::int64_t refused = 0;
    const auto take = [&](std::int64_t expert, bool wanted, std::int64_t at, T value) {
      const std::int64_t c = used[std::size_t(expert)]++;
      if (!wanted) return;
      if (c >= capacity) {
        ++refused;
        return;
      }
      place[at] = static_cast<std::int32_t>(expert * capacity + c);
      kept[at] = value;
    };
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (detail::is_padding(real, s)) continue;
      const T* row = group + s * experts;
      for (std::int64_t e = 0; e < experts; ++e) gate_sum[std::size_t(e)] += row[e];
      const auto choice = top[std::size_t(s)] = detail::top_two_of(row, experts, looks_for_nan);
      take(choice.first, true, 2 * s, detail::top_two_weights<T>(row, choice).first);
    }
    if (aux != nullptr) {
      const auto n = T(detail::count_real_tokens(real, tokens));
      T sum = 0;
      for (std::size_t e = 0; e < std::size_t(experts); ++e) sum += (T(used[e]) / n) * (gate_sum[e] / n);
      aux[g] = sum / T(experts);
    }
    for (std::int64_t s = 0; s < tokens; ++s) {
      const detail::top_two choice = top[std::size_t(s)];
      if (detail::is_padding(real, s) || choice.second < 0) continue;
      const T second = detail::top_two_weights<T>(group + s * experts, choice).second;
      const bool wanted = !random || !(2 * second <= T(uniform01(key, std::uint64_t((group_offset + g) * tokens + s))));
      take(choice.second, wanted, 2 * s + 1, second);
    }
    if (overflow != nullptr) overflow[g] = T(refused);
    if (load != nullptr) {
      std::fill_n(load + g * experts, experts, T(0));
      for (std::int64_t i = 0; i < 2 * tokens; ++i)
        if (place[i] >= 0) load[g * experts + place[i] / capacity] += T(1);
    }
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) choose(g);
  });
}

/// dgates [G,S,E] from the derivatives of weight [G,S,2] and aux [G] (null: zero). Choices, slots and counts c_e are constants. A kept
/// weight depends on both gates of its token, even if the other choice was dropped.
template <class T>
void top2_gating_grad(const T* gates, const T* mask, const std::int32_t* slot, const T* dweight,
                      const T* daux, T* dgates, const gating_sizes& sizes) {
  const auto [groups, tokens, experts, capacity] = sizes;
  std::fill_n(dgates, groups * tokens * experts, T(0));
  if (experts == 0) return;
  const auto differentiate = [&](std::int64_t g) {
    thread_local std::vector<detail::top_two> top;
    thread_local std::vector<T> first_choices;
    top.resize(std::size_t(tokens));
    first_choices.assign(std::size_t(experts), T(0));
    const T* const group = gates + g * tokens * experts;
    const bool looks_for_nan = detail::may_be_nan(group, tokens * experts);
    const T* const real = mask ? mask + g * tokens : nullptr;
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (detail::is_padding(real, s)) continue;
      top[std::size_t(s)] = detail::top_two_of(group + s * experts, experts, looks_for_nan);
      first_choices[std::size_t(top[std::size_t(s)].first)] += T(1);
    }
    const auto n = T(detail::count_real_tokens(real, tokens));
    const T scale = daux == nullptr ? T(0) : daux[g] / (T(experts) * n * n);
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (detail::is_padding(real, s)) continue;
      T* const d = dgates + (g * tokens + s) * experts;
      for (std::int64_t e = 0; e < experts; ++e) d[e] = scale * first_choices[std::size_t(e)];
      const detail::top_two choice = top[std::size_t(s)];
      const detail::top_two_weights<T> w(group + s * experts, choice);
      if (dweight == nullptr || choice.second < 0 || w.sum == T(0)) continue;
      const auto kept = [&](std::int64_t choice_at) { return slot[choice_at] < 0 ? T(0) : dweight[choice_at]; };
      const T d1 = kept(2 * (g * tokens + s)), d2 = kept(2 * (g * tokens + s) + 1);
      d[choice.first] += (d1 - d2) * w.second / w.sum;
      d[choice.second] += (d2 - d1) * w.first / w.sum;
    }
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) differentiate(g);
  });
}

}}}  // namespace gshard::v0::kernel
