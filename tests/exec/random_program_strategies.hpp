// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <gshard/core/partition/chosen_strategies.hpp>
#include <gshard/core/partition/choose_strategy.hpp>
#include <gshard/core/partition/partitioner.hpp>
#include <gshard/core/partition/plan_writer.hpp>
#include <gshard/core/program/compile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace random_program {

inline bool same(const gs::detail::strategy& a, const gs::detail::strategy& b) {
  return std::ranges::equal(a.factor_of_axis, b.factor_of_axis) &&
         std::ranges::equal(a.axes_of_factor.of, b.axes_of_factor.of) && a.keeps_first_operand == b.keeps_first_operand &&
         a.order == b.order;
}
inline bool same(const gs::detail::partial_state& a, const gs::detail::partial_state& b) {
  return a.axes == b.axes && a.what == b.what && a.per_operand == b.per_operand && a.second == b.second && a.declared == b.declared;
}
inline bool same(const gs::move_list& a, const gs::move_list& b) {
  return a.bytes == b.bytes && a.starts == b.starts && std::ranges::equal(a, b, [](const auto& x, const auto& y) {
           return x.kind == y.kind && x.axes == y.axes && x.to == y.to;
         });
}
inline bool same(const gs::detail::operand_place& a, const gs::detail::operand_place& b) {
  return a.layout == b.layout && a.form == b.form &&
         std::ranges::equal(a.moves, b.moves, [](const auto& x, const auto& y) { return same(x, y); });
}
inline bool same(const gs::detail::placement& a, const gs::detail::placement& b) {
  return same(a.chosen.how, b.chosen.how) && same(a.chosen.partial, b.chosen.partial) && a.may_loop == b.may_loop &&
         std::ranges::equal(a.operands, b.operands, [](const auto& x, const auto& y) { return same(x, y); }) &&
         std::ranges::equal(a.results, b.results);
}

/// A node of the program for which chosen_strategies has another placement than choose_strategy finds, or nothing. Nodes are placed in
/// turn, as by the partitioner. `compared`: counts the nodes.
inline std::string failure_of_strategies(const recipe& r, std::size_t& compared) {
  const on_mesh::prepared prepared = on_mesh::prepare(r.on, inputs_of(r), model_of(r));
  gs::compile_options options = prepared.setting.options;
  gs::mesh_shape mesh = run_graph::mesh_of_rank(r.on.mesh.size());
  gs::graph g = prepared.program.graph;
  for (std::size_t i = 0; i < prepared.program.free.size(); ++i) g.at(prepared.program.free[i]).layout = prepared.setting.layouts[i];
  run_graph::check(gs::compile(g, mesh, options).problem, "planning");

  const gs::extents e = gs::detail::planned_extents(g, mesh, options);
  const gs::list<char> live = gs::detail::nodes_that_run(g);
  const gs::detail::partial_permissions permissions(g, live, options.partial_outputs, {}, {});
  gs::detail::plan_writer plan(g, mesh, e, options.implicit_moves, options.combine_bytes);
  const gs::detail::planning p{g, e, mesh.count, plan.cache, permissions.needs_complete, permissions.may_stay_partial};
  gs::detail::chosen_strategies strategies;
  for (const gs::parameter& q : g.parameters) plan.enter(q.value);
  for (const gs::port& q : g.inputs) plan.enter(q.value);
  for (std::size_t k = 0; k < live.size() && !g.problem; ++k) {
    const gs::node& n = g.nodes[k];
    if (!live[k]) continue;
    const auto as_wanted = [&](std::int32_t tensor) {
      gs::sharding layout = g.at(tensor).layout;
      layout.partial = 0;
      return layout;
    };
    if (n.kind == gs::op::annotate || gs::traits(n.kind).of_addends || gs::is_of_loop(n.kind)) {
      for (int o = 0; o < n.outputs; ++o) plan.add_result(n.output(o), as_wanted(n.output(o)));
      continue;
    }
    const gs::detail::placement direct(p, n, gs::detail::choose_strategy(p, n, true), options.loop_bytes);
    for (int again = 0; again < 2; ++again)
      if (!same(strategies.choose(p, n, true, options.loop_bytes), direct)) return std::string(gs::name_of(n)) + " gets another placement";
    ++compared;
    for (int i = 0; i < n.inputs; ++i)
      plan.get_or_reshard(n.input(i), gs::detail::operand_form(p, n, i, direct.chosen.how, direct.chosen.partial), {});
    for (int o = 0; o < n.outputs; ++o) plan.add_result(n.output(o), direct.results[std::size_t(o)]);
  }
  return {};
}

}  // namespace random_program
