// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The partitioner: rewrites a graph over global tensors as the steps that every device runs on its shards.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/partition/choose_strategy.hpp>
#include <gshard/core/partition/chosen_strategies.hpp>
#include <gshard/core/partition/looped_einsum.hpp>
#include <gshard/core/partition/merged_rows.hpp>
#include <gshard/core/partition/plan_writer.hpp>
#include <gshard/core/partition/regroup_sums.hpp>
#include <gshard/core/partition/shared_sums.hpp>
#include <gshard/core/pass/positions.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/schedule/step_order.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

struct partition_options {
  /// Which implicit reshards are allowed.
  strictness implicit = strictness::automatic;
  /// Outputs may be partial sums.
  bool partial_outputs = false;
  /// Einsums are looped if a gathered operand or a scattered result has more bytes than this.
  std::int64_t loop_bytes = 0;
  /// The most bytes per device of combined moves; 0: none are combined.
  std::int64_t combine_bytes = 0;
  /// Partial maxima, minima and products of outputs are completed: the spec of a tensor cannot state them.
  bool only_partial_sums = false;
};

namespace detail {

/// A graph after partitioning: every value has a final sharding, and reshards are nodes of their own.
struct partitioned {
  list<value> values;
  list<node> steps;
  list<parameter> parameters;
  list<port> inputs, outputs;
  list<std::uint8_t> partial_sums;  ///< By tensor of the graph: the axes over which it is computed as a partial sum.
  list<char> needs_complete;        ///< By tensor of the graph: some reader needs its sum.
};

/// The tensors that some reader needs as complete sums, and the tensors that may stay partial.
struct partial_permissions {
  list<char> needs_complete, may_stay_partial;

  constexpr partial_permissions(const graph& g, const list<char>& live, bool partial_outputs, const list<char>& products,
                                const list<char>& completed)
      : needs_complete(g.values.size(), 0), may_stay_partial(g.values.size(), 0) {
    const node* const nodes = g.nodes.data();
    const char* const is_live = live.data();
    char* const complete = needs_complete.data();
    for (std::size_t i = 0; i < live.size(); ++i)
      if (const node& n = nodes[i]; is_live[i] && !is_linear(n))
        for (int k = n.attr.defers_sums ? 2 : 0; k < n.inputs; ++k) complete[n.in[k]] = 1;  // a state and its next value may be partial
    for (const port& p : g.outputs) (partial_outputs ? may_stay_partial : needs_complete)[std::size_t(p.value)] = 1;
    for (std::size_t i = 0; i < live.size() && partial_outputs; ++i)
      for (int k = 0; is_live[i] && k < nodes[i].inputs; ++k) may_stay_partial[std::size_t(nodes[i].in[k])] = 0;
    for (std::size_t v = 0; v < products.size(); ++v)
      if (products[v]) may_stay_partial[v] = 1;
    for (std::size_t v = 0; v < completed.size(); ++v)
      if (completed[v]) complete[v] = 1;
    if (g.while_loops != 0) find_addends(g, live);
  }

 private:
  /// Addends of sums that are completed after a loop may stay partial, as may the operands of linear nodes that make them.
  constexpr void find_addends(const graph& g, const list<char>& live) {
    for (std::size_t i = live.size(); i-- > 0;) {
      const node& n = g.nodes[i];
      if (!live[i] || n.outputs != 1) continue;
      const bool is_sum = n.attr.defers_sums && n.inputs > 1;
      if (!is_sum && !(is_linear(n) && may_stay_partial[std::size_t(n.output())])) continue;
      for (int k = is_sum ? 1 : 0; k < (is_sum ? 2 : n.inputs); ++k)
        may_stay_partial[std::size_t(n.input(k))] = !needs_complete[std::size_t(n.input(k))];
    }
  }
};

/// Partitions one node after the other: chooses its strategy, reshards its operands, and adds its step.
class partitioner {
 public:
  /// `stays_partial`: products that become partial sums if that costs no more. @see sum_regrouping. `completed`: partial sums that all
  /// nodes read complete. @see shared_addends
  constexpr partitioner(graph& g, const mesh_shape& mesh, const extents& e, const partition_options& options,
                        const list<char>& stays_partial = {}, const list<char>& completed = {})
      : g_(g),
        options_(options),
        live_(nodes_that_run(g)),
        permissions_(g, live_, options.partial_outputs, stays_partial, completed),
        plan_(g, mesh, e, options.implicit, options.combine_bytes),
        planning_{g, e, mesh.count, plan_.cache, permissions_.needs_complete, permissions_.may_stay_partial},
        shared_(planning_, plan_.cache, live_) {}
  partitioner(const partitioner&) = delete;

  constexpr partitioned run() {
    for (const parameter& p : g_.parameters) plan_.enter(p.value);
    for (const port& p : g_.inputs) plan_.enter(p.value);
    plan_.steps.reserve(2 * g_.nodes.size());  // growing moves rows, which is slow in constexpr
    plan_.cache.values.reserve(2 * g_.values.size());
    for (std::size_t i = 0; i < g_.nodes.size() && !g_.problem; ++i) {
      if (!live_.data()[i]) continue;
      place(g_.nodes[i]);
      g_.problem.name_place(g_.nodes[i].place.line, g_.nodes[i].place.scope);
    }
    if (g_.problem) return {};
    partitioned result;
    for (const parameter& p : g_.parameters) {
      parameter q = p;
      q.value = plan_.cache.first(p.value);
      if (p.updated >= 0) q.updated = plan_.get_or_reshard(p.updated, plan_.cache.first_layout(p.value), producer_of(p.updated));
      result.parameters.push_back(q);
    }
    for (const port& p : g_.inputs) result.inputs.push_back({p.name, plan_.cache.first(p.value), false, p.is_column_major});
    for (const port& p : g_.outputs) result.outputs.push_back({p.name, output(p.value), p.is_loss});
    result.partial_sums = list<std::uint8_t>(g_.values.size(), 0);
    const std::uint32_t single = single_axes(planning_.e);
    for (std::size_t v = 0; v < g_.values.size(); ++v)
      if (plan_.cache.first(std::int32_t(v)) >= 0)
        result.partial_sums.data()[v] = std::uint8_t(partial_sum_axes(planning_, std::int32_t(v)) & ~single);
    result.needs_complete = permissions_.needs_complete;
    result.values = static_cast<list<value>&&>(plan_.cache.values);
    result.steps = static_cast<list<node>&&>(plan_.steps);
    return result;
  }

 private:
  graph& g_;
  partition_options options_;
  list<char> live_;
  partial_permissions permissions_;
  plan_writer plan_;
  planning planning_;
  shared_sums shared_;
  chosen_strategies strategies_;

  /// The form of an output: as it was computed, and complete unless it may stay partial.
  constexpr std::int32_t output(std::int32_t tensor) {
    sharding layout = plan_.cache.first_layout(tensor);
    const bool may_stay = !options_.only_partial_sums || layout.pending == reduction::sum;
    if (!options_.partial_outputs || !may_stay) layout.partial = 0;
    consumer reader = producer_of(tensor);
    reader.may_move = options_.implicit != strictness::strict;
    return plan_.get_or_reshard(tensor, layout, reader);
  }
  /// The consumer of a reshard that no node reads: the node that made the tensor, at the end of the plan.
  constexpr consumer producer_of(std::int32_t tensor) const {
    const std::int32_t producer = g_.at(tensor).producer;
    consumer c;
    if (producer >= 0) {
      c.kind = g_.nodes[std::size_t(producer)].kind;
      c.place = g_.nodes[std::size_t(producer)].place;
    }
    c.place.position = std::int32_t(g_.nodes.size());
    return c;
  }
  constexpr consumer reader_of(const node& n, int operand) const {
    return {n.kind, n.place, operand, n.place.gradient || n.place.is_explicit || may_move(g_, n.input(operand))};
  }

  constexpr void place(const node& n) {
    if (n.kind == op::annotate) return place_annotation(n);
    if (traits(n.kind).of_addends) return place_feedback(n);
    if (g_.while_loops != 0 && is_of_loop(n.kind)) return place_loop(n);
    if (g_.while_loops != 0 && n.inputs == 2 && is_linear(n) && !planning_.needs_complete[std::size_t(n.input(1))])
      defer_sums(n, n.input(0), plan_.cache.first_layout(n.input(1)));
    const bool reshapes = n.attr.change != reshape_kind::unchanged;
    if (reshapes && place_rows(n, plan_.cache.first(n.input(0)))) return;
    const placement* found = &strategies_.choose(planning_, n, plan_.combines(), options_.loop_bytes);
    if (completes_shared_sum(n, found->chosen)) found = &strategies_.choose(planning_, n, plan_.combines(), options_.loop_bytes);
    const partitioning& chosen = found->chosen;
    if (reshapes && place_merge_of_rows(n, chosen)) return;
    einsum_loop loop;
    if (found->may_loop) loop = choose_loop(planning_, n, chosen, options_.implicit, options_.loop_bytes);
    node step = n;
    for (int i = 0; i < n.inputs; ++i) {
      if (i == loop.ring_operand) {
        plan_.check_not_overwritten(n.input(i));
        step.in[i] = loop.from;
      } else if (found->operands.empty()) {
        step.in[i] = plan_.get_or_reshard(n.input(i), operand_form(planning_, n, i, chosen.how, chosen.partial), reader_of(n, i));
      } else {
        step.in[i] = place_operand(n, i, found->operands.data()[i]);
      }
    }
    if (reshapes) {
      const sharding& made = found->results[0];
      if (const dim_list windows = windows_of_result(planning_, n, made); !windows.empty())
        return place_uneven_merge(step, made, windows, reader_of(n, 0));
    }
    const bool loops = loop.ring_operand != einsum_loop::none;
    if (loops) {
      step.kind = op::looped_einsum;
      step.attr.axes = loop.axes;
      step.attr.ring_operand = loop.ring_operand;
    }
    for (int o = 0; o < n.outputs; ++o)
      step.out[o] = plan_.add_result(n.output(o), loops ? loop.to : found->results.data()[o]);
    for (int o = 0; o < n.in_place; ++o) plan_.cache.overwrite(n.input(o));
    plan_.add(step);
    for (int o = 0; o < n.outputs; ++o) round_early(n, o);
  }
  /// The form in which a node takes operand i.
  constexpr std::int32_t place_operand(const node& n, int i, const operand_place& at) {
    if (at.form < 0) return plan_.get_or_reshard(n.in[i], at.layout, reader_of(n, i));
    plan_.check_not_overwritten(n.in[i]);
    const std::int32_t form = plan_.cache.form(n.in[i], at.form);
    return at.moves.empty() || g_.problem ? form : plan_.reshard(n.in[i], form, at.moves[0], reader_of(n, i));
  }
  /// Completes the operands that a product would keep partial, if that costs less for all their readers together.
  constexpr bool completes_shared_sum(const node& n, const partitioning& chosen) {
    bool completes = false;
    if (!chosen.partial.per_operand || options_.implicit == strictness::strict) return completes;
    for (int i = 0; i < n.inputs; ++i) {
      if (chosen.partial.of_operand(i).axes == 0 || !shared_.pay_if_completed(n.input(i))) continue;
      plan_.get_or_reshard(n.input(i), shared_.complete_sharding(n.input(i)), reader_of(n, i));
      completes = true;
    }
    return completes;
  }
  /// Rounds an addend that will travel as bf16 where it is computed, so that its sum can start before a reader waits for it.
  constexpr void round_early(const node& n, int o) {
    if (permissions_.needs_complete[std::size_t(n.output(o))]) plan_.round_addend(n.output(o), {.kind = n.kind, .place = n.place});
  }
  /// Rounds every device's addend, as it was computed, with error feedback. The residual gets a leading dim over the devices that hold
  /// addends. Without such devices nothing is rounded, and the residual is empty.
  constexpr void place_feedback(const node& n) {
    const sharding made = plan_.cache.first_layout(n.input(1));
    const std::uint32_t sums = made.partial & ~single_axes(planning_.e);
    if (!sums) {
      plan_.add_alias(plan_.cache.first(n.input(0)), n.output(0), n.place);
      return plan_.add_alias(plan_.cache.first(n.input(1)), n.output(1), n.place);
    }
    value residual = g_.at(n.input(0));
    residual.dims = {};
    residual.dims.push_back(blocks_dim(g_, sums));
    residual.layout = sharding::replicated(made.rank + 1);
    for (int a = 0; sums >> a != 0; ++a)
      if ((sums >> a) & 1u) residual.layout[0].push_back(a);
    for (int d = 0; d < made.rank; ++d) {
      residual.dims.push_back(g_.at(n.input(1)).dims[d]);
      residual.layout[d + 1] = made.axes[d];
    }
    plan_.cache.reshape_first(n.input(0), residual.dims, residual.layout);
    g_.at(n.output(0)).dims = residual.dims;
    node step = n;
    step.in[0] = plan_.cache.first(n.input(0));
    step.in[1] = plan_.cache.first(n.input(1));
    step.out[0] = plan_.add_result(n.output(0), residual.layout);
    step.out[1] = plan_.add_result(n.output(1), made);
    plan_.check_not_overwritten(n.input(1));
    plan_.cache.overwrite(n.input(0));
    plan_.add(step);
    round_early(n, 1);
  }
  /// The dim with one entry for each device along these axes.
  static constexpr int blocks_dim(graph& g, std::uint32_t axes) {
    dim d;
    d.what = dim::kind::blocks;
    d.first = std::uint8_t(axes);
    d.number = 1;
    for (std::size_t i = 0; i < g.dims.size(); ++i)
      if (g.dims[i] == d) return int(i);
    if (g.dims.size() > std::size_t(dim_list::largest)) g.problem.report(fault::too_many_dims, "feedback");
    else g.dims.push_back(d);
    return int(g.dims.size()) - 1;
  }
  /// An annotation reshards its operand and gives it a second name. A may_move without a sharding changes nothing.
  constexpr void place_annotation(const node& n) {
    const sharding& layout = g_.at(n.output()).layout;
    if (layout.partial && plan_.cache.cost(n.input(0), layout) < 0) return g_.problem.report(fault::sum_not_pending, "annotate");
    const bool open = n.attr.may_move && layout.open && !layout.used();
    const std::int32_t source =
        open ? plan_.cache.first(n.input(0)) : plan_.get_or_reshard(n.input(0), layout, {.kind = n.kind, .place = n.place});
    plan_.add_alias(source, n.output(), n.place);
  }
  /// A state to which every iteration adds is partial over the axes of the partial addend, if none of them shards the state. `addition` is
  /// linear in both, so the partial sums of the devices add up to the state. No other node may read the state.
  constexpr void defer_sums(const node& addition, std::int32_t state, const sharding& addend) {
    const std::int32_t opened = g_.at(state).producer;
    if (opened < 0 || !g_.nodes[std::size_t(opened)].attr.defers_sums || nesting_of_results(g_.nodes[std::size_t(opened)]) < 0) return;
    for (std::size_t i = 0; i < live_.size(); ++i)
      if (const node& reader = g_.nodes[i]; live_[i] && &reader != &addition && reads_value(reader, state)) return;
    sharding layout = plan_.cache.first_layout(state);
    if (addend.pending != reduction::sum || (addend.partial & layout.used()) || layout.order) return;
    layout.partial = addend.partial;
    plan_.cache.reshape_first(state, g_.at(state).dims, layout);
  }
  /// A node of a while loop. Carried values keep the sharding that propagation found. The condition is complete on all devices.
  constexpr void place_loop(const node& n) {
    node step = n;
    sharding layout;
    if (n.inputs + n.outputs > 0) layout = g_.at(nesting_of_results(n) > 0 ? n.output() : n.input(0)).layout;
    layout.partial = 0;
    if (n.attr.defers_sums && n.inputs > 0) {
      if (writes_row(n)) defer_sums(n, n.input(0), plan_.cache.first_layout(n.input(1)));
      layout.partial = plan_.cache.first_layout(n.input(0)).partial;
    }
    for (int i = 0; i < n.inputs; ++i) {
      consumer reader = reader_of(n, i);
      reader.may_move = reader.may_move || writes_row(n);
      const sharding& form = !writes_row(n) || i == 0 ? layout : i == 1 ? row_sharding(layout) : sharding::replicated(0);
      step.in[i] = plan_.get_or_reshard(n.input(i), form, reader);
    }
    if (n.outputs > 0) step.out[0] = plan_.add_result(n.output(), layout);
    plan_.add(step);
  }
  /// True if a node reads the value of a state, and does not only end an iteration with its next value.
  static constexpr bool reads_value(const node& n, std::int32_t state) {
    const bool ends_iteration = is_of_loop(n.kind) && nesting_of_results(n) < 0;
    for (int i = ends_iteration && !writes_row(n) ? 1 : 0; i < n.inputs; ++i)
      if (n.input(i) == state) return true;
    return false;
  }
  /// The sharding of a row along dim 0.
  static constexpr sharding row_sharding(const sharding& of) {
    sharding row = sharding::replicated(of.rank - 1);
    row.partial = of.partial;
    for (int d = 1; d < of.rank; ++d) row[d - 1] = of.axes[d];
    return row;
  }
  /// A reshape that keeps one row per device in place. Returns false if the reshape is not of this kind.
  constexpr bool place_rows(const node& n, std::int32_t operand) {
    const row_reshape rows = reshape_of_rows(planning_, n, plan_.cache.at(operand).layout);
    if (!rows.found) return false;
    node step = n;
    step.in[0] = operand;
    step.out[0] = plan_.add_result(n.output(), rows.to);
    plan_.check_not_overwritten(n.input(0));
    plan_.add(step);
    return true;
  }
  /// The same after resharding the operand, if that is cheaper than the chosen strategy.
  constexpr bool place_merge_of_rows(const node& n, const partitioning& chosen) {
    const sharding rows = rows_for_merge(planning_, n);
    if (!rows.used() || plan_.cache.cost(n.input(0), rows) >= strategy_cost(planning_, n, chosen.how, chosen.partial)) return false;
    place_rows(n, plan_.get_or_reshard(n.input(0), rows, reader_of(n, 0)));
    return true;
  }
  /// A merge of dims that leaves uneven blocks on the devices. One exchange makes them even. No other reader takes the uneven form.
  constexpr void place_uneven_merge(node step, const sharding& made, const dim_list& windows, const consumer& reader) {
    const std::int32_t tensor = step.output();
    const std::int32_t uneven = step.out[0] = plan_.add_result(tensor, made, windows);
    plan_.add(step);
    plan_.cache.forget(tensor);
    plan_.exchange(uneven, tensor, {made, {}}, reader);
  }
};

/// The bytes that a device receives in all steps, plus `start_bytes` for each collective.
constexpr std::int64_t cost_of_moves(const graph& g, const mesh_shape& mesh, const partitioned& parts, const extents& e) {
  const plan_view plan{mesh, g.dims, parts.values, {}, parts.steps, parts.parameters, parts.inputs, parts.outputs, g.windows, g.orders};
  return saturating_sum(plan.bytes_received(e), plan.collectives() * e.start_bytes);
}

/// Marks the partial sums that are not made of other partial sums: a and b, but not p = a + b and q = a - b. If they have fewer bytes than
/// the sums that the plan completes, completing them first may cost less. Otherwise none is marked.
constexpr list<char> shared_addends(const graph& g, const partitioned& parts, const extents& e) {
  const auto bytes = [&](const value& v) { return shard_elements(v.dims, sharding::replicated(v.rank()), e) * size_of(v.type); };
  std::int64_t completed = 0, made = 0;
  for (const node& step : parts.steps)
    for (int i = 0; i < step.inputs && traits(step.kind).sums; ++i)
      completed = saturating_sum(completed, bytes(parts.values[std::size_t(step.in[i])]));
  list<char> found;
  if (completed == 0) return found;
  for (std::size_t t = 0; t < g.values.size(); ++t) {
    if (parts.partial_sums[t] == 0) continue;
    bool passes = false;  // true if the maker reads a partial sum
    if (const std::int32_t maker = g.values[t].producer; maker >= 0)
      for (int k = 0; k < g.nodes[std::size_t(maker)].inputs; ++k)
        passes = passes || parts.partial_sums[std::size_t(g.nodes[std::size_t(maker)].in[k])] != 0;
    if (passes) continue;
    if (found.empty()) found = list<char>(g.values.size(), 0);
    found[t] = 1;
    made = saturating_sum(made, bytes(g.values[t]));
  }
  if (made >= completed) return {};
  return found;
}

/// The plan after sums are regrouped, or `parts`. Products stay partial if that costs less.
constexpr partitioned with_regrouped_sums(graph& g, const mesh_shape& mesh, const extents& e, const partition_options& options,
                                          partitioned parts) {
  for (const bool products : {true, false}) {
    sum_regrouping sums(g, e, parts.partial_sums, parts.needs_complete, products);
    if (!sums.run()) return parts;
    partitioned regrouped = partitioner(g, mesh, e, options, sums.stays_partial).run();
    if (sums.stays_partial.empty() || g.problem || cost_of_moves(g, mesh, regrouped, e) < cost_of_moves(g, mesh, parts, e))
      return regrouped;
    sums.undo();
  }
  return parts;
}
/// The plan in which shared addends are completed first if that costs less, otherwise `parts`.
constexpr partitioned with_completed_addends(graph& g, const mesh_shape& mesh, const extents& e, const partition_options& options,
                                             partitioned parts) {
  if (g.while_loops != 0) return parts;  // states of loops carry partial sums
  const list<char> addends = shared_addends(g, parts, e);
  if (addends.empty()) return parts;
  partitioned completed = partitioner(g, mesh, e, options, {}, addends).run();
  if (!g.problem && cost_of_moves(g, mesh, completed, e) < cost_of_moves(g, mesh, parts, e)) return completed;
  g.problem = {};  // `parts` has no fault
  return parts;
}

/// Partitions a graph, and looks for a cheaper plan with other partial sums.
constexpr partitioned partition(graph& g, const mesh_shape& mesh, const extents& e, const partition_options& options) {
  partitioned parts = partitioner(g, mesh, e, options).run();
  bool of_addends = false;  // partitioning changes the dims of residuals
  for (const node& n : g.nodes) of_addends = of_addends || traits(n.kind).of_addends;
  if (!g.problem && !of_addends) parts = with_regrouped_sums(g, mesh, e, options, static_cast<partitioned&&>(parts));
  if (!g.problem && !of_addends) parts = with_completed_addends(g, mesh, e, options, static_cast<partitioned&&>(parts));
  if (!g.problem)
    order_steps(parts.values, parts.steps, parts.parameters, parts.inputs, parts.outputs, g.windows, e, options.combine_bytes,
                g.while_loops != 0);
  return parts;
}

}  // namespace detail

}}  // namespace gshard::v0
