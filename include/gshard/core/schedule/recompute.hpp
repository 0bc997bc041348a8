// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rematerialization: the order in which steps of the forward pass run again for the gradient, and the plan in that order.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// An entry of the order in which a device runs the steps of a plan. Steps of the forward pass may run again.
struct scheduled_step {
  std::int32_t step = 0;
  bool recomputed = false;
};
using step_schedule = list<scheduled_step>;

namespace detail {

/// Orders the steps of a plan so that the tensors of remat scopes are not kept for the gradient. Each is recomputed right before the first
/// step of the backward pass that reads it, with the tensors of its scope that it needs. A tensor stays if the policy of its scope saves
/// it, or if it is made in a loop. It also stays if a step of the forward pass outside of the scope reads it.
// Lists by value are indexed by the value whose storage they describe, the root.
class recompute_search {
 public:
  /// `scopes`: by step, the number of its scope, or 0. `saved`: by scope, from 1 on.
  constexpr recompute_search(list_view<node> steps, list_view<lifetime> life, list_view<port> outputs, list_view<parameter> parameters,
                             list_view<std::int32_t> scopes, list_view<remat_policy> saved)
      : steps_(steps), life_(life), home_(life.size(), 0), kept_(life.size(), 0), maker_(life.size(), -1),
        again_(steps.size(), 0) {
    std::int32_t* const home = home_.data();
    char* const kept = kept_.data();
    int loops = 0;
    for (std::int32_t i = 0; i < count(); ++i) {
      const node& n = at(i);
      loops += traits(n.kind).nesting;
      const std::int32_t scope = loops == 0 && !is_of_loop(n.kind) && !n.place.gradient ? scopes[std::size_t(i)] : 0;
      for (int k = 0; k < n.inputs; ++k) {
        const std::int32_t r = root(n.in[k]);
        if ((!n.place.gradient && scope != home[r]) || k < n.in_place) kept[r] = 1;
      }
      for (int o = 0; o < n.outputs; ++o) {
        const std::int32_t v = n.out[o], r = root(v);
        maker_[std::size_t(v)] = i;
        if (r == v) home[r] = scope;
        if (scope != 0 && is_saved(n, saved[std::size_t(scope - 1)])) kept[r] = 1;
      }
    }
    for (const port& p : outputs) kept[root(p.value)] = 1;
    for (const parameter& p : parameters)
      if (p.updated >= 0) kept[root(p.updated)] = 1;
    find_steps();
  }

  constexpr step_schedule run() {
    step_schedule order;
    order.reserve(steps_.size() + repeated_);
    for (std::int32_t i = 0; i < count(); ++i) {
      const node& n = at(i);
      if (n.place.gradient) recompute_operands(n, order);
      // Readers of a parameter run again before the parameter changes.
      for (int o = 0; o < n.in_place && updates_parameters(n) && !readers_.empty(); ++o)
        for (std::int32_t r = readers_[std::size_t(root(n.in[o]))]; r >= 0; r = next_[std::size_t(r)])
          if (again_[std::size_t(reader_[std::size_t(r)])] == wanted) recompute(reader_[std::size_t(r)], order);
      order.push_back({i, false});
    }
    return order;
  }

 private:
  static constexpr char wanted = 1, due = 2, done = 3;  // states of a step that runs again

  list_view<node> steps_;
  list_view<lifetime> life_;
  list<std::int32_t> home_;   // by value: the scope that makes it, or 0
  list<char> kept_;           // by value
  list<std::int32_t> maker_;  // by value, not only by root: the step that makes it
  list<char> again_;          // by step: its state; 0 if it does not run again
  std::size_t repeated_ = 0;  // the number of steps that run again
  // The steps that run again and read a parameter, as linked lists.
  list<std::int32_t> readers_;        // by parameter: the first row, or -1
  list<std::int32_t> reader_, next_;  // by row: the step, and the next row

  constexpr std::int32_t count() const { return std::int32_t(steps_.size()); }
  constexpr const node& at(std::int32_t i) const { return steps_.data()[i]; }
  constexpr std::int32_t root(std::int32_t v) const { return life_.data()[v].root; }
  /// The step that must run again before a step of the gradient, or a step that runs again, reads this value; -1: the value is kept.
  constexpr std::int32_t maker_again(std::int32_t v) const {
    const std::int32_t r = root(v);
    return home_.data()[r] != 0 && !kept_.data()[r] ? maker_.data()[v] : -1;
  }

  /// Finds the steps that run again, backwards, because readers come after the steps that make their operands.
  constexpr void find_steps() {
    for (std::int32_t i = count(); i-- > 0;) {
      const node& n = at(i);
      const bool repeats = again_[std::size_t(i)] == wanted;
      repeated_ += repeats;
      if (!repeats && !n.place.gradient) continue;
      for (int k = 0; k < n.inputs; ++k) {
        if (const std::int32_t maker = maker_again(n.in[k]); maker >= 0) again_[std::size_t(maker)] = wanted;
        else if (repeats && life_[std::size_t(root(n.in[k]))].persistent) add_reader(root(n.in[k]), i);
      }
    }
  }
  constexpr void add_reader(std::int32_t parameter, std::int32_t step) {
    if (readers_.empty()) readers_ = list<std::int32_t>(life_.size(), -1);
    std::int32_t& first = readers_[std::size_t(parameter)];
    reader_.push_back(step);
    next_.push_back(first);
    first = std::int32_t(reader_.size()) - 1;
  }
  constexpr void recompute_operands(const node& n, step_schedule& order) {
    for (int k = 0; k < n.inputs; ++k)
      if (const std::int32_t maker = maker_again(n.in[k]); maker >= 0 && again_[std::size_t(maker)] == wanted)
        recompute(maker, order);
  }
  /// Adds a step, after the steps of its scope that make its operands.
  constexpr void recompute(std::int32_t last, step_schedule& order) {
    list<std::int32_t> open{last};
    std::int32_t first = last;
    again_[std::size_t(last)] = due;
    while (!open.empty()) {
      const node& n = at(open.back());
      if (open.back() < first) first = open.back();
      open.pop_back();
      for (int k = 0; k < n.inputs; ++k) {
        const std::int32_t maker = maker_again(n.in[k]);
        if (maker < 0 || again_[std::size_t(maker)] != wanted) continue;
        again_[std::size_t(maker)] = due;
        open.push_back(maker);
      }
    }
    for (std::int32_t i = first; i <= last; ++i) {
      if (again_[std::size_t(i)] != due) continue;
      again_[std::size_t(i)] = done;
      order.push_back({i, true});
    }
  }
};

/// Rewrites the steps of a plan in an order in which some run again. Repeated steps make new values, which later steps read.
constexpr void reorder(list<node>& steps, list<value>& values, const step_schedule& order) {
  list<node> all;
  all.reserve(order.size());
  list<std::int32_t> now;  // by value: its latest copy
  now.reserve(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) now.push_back(std::int32_t(v));
  for (const scheduled_step& s : order) {
    node n = steps[std::size_t(s.step)];
    n.place.recomputed = s.recomputed;
    for (int k = 0; k < n.inputs; ++k) n.in[k] = now[std::size_t(n.in[k])];
    for (int o = 0; o < n.outputs; ++o) {
      if (s.recomputed) {
        const value again = values[std::size_t(n.out[o])];
        n.out[o] = now[std::size_t(n.out[o])] = std::int32_t(values.size());
        values.push_back(again);
      }
      values[std::size_t(n.out[o])].producer = std::int32_t(all.size());
    }
    all.push_back(n);
  }
  steps.swap(all);
}

/// The order of a plan's steps in which the tensors of scopes are recomputed for the gradient. `scopes`: by step, the number of the scope
/// whose tensors it makes, or 0. `saved`: by scope, its policy. @see remat
constexpr step_schedule recompute_order(list_view<node> steps, list_view<lifetime> life, list_view<port> outputs,
                                        list_view<parameter> parameters, list_view<std::int32_t> scopes, list_view<remat_policy> saved) {
  return recompute_search(steps, life, outputs, parameters, scopes, saved).run();
}

/// Adds to a plan the steps that recompute the tensors of its remat scopes.
constexpr void rematerialize(list<value>& values, list<node>& steps, const list<parameter>& parameters, const list<port>& inputs,
                             const list<port>& outputs, const list<remat_policy>& saved) {
  list<std::int32_t> scopes;
  scopes.reserve(steps.size());
  for (const node& n : steps) scopes.push_back(n.place.remat);
  const list<lifetime> life = lifetimes(values, steps, parameters, inputs, outputs);
  reorder(steps, values, recompute_order(steps, life, outputs, parameters, scopes, saved));
}

}  // namespace detail

}}  // namespace gshard::v0
