// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The layers of a plan whose activations a dry run may recompute, as a remat scope around each of them would.

#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The layers of a plan's forward pass, each a remat scope whose tensors need not be kept for the gradient. A layer has the steps that read
/// parameters with one prefix up to a number, such as "encoder.3.". It also has the steps after these until other parameters are read.
/// @see remat
class recomputation {
 public:
  explicit recomputation(const plan_view& plan) : plan_(plan), scopes_(plan.steps.size(), 0) {
    const auto steps = std::int32_t(plan.steps.size());
    while (backward_ < steps && !at(backward_).place.gradient) ++backward_;
    if (backward_ < steps) find_layers();  // otherwise there is no gradient
  }

  /// The number of layers. They are in the order in which they run.
  std::int32_t layers() const { return std::int32_t(names_.size()); }

  /// The order of steps if the activations of the first `dropped` layers are not kept.
  step_schedule schedule(std::int32_t dropped) const {
    list<std::int32_t> scopes = scopes_;
    for (std::int32_t& s : scopes)
      if (s > dropped) s = 0;
    return detail::recompute_order(plan_.steps, plan_.lifetimes, plan_.outputs, plan_.parameters, scopes,
                                   list<remat_policy>(std::size_t(dropped), remat_policy::nothing));
  }

 private:
  plan_view plan_;
  std::int32_t backward_ = 0;            // first step of the backward pass
  std::vector<std::string_view> names_;  // of layers
  list<std::int32_t> scopes_;            // by step: its layer, from 1 on, or 0

  const node& at(std::int32_t i) const { return plan_.steps[std::size_t(i)]; }

  /// "encoder.3." of "encoder.3.self.wq"
  static std::string_view layer_name(std::string_view name) {
    std::size_t begin = 0;
    for (std::size_t dot = name.find('.'); dot != name.npos; begin = dot + 1, dot = name.find('.', begin))
      if (dot > begin && name.substr(begin, dot - begin).find_first_not_of("0123456789") == name.npos) return name.substr(0, dot + 1);
    return {};
  }
  void find_layers() {
    std::int32_t now = 0;
    for (std::int32_t i = 0; i < backward_; ++i) {
      for (int k = 0; k < at(i).inputs; ++k) {
        const std::int32_t p = plan_.at(at(i).input(k)).parameter;
        if (p < 0) continue;
        const std::string_view name = layer_name(plan_.parameters[std::size_t(p)].name.view());
        if (!name.empty() && (names_.empty() || names_.back() != name)) names_.push_back(name);
        now = name.empty() ? 0 : layers();
      }
      scopes_[std::size_t(i)] = now;
    }
  }
};

}}  // namespace gshard::v0
