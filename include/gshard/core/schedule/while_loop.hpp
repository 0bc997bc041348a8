// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// While loops in plans: hoists reshards of loop-invariant tensors, checks uses of tensors, and extends lifetimes over all iterations.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/lifetime.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// The while loops around the node that is partitioned. Loop-invariant tensors are resharded once, before the loop.
class open_loops {
 public:
  constexpr explicit open_loops(const graph& g) {
    if (g.while_loops == 0) return;
    depth_ = list<std::size_t>(g.values.size(), 0);
    int now = 0;
    for (const node& n : g.nodes) {
      now += traits(n.kind).nesting;
      const int made = now + nesting_of_results(n);
      for (int o = 0; o < n.outputs; ++o) depth_[std::size_t(n.output(o))] = std::size_t(made);
    }
  }

  constexpr bool none_open() const { return count_ == 0; }
  /// Opens a loop at the next step of the plan.
  constexpr void open(std::size_t next_step) {
    if (count_ == open_.size()) open_.push_back({});
    open_[count_++] = {next_step, {}};
  }
  /// The steps to which a reshard of a tensor of the graph is added: before the outermost loop that does not make the tensor, or `here`.
  constexpr list<node>& steps_before(std::int32_t tensor, list<node>& here) {
    const std::size_t depth = depth_[std::size_t(tensor)];
    return depth < count_ ? open_[depth].moves : here;
  }
  /// True if two tensors of the graph are made at the same loop depth, or no loop is open.
  constexpr bool at_one_depth(std::int32_t tensor, std::int32_t other) const {
    return none_open() || depth_[std::size_t(tensor)] == depth_[std::size_t(other)];
  }
  /// Closes the innermost loop after its last step, and inserts the hoisted steps before it.
  constexpr void close(list<node>& steps, list<value>& values) {
    const loop& inner = open_[--count_];
    if (inner.moves.empty()) return;
    list<node> all;
    all.reserve(steps.size() + inner.moves.size());
    all.append(steps.data(), inner.begin);
    all.append(inner.moves.data(), inner.moves.size());
    all.append(steps.data() + inner.begin, steps.size() - inner.begin);
    steps.swap(all);
    for (std::size_t i = inner.begin; i < steps.size(); ++i)
      for (int o = 0; o < steps[i].outputs; ++o) values[std::size_t(steps[i].output(o))].producer = std::int32_t(i);
  }

 private:
  struct loop {
    std::size_t begin = 0;
    list<node> moves;
  };
  list<std::size_t> depth_;  // by tensor of the graph: the loop depth at which it is made
  list<loop> open_;          // the first count_ are open
  std::size_t count_ = 0;
};

/// Reports tensors that are made in a loop and used after it, and parameter updates in loops.
constexpr void check_loops(graph& g) {
  list<std::int32_t> made_in(g.values.size(), 0);  // by tensor: the innermost loop that makes it; 0: none
  list<char> is_open(std::size_t(g.while_loops) + 1, 0);
  is_open[0] = 1;
  list<std::int32_t> around{0};
  const auto use = [&](std::int32_t v, std::string_view about) {
    if (!is_open[std::size_t(made_in[std::size_t(v)])]) g.problem.report(fault::used_outside_loop, about);
  };
  for (const node& n : g.nodes) {
    for (int i = 0; i < n.inputs; ++i) use(n.input(i), name(n.kind));
    const std::int32_t loop = is_of_loop(n.kind) ? n.attr.loop : 0;
    if (traits(n.kind).nesting > 0) {
      around.push_back(loop);
      is_open[std::size_t(loop)] = 1;
    } else if (traits(n.kind).nesting < 0) {
      around.pop_back();
      is_open[std::size_t(loop)] = 0;
    } else if (updates_parameters(n) && around.size() > 1) {
      g.problem.report(fault::update_in_loop, name(n.kind));
    }
    const std::int32_t home = nesting_of_results(n) == 0 ? around.back() : nesting_of_results(n) > 0 ? loop : around[around.size() - 2];
    for (int o = 0; o < n.outputs; ++o) made_in[std::size_t(n.output(o))] = home;
    g.problem.name_place(n.place.line, n.place.scope);
  }
  for (const port& p : g.outputs) use(p.value, p.name.view());
  for (const parameter& p : g.parameters)
    if (p.updated >= 0) use(p.updated, p.name.view());
}

/// A tensor that is made before a loop and read in it is needed until the last iteration ends.
constexpr void keep_through_loops(list<lifetime>& life, const list<node>& steps) {
  list<std::int32_t> begins;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (traits(steps[i].kind).nesting > 0) begins.push_back(std::int32_t(i));
    if (traits(steps[i].kind).nesting >= 0) continue;
    for (lifetime& l : life)
      if (l.first < begins.back() && l.last > begins.back() && l.last < std::int32_t(i)) l.last = std::int32_t(i);
    begins.pop_back();
  }
}

}}}  // namespace gshard::v0::detail
