// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/pass/move_reason.hpp>
#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Of which part of a training step the steps of a plan are: told by the header whose lines made them (attention, MoE layer, Transformer,
/// optimisers), within an MoE layer by what they do. Moves are of the part that they serve, or whose sums they complete if these are not
/// gradients.
class part_finder {
 public:
  explicit part_finder(const plan_view& plan) : plan_(plan), token_(plan.dims.size()), hidden_(plan.dims.size()) {
    std::vector<char> normed(plan.dims.size());
    for (const node& n : plan.steps) {
      if (n.kind == op::top2_gating) token_[std::size_t(dims(n.input(0))[1])] = 1;
      if (n.kind == op::layer_norm) normed[std::size_t(dims(n.input(0))[dims(n.input(0)).size() - 1])] = 1;
    }
    for (const node& n : plan.steps)
      if (n.kind == op::einsum && is_from(n, "nn/transformer.hpp"))
        for (int i = 0; i < n.inputs; ++i)
          if (plan.at(n.input(i)).parameter >= 0)
            for (int d = 0; d < dims(n.input(i)).size(); ++d) hidden_[std::size_t(dims(n.input(i))[d])] = 1;
    for (std::size_t d = 0; d < normed.size(); ++d) hidden_[d] = char(hidden_[d] && !normed[d]);
  }

  step_part of(std::size_t step) const {
    const node& n = plan_.steps[step];
    if (!traits(n.kind).collective || n.kind == op::looped_einsum) return of_local(n);
    const move_reason r = reason_of(plan_, step);
    const bool sums = r.why == move_reason::kind::sum;
    const std::int32_t other = sums ? plan_.at(n.input(0)).producer : r.consumer;
    const node& local = other < 0 ? n : plan_.steps[std::size_t(other)];
    if (sums && local.place.gradient) return step_part::all_reduce;
    return is_from(local, "nn/moe.hpp") ? step_part::dispatch_combine : of_local(local);
  }

 private:
  const plan_view& plan_;
  std::vector<char> token_, hidden_;  // by dim

  const dim_list& dims(std::int32_t v) const { return plan_.at(v).dims; }
  static bool is_from(const node& n, std::string_view header) { return n.place.file && std::string_view(n.place.file).ends_with(header); }

  bool has_any(const node& n, const std::vector<char>& wanted) const {
    const auto has = [&](std::int32_t v) {
      for (int d = 0; d < dims(v).size(); ++d)
        if (wanted[std::size_t(dims(v)[d])]) return true;
      return false;
    };
    for (int i = 0; i < n.inputs; ++i)
      if (has(n.input(i))) return true;
    for (int o = 0; o < n.outputs; ++o)
      if (has(n.output(o))) return true;
    return false;
  }
  step_part of_local(const node& n) const {
    if (!n.place.file) return step_part::other;
    if (is_from(n, "nn/attention.hpp")) return step_part::attention;
    if (is_from(n, "nn/moe.hpp")) {
      const bool product = n.kind == op::einsum && n.inputs == 2;
      const bool moves = n.kind == op::dispatch || n.kind == op::combine || n.kind == op::combine_weight_grad;
      if (moves || (product && has_any(n, token_))) return step_part::gate_einsum;
      return product || n.kind == op::map ? step_part::moe_feed_forward : step_part::gate_other;
    }
    if (is_from(n, "nn/transformer.hpp"))
      return has_any(n, hidden_) ? step_part::feed_forward : step_part::other;
    return std::string_view(n.place.file).find("/optim/") != std::string_view::npos ? step_part::optimiser : step_part::other;
  }
};

}  // namespace detail

/// The part of a training step, as arXiv 2006.16668 figure 8 divides it, that each step of a plan belongs to.
inline std::vector<step_part> parts_of(const plan_view& plan) {
  const detail::part_finder find(plan);
  std::vector<step_part> parts(plan.steps.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = find.of(i);
  return parts;
}

}}  // namespace gshard::v0
