// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of gatings: tokens choose experts, or experts choose tokens.

#include <gshard/core/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/moe/routing/gating.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// G local groups of S tokens; E experts, at least one, with capacity for C tokens of each group; K choices of a token.
struct gating_sizes {
  std::int64_t groups = 0, tokens = 0, experts = 0, capacity = 0;
  std::int64_t choices = 2;
};

/// Departures from Algorithm 1 of the paper.
template <class T>
struct gating_rules {
  const T* scores = nullptr;      ///< [G,S,E]: tokens choose the experts with the largest scores. Null: with the largest gates.
  const T* importance = nullptr;  ///< [G,S]: tokens take slots in the order of decreasing importance. Null: in their order.
  bool has_threshold = false;     ///< A second choice is kept only if its weight exceeds the threshold.
  double threshold = 0.5;
  bool gates_as_weights = false;  ///< The weights are the gates.

  bool any() const { return scores != nullptr || importance != nullptr || has_threshold || threshold != 0.5 || gates_as_weights; }
};

namespace detail {

/// a > b, where NaN is the largest.
template <class T>
bool is_larger_or_nan(T a, T b) {
  return a > b || (a != a && b == b);
}

/// The experts of the largest gates of a token, in order; -1 where there are fewer experts than choices. The smaller index wins ties, and
/// NaN is the largest.
template <class T, class IsLarger>
void choose_largest_by(const T* gates, std::int64_t experts, std::int64_t choices, std::int64_t* chosen, IsLarger is_larger) {
  if (choices == 2) {  // both in registers
    std::int64_t first = 0, second = experts > 1 ? 1 : -1;
    T largest = gates[0], runner_up = -std::numeric_limits<T>::infinity();
    for (std::int64_t e = 1; e < experts; ++e) {
      if (is_larger(gates[e], largest)) {
        second = first;
        first = e;
        runner_up = largest;
        largest = gates[e];
      } else if (is_larger(gates[e], runner_up)) {
        second = e;
        runner_up = gates[e];
      }
    }
    chosen[0] = first;
    chosen[1] = second;
    return;
  }
  std::int64_t count = 0;
  T smallest = 0;  // of the chosen gates, when all choices are made
  for (std::int64_t e = 0; e < experts; ++e) {
    const T gate = gates[e];
    if (count == choices && !is_larger(gate, smallest)) continue;
    std::int64_t at = count == choices ? choices - 1 : count++;
    for (; at > 0 && is_larger(gate, gates[chosen[at - 1]]); --at) chosen[at] = chosen[at - 1];
    chosen[at] = e;
    smallest = gates[chosen[count - 1]];
  }
  std::fill(chosen + count, chosen + choices, -1);
}
/// Up to this number of experts, a choice without branches takes less time than mispredicted branches. Selection is cheap with AVX-512.
inline constexpr std::int64_t few_experts = vector_bytes == 64 ? 16 : 8;

/// The same for two choices among a few gates, none of them NaN. Compilers turn scalar selections into branches, but not selections of
/// vectors. Therefore each number fills all lanes of a vector.
template <class T>
void choose_two(const T* gates, std::int64_t experts, std::int64_t* chosen) {
  using number = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using values [[gnu::vector_size(16)]] = T;
  using numbers [[gnu::vector_size(16)]] = number;
  numbers first{}, second = numbers{} + number(experts > 1 ? 1 : -1), e = numbers{} + 1;
  values largest = values{} + gates[0], runner_up = values{} - std::numeric_limits<T>::infinity();
  for (std::int64_t i = 1; i < experts; ++i, e += 1) {
    const values gate = values{} + gates[i], smaller = gate > largest ? largest : gate;
    const numbers is_first = gate > largest, is_second = gate > runner_up;
    second = is_first ? first : is_second ? e : second;
    first = is_first ? e : first;
    runner_up = smaller > runner_up ? smaller : runner_up;
    largest = is_first ? gate : largest;
  }
  chosen[0] = first[0];
  chosen[1] = second[0];
}
template <class T>
void choose_largest(const T* gates, std::int64_t experts, std::int64_t choices, std::int64_t* chosen, bool looks_for_nan) {
  if (looks_for_nan)
    choose_largest_by(gates, experts, choices, chosen, [](T a, T b) { return is_larger_or_nan(a, b); });
  else if (choices == 2 && experts <= few_experts)
    choose_two(gates, experts, chosen);
  else
    choose_largest_by(gates, experts, choices, chosen, [](T a, T b) { return a > b; });
}

/// False if all numbers are finite. Costs little compared with the choice among the gates.
template <class T>
bool may_be_nan(const T* x, std::int64_t n) {
  return sum_of<T>(n, [=](auto at) { return at(x) * T(0); }) != T(0);
}

/// Sets the weights to the chosen gates of a token, divided by their sum; zeros if the sum is zero. `as_weights`: to the gates. Returns the
/// sum.
template <class T>
T normalize_chosen(const T* gates, const std::int64_t* chosen, std::int64_t choices, T* weight, bool as_weights = false) {
  if (choices == 2) {  // both in registers
    const T first = gates[chosen[0]], second = chosen[1] < 0 ? T(0) : gates[chosen[1]], both = first + second;
    weight[0] = as_weights ? first : both == T(0) ? T(0) : first / both;
    weight[1] = as_weights ? second : both == T(0) ? T(0) : second / both;
    return both;
  }
  T sum = 0;
  for (std::int64_t k = 0; k < choices; ++k) {
    weight[k] = chosen[k] < 0 ? T(0) : gates[chosen[k]];
    sum = k == 0 ? weight[0] : sum + weight[k];
  }
  if (as_weights) return sum;
  for (std::int64_t k = 0; k < choices; ++k) weight[k] = sum == T(0) ? T(0) : weight[k] / sum;
  return sum;
}

/// Calls f with the number of choices as a constant: 2, so that the compiler specializes for it, or 0 for any other number.
template <class F>
void with_choices(const gating_sizes& sizes, F f) {
  if (sizes.choices == 2)
    f(std::integral_constant<std::int64_t, 2>());
  else
    f(std::integral_constant<std::int64_t, 0>());
}

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

/// The indices of the tokens in the order of decreasing importance; NaN first.
template <class T>
void order_by_importance(const T* importance, std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), std::int64_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [=](std::int64_t a, std::int64_t b) { return is_larger_or_nan(importance[a], importance[b]); });
}

}  // namespace detail

/// Top-k gating for every group separately; with k = 2, Algorithm 1 of the paper. `gates` [G,S,E] is the softmax over the experts. `mask`
/// [G,S] is 1 for a token and 0 for padding, which is neither routed nor counted (null: no padding). Results:
/// - slot [G,S,K]: e * C + c for a choice with capacity slot c of expert e, else -1;
/// - weight [G,S,K]: g_k / (g_1 + ... + g_K), normalized before choices are dropped; 0 where slot is -1;
/// - aux [G]: 1/E * sum over e of (c_e / n) * m_e. c_e: first choices of e among n tokens, dropped or not; m_e: the mean gate of e;
/// - load [G,E]: kept choices of each expert;
/// - overflow [G]: choices that were dropped because the expert was full;
/// - demand [G,E]: choices of each expert, kept or dropped because it was full.
/// aux, load, overflow and demand may be null. All first choices of a group take slots before any second choice, and so on.
/// With `random`, a second choice is kept only if its weight / threshold > uniform01(key, (group_offset + g) * S + s). It occupies a slot
/// either way. `group_offset`: the global number of the first group. A gate that is NaN counts as the largest; the weights of its token
/// are NaN, and so is aux.
template <class T>
void top_k_gating(const T* gates, const T* mask, std::int32_t* slot, T* weight, T* aux, T* load, T* overflow, T* demand,
                  const gating_sizes& sizes, bool random, random_key key, std::int64_t group_offset, const gating_rules<T>& other = {}) {
  const std::int64_t groups = sizes.groups, tokens = sizes.tokens, experts = sizes.experts, capacity = sizes.capacity;
  if (experts * capacity > std::numeric_limits<std::int32_t>::max())
    throw error("top_k_gating: " + std::to_string(experts) + " experts of capacity " +
                std::to_string(capacity) + " have more slots than an int32 can number");
  std::fill_n(slot, groups * tokens * sizes.choices, -1);
  std::fill_n(weight, groups * tokens * sizes.choices, T(0));
  const auto choose = [=](std::int64_t g, auto fixed, auto has_rules) {
    const gating_rules<T> rules = decltype(has_rules)::value ? other : gating_rules<T>();  // without rules, a constant
    const std::int64_t choices = decltype(fixed)::value > 0 ? decltype(fixed)::value : sizes.choices;
    thread_local std::vector<std::int64_t> chosen_experts, used_slots, by_importance;
    thread_local std::vector<T> chosen_weights, gate_sums;
    chosen_experts.resize(std::size_t(tokens * choices));
    chosen_weights.resize(chosen_experts.size());
    used_slots.assign(std::size_t(experts), 0);
    gate_sums.assign(std::size_t(experts), T(0));
    // Addresses of thread_local memory, looked up once.
    std::int64_t *const chosen = chosen_experts.data(), *const used = used_slots.data();  // used: slots given away or refused
    T *const chosen_weight = chosen_weights.data(), *const gate_sum = gate_sums.data();
    const T* const group = gates + g * tokens * experts;
    const T* const scores = rules.scores ? rules.scores + g * tokens * experts : group;
    const bool looks_for_nan = detail::may_be_nan(scores, tokens * experts);
    const T* const real = mask ? mask + g * tokens : nullptr;
    const std::int64_t* order = nullptr;
    if (rules.importance) {
      by_importance.resize(std::size_t(tokens));
      detail::order_by_importance(rules.importance + g * tokens, by_importance);
      order = by_importance.data();
    }
    std::int32_t* const place = slot + g * tokens * choices;
    T* const kept = weight + g * tokens * choices;
    std::int64_t refused = 0;
    T* const chosen_of = demand ? demand + g * experts : nullptr;  // first, the unwanted second choices are subtracted
    if (chosen_of) std::fill_n(chosen_of, experts, T(0));
    const auto take = [&](std::int64_t at, bool wanted) {
      const std::int64_t expert = chosen[at];
      const std::int64_t c = used[expert]++;
      if (!wanted) {
        if (chosen_of) chosen_of[expert] -= T(1);
        return;
      }
      if (c >= capacity) {
        ++refused;
        return;
      }
      place[at] = static_cast<std::int32_t>(expert * capacity + c);
      kept[at] = chosen_weight[at];
    };
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int64_t s = order ? order[i] : i;
      if (detail::is_padding(real, s)) continue;
      const T* const row = group + s * experts;
      for (std::int64_t e = 0; e < experts; ++e) gate_sum[e] += row[e];
      detail::choose_largest(scores + s * experts, experts, choices, chosen + s * choices, looks_for_nan);
      detail::normalize_chosen(row, chosen + s * choices, choices, chosen_weight + s * choices, rules.gates_as_weights);
      take(s * choices, true);
    }
    if (aux != nullptr) {
      const auto n = T(detail::count_real_tokens(real, tokens));
      T sum = 0;
      for (std::int64_t e = 0; e < experts; ++e) sum += (T(used[e]) / n) * (gate_sum[e] / n);
      aux[g] = sum / T(experts);
    }
    const T scale = random ? T(1 / rules.threshold) : T(1);
    const auto is_used = [&](std::int64_t s, T second_weight) {
      if (rules.has_threshold) return !(second_weight <= T(rules.threshold));
      return !random || !(scale * second_weight <= T(uniform01(key, std::uint64_t((group_offset + g) * tokens + s))));
    };
    for (std::int64_t k = 1; k < std::min(choices, experts); ++k)
      for (std::int64_t i = 0; i < tokens; ++i) {
        const std::int64_t s = order ? order[i] : i;
        if (detail::is_padding(real, s)) continue;
        take(s * choices + k, k != 1 || is_used(s, chosen_weight[s * choices + 1]));
      }
    if (overflow != nullptr) overflow[g] = T(refused);
    for (std::int64_t e = 0; chosen_of && e < experts; ++e) chosen_of[e] += T(used[e]);
    if (load != nullptr) {
      std::fill_n(load + g * experts, experts, T(0));
      for (std::int64_t i = 0; i < choices * tokens; ++i)
        if (place[i] >= 0) load[g * experts + place[i] / capacity] += T(1);
    }
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    detail::with_choices(sizes, [&](auto fixed) {
      for (std::int64_t g = begin; g < end; ++g) {
        if (other.any())
          choose(g, fixed, std::true_type());
        else
          choose(g, fixed, std::false_type());
      }
    });
  });
}

/// dgates [G,S,E] from the derivatives of weight [G,S,K] and aux [G] (null: zero). Choices, slots and counts c_e are constants. A kept
/// weight depends on all chosen gates of its token, even if other choices were dropped, unless the gates are the weights.
template <class T>
void top_k_gating_grad(const T* gates, const T* mask, const std::int32_t* slot, const T* dweight,
                       const T* daux, T* dgates, const gating_sizes& sizes, const gating_rules<T>& rules = {}) {
  const std::int64_t groups = sizes.groups, tokens = sizes.tokens, experts = sizes.experts;
  std::fill_n(dgates, groups * tokens * experts, T(0));
  const auto differentiate = [=](std::int64_t g, auto fixed) {
    const std::int64_t choices = decltype(fixed)::value > 0 ? decltype(fixed)::value : sizes.choices;
    thread_local std::vector<std::int64_t> chosen_experts;
    thread_local std::vector<T> counts, weights;
    chosen_experts.resize(std::size_t(tokens * choices));
    counts.assign(std::size_t(experts), T(0));
    weights.resize(std::size_t(choices));
    std::int64_t* const chosen = chosen_experts.data();  // address of thread_local memory, looked up once
    T* const first_choices = counts.data();
    T two_weights[2];
    T* const chosen_weight = fixed() == 2 ? two_weights : weights.data();
    const T* const group = gates + g * tokens * experts;
    const T* const scores = rules.scores ? rules.scores + g * tokens * experts : group;
    const bool looks_for_nan = detail::may_be_nan(scores, tokens * experts);
    const T* const real = mask ? mask + g * tokens : nullptr;
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (detail::is_padding(real, s)) continue;
      std::int64_t* const of_token = chosen + s * choices;
      detail::choose_largest(scores + s * experts, experts, choices, of_token, looks_for_nan);
      first_choices[of_token[0]] += T(1);
    }
    const auto n = T(detail::count_real_tokens(real, tokens));
    const T scale = daux == nullptr ? T(0) : daux[g] / (T(experts) * n * n);
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (detail::is_padding(real, s)) continue;
      T* const d = dgates + (g * tokens + s) * experts;
      for (std::int64_t e = 0; e < experts; ++e) d[e] = scale * first_choices[e];
      const std::int64_t* const of_token = chosen + s * choices;
      const T sum = detail::normalize_chosen(group + s * experts, of_token, choices, chosen_weight);
      const std::int64_t at = (g * tokens + s) * choices, count = std::min(choices, experts);
      const auto kept = [&](std::int64_t k) { return slot[at + k] < 0 ? T(0) : dweight[at + k]; };
      if (dweight != nullptr && rules.gates_as_weights)
        for (std::int64_t k = 0; k < count; ++k) d[of_token[k]] += kept(k);
      if (dweight == nullptr || rules.gates_as_weights || sum == T(0)) continue;
      if (fixed() == 2) {
        if (of_token[1] < 0) continue;
        const T difference = kept(0) - kept(1);
        d[of_token[0]] += difference * chosen_weight[1] / sum;
        d[of_token[1]] -= difference * chosen_weight[0] / sum;
        continue;
      }
      for (std::int64_t k = 0; count > 1 && k < count; ++k) {
        const std::int64_t other = k == 0 ? 1 : 0;
        T slope = (kept(k) - kept(other)) * chosen_weight[other];
        for (std::int64_t j = other + 1; j < count; ++j)
          if (j != k) slope += (kept(k) - kept(j)) * chosen_weight[j];
        d[of_token[k]] += slope / sum;
      }
    }
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) detail::with_choices(sizes, [&](auto fixed) { differentiate(g, fixed); });
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace kernel {

/// In every group, each expert takes the C real tokens with the largest scores [G,S,E] (null: the gates), ties to the smaller index, NaN
/// first. Operands are those of top_k_gating. Results, with one choice of each token per expert (K = E):
/// - slot [G,S,E]: e * C + c if expert e took the token as the c-th one, else -1;
/// - weight [G,S,E]: the gate where slot is not -1, else 0;
/// - aux [G]: 0;
/// - load [G,E]: the tokens of each expert, min(C, number of real tokens);
/// - overflow [G]: real tokens that no expert took;
/// - demand [G,E]: the load.
template <class T>
void expert_choice(const T* gates, const T* mask, std::int32_t* slot, T* weight, T* aux, T* load, T* overflow, T* demand,
                   const gating_sizes& sizes, const T* scores = nullptr) {
  const std::int64_t groups = sizes.groups, tokens = sizes.tokens, experts = sizes.experts, capacity = sizes.capacity;
  if (experts * capacity > std::numeric_limits<std::int32_t>::max())
    throw error("top_k_gating: " + std::to_string(experts) + " experts of capacity " + std::to_string(capacity) +
                " have more slots than an int32 can number");
  const auto choose = [=](std::int64_t g) {
    thread_local std::vector<std::int64_t> by_score;
    thread_local std::vector<char> is_taken;
    by_score.resize(std::size_t(tokens));
    is_taken.assign(std::size_t(tokens), 0);
    std::int64_t* const order = by_score.data();
    const T* const real = mask ? mask + g * tokens : nullptr;
    const T* const score = (scores ? scores : gates) + g * tokens * experts;
    std::int32_t* const place = slot + g * tokens * experts;
    std::fill_n(place, tokens * experts, -1);
    std::fill_n(weight + g * tokens * experts, tokens * experts, T(0));
    std::int64_t count = 0;
    for (std::int64_t s = 0; s < tokens; ++s)
      if (!detail::is_padding(real, s)) order[count++] = s;
    const std::int64_t taken = std::min(capacity, count);
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto precedes = [=](std::int64_t a, std::int64_t b) {
        const T x = score[a * experts + e], y = score[b * experts + e];
        return detail::is_larger_or_nan(x, y) || (!detail::is_larger_or_nan(y, x) && a < b);
      };
      std::partial_sort(order, order + taken, order + count, precedes);
      for (std::int64_t c = 0; c < taken; ++c) {
        const std::int64_t at = order[c] * experts + e;
        place[at] = static_cast<std::int32_t>(e * capacity + c);
        weight[g * tokens * experts + at] = gates[g * tokens * experts + at];
        is_taken[std::size_t(order[c])] = 1;
      }
    }
    for (T* const counts : {load, demand}) std::fill_n(counts + g * experts, experts, T(taken));
    aux[g] = T(0);
    overflow[g] = T(count - std::count(is_taken.begin(), is_taken.end(), char(1)));
  };
  parallel_rows(groups, tokens * experts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) choose(g);
  });
}

/// dgates [G,S,E] from the derivatives of weight [G,S,E]. Choices are constants.
template <class T>
void expert_choice_grad(const std::int32_t* slot, const T* dweight, T* dgates, const gating_sizes& sizes) {
  const std::int64_t width = sizes.tokens * sizes.experts;
  parallel_rows(sizes.groups, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * width; i < end * width; ++i) dgates[i] = slot[i] < 0 ? T(0) : dweight[i];
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// Throws if there are no experts.
template <class T>
kernel::gating_sizes gating_sizes_of(const local_step<T>& step) {
  const auto a = own<gating_attributes>(step.n);
  const kernel::placement& gates = step.in_place(0);
  const std::int64_t experts = gates.extent[2], choices = a.by_experts ? experts : a.k;
  if (experts < 1) {
    const plan_view& plan = step.plan.plan;
    throw error("top_k_gating: " + text_of(plan.dims[std::size_t(plan.at(step.n.input(0)).dims[2])]) +
                " has extent 0: a gating needs an expert");
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

}}}  // namespace gshard::v0::detail
