// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Recomputation of activations (rematerialization): which forward steps run again for the gradient.

#include <gshard/pass/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// A step of a plan in the order in which a device runs them. Steps of the forward pass may run again.
struct scheduled_step {
  std::int32_t step = 0;
  bool recomputed = false;
};
using step_schedule = std::vector<scheduled_step>;

/// The layers of a plan's forward pass whose activations need not be kept for the gradient. Tensors that only a layer and its gradient read
/// are computed again, from the tensors of the layer that others read. A layer has the steps that read parameters with one prefix up to a
/// number, such as "encoder.3.". It also has the steps after these until other parameters are read.
class recomputation {
 public:
  explicit recomputation(const plan_view& plan) : plan_(plan) {
    const auto steps = std::int32_t(plan.steps.size());
    while (backward_ < steps && !at(backward_).place.gradient) ++backward_;
    if (backward_ == steps) return;  // no gradient
    find_layers();
    find_users();
    for (std::int32_t l = 0; l < layers(); ++l) find_steps(l);
  }

  /// The number of layers. They are in the order in which they run.
  std::int32_t layers() const { return std::int32_t(names_.size()); }

  /// The order of steps if the activations of the first `dropped` layers are not kept.
  step_schedule schedule(std::int32_t dropped) const {
    std::vector<std::pair<std::int32_t, std::int32_t>> before;  // step of the backward pass, layer to recompute before it
    for (std::int32_t l = 0; l < dropped; ++l)
      if (!again_[std::size_t(l)].empty()) before.emplace_back(wanted_at_[std::size_t(l)], l);
    std::sort(before.begin(), before.end());
    step_schedule order;
    order.reserve(plan_.steps.size() * 2);
    std::size_t next = 0;
    for (std::int32_t i = 0; i < std::int32_t(plan_.steps.size()); ++i) {
      for (; next < before.size() && before[next].first == i; ++next)
        for (const std::int32_t s : again_[std::size_t(before[next].second)]) order.push_back({s, true});
      order.push_back({i, false});
    }
    return order;
  }

 private:
  plan_view plan_;
  std::int32_t backward_ = 0;                    // first step of the backward pass
  std::vector<std::string_view> names_;          // of layers
  std::vector<std::int32_t> layer_;              // by step of the forward pass, -1: none
  std::vector<char> kept_, read_again_;          // by value, a root: read outside its layer; read by gradients
  std::vector<std::vector<std::int32_t>> again_;  // by layer: the steps that run again
  std::vector<std::int32_t> wanted_at_;          // by layer: the first step that reads their results
  std::vector<std::int32_t> maker_;              // by value: step

  const node& at(std::int32_t i) const { return plan_.steps[std::size_t(i)]; }
  std::size_t root(std::int32_t v) const { return std::size_t(plan_.lifetimes[std::size_t(v)].root); }

  /// "encoder.3." of "encoder.3.self.wq"
  static std::string_view layer_name(std::string_view name) {
    std::size_t begin = 0;
    for (std::size_t dot = name.find('.'); dot != name.npos; begin = dot + 1, dot = name.find('.', begin))
      if (dot > begin && name.substr(begin, dot - begin).find_first_not_of("0123456789") == name.npos) return name.substr(0, dot + 1);
    return {};
  }
  void find_layers() {
    std::int32_t now = -1;
    layer_.resize(std::size_t(backward_));
    for (std::int32_t i = 0; i < backward_; ++i) {
      for (int k = 0; k < at(i).inputs; ++k) {
        const std::int32_t p = plan_.at(at(i).input(k)).parameter;
        if (p < 0) continue;
        const std::string_view name = layer_name(plan_.parameters[std::size_t(p)].name.view());
        if (name.empty()) {
          now = -1;
        } else if (names_.empty() || names_.back() != name) {
          now = layers();
          names_.push_back(name);
        } else {
          now = layers() - 1;
        }
      }
      layer_[std::size_t(i)] = now;
    }
    again_.resize(names_.size());
    wanted_at_.assign(names_.size(), std::int32_t(plan_.steps.size()));
  }
  void find_users() {
    kept_.resize(plan_.values.size());
    read_again_.resize(plan_.values.size());
    maker_.assign(plan_.values.size(), -1);
    std::vector<std::int32_t> made_in(plan_.values.size(), -1);  // by root
    for (const port& p : plan_.outputs) kept_[root(p.value)] = 1;
    for (std::int32_t i = 0; i < std::int32_t(plan_.steps.size()); ++i) {
      const node& n = at(i);
      const std::int32_t layer = i < backward_ ? layer_[std::size_t(i)] : -1;
      for (int k = 0; k < n.inputs; ++k) {
        const std::size_t r = root(n.input(k));
        if (i >= backward_) {
          if (!read_again_[r] && made_in[r] >= 0 && !kept_[r])
            wanted_at_[std::size_t(made_in[r])] = std::min(wanted_at_[std::size_t(made_in[r])], i);
          read_again_[r] = 1;
        } else if (made_in[r] != layer) {
          kept_[r] = 1;
        }
      }
      for (int o = 0; o < n.outputs; ++o) {
        maker_[std::size_t(n.output(o))] = i;
        if (root(n.output(o)) == std::size_t(n.output(o))) made_in[root(n.output(o))] = layer;
      }
    }
  }
  void find_steps(std::int32_t layer) {
    std::vector<std::int32_t>& steps = again_[std::size_t(layer)];
    std::vector<char> taken(std::size_t(backward_), 0);
    const auto take = [&](std::int32_t i) {
      if (taken[std::size_t(i)]) return;
      taken[std::size_t(i)] = 1;
      steps.push_back(i);
    };
    for (std::int32_t i = 0; i < backward_; ++i) {
      if (layer_[std::size_t(i)] != layer) continue;
      for (int o = 0; o < at(i).outputs; ++o)
        if (const std::size_t r = root(at(i).output(o)); read_again_[r] && !kept_[r]) take(i);
    }
    for (std::size_t next = 0; next < steps.size(); ++next)
      for (int k = 0; k < at(steps[next]).inputs; ++k) {
        const std::int32_t v = at(steps[next]).input(k), maker = maker_[std::size_t(v)];
        if (maker >= 0 && layer_[std::size_t(maker)] == layer && !kept_[root(v)]) take(maker);
      }
    std::sort(steps.begin(), steps.end());
  }
};

}}  // namespace gshard::v0
