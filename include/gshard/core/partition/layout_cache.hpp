// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shardings in which each tensor of a graph exists in a plan, and the cost of resharding it to another one.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>
#include <gshard/core/partition/repeated_nodes.hpp>
#include <gshard/core/partition/row_counts.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The form of a tensor in a plan: its sharding, and for each dim the window (halo) through which its shards are read, or 0.
struct sharded_form {
  sharding layout;
  dim_list windows;
};

/// For each tensor of a graph, the forms in which the plan has it so far. Each form is a value of the plan.
/// Costs are bytes that one device receives, plus `start_bytes` per collective, plus 1 unless the form exists.
class layout_cache {
 public:
  constexpr layout_cache(const graph& g, const extents& e)
      : g_(g), e_(e), first_(g.values.size(), -1), overwritten_(g.values.size(), 0), of_smaller_(tensors_of_smaller_operands(g)),
        counts_rows_(tensors_of_counted_rows(g)) {}

  /// The values of the plan.
  list<value> values;

  constexpr const value& at(std::int32_t v) const { return values.data()[v]; }
  /// The first form of a tensor: as it was computed, or as it entered the program. -1: there is none yet.
  constexpr std::int32_t first(std::int32_t tensor) const { return first_.data()[tensor]; }
  constexpr std::int32_t next(std::int32_t v) const { return next_.data()[v]; }
  constexpr const sharding& first_layout(std::int32_t tensor) const { return at(first(tensor)).layout; }
  /// True if the node of a tensor may run again instead of a move. @see tensors_of_smaller_operands
  constexpr bool is_of_smaller(std::int32_t tensor) const { return of_smaller_.data()[tensor] != 0; }
  /// True if moves of a tensor may leave out rows that are not in use. @see row_counts
  constexpr bool may_count_rows(std::int32_t tensor) const { return counts_rows_.data()[tensor] != 0; }

  /// The form of a tensor with this number, in the order in which forms were added.
  constexpr std::int32_t form(std::int32_t tensor, std::int32_t number) const {
    std::int32_t v = first_.data()[tensor];
    for (const std::int32_t* const next = next_.data(); number > 0; --number) v = next[v];
    return v;
  }

  /// Adds a form of a tensor, made by step `producer` of the plan (-1: by none). Returns its value in the plan.
  // By value: they may be those of a form, which moves when the table grows.
  constexpr std::int32_t add(std::int32_t tensor, sharding layout, dim_list windows, std::int32_t producer) {
    const auto id = std::int32_t(values.size());
    values.push_back(g_.values.data()[tensor]);
    value& v = values.data()[id];  // in place, because copies are slow in constexpr
    v.layout = layout;
    v.layout.open = 0;
    v.windows = windows;
    v.producer = producer;
    next_.push_back(-1);
    std::int32_t* last = first_.data() + tensor;
    while (*last >= 0) last = next_.data() + *last;
    *last = id;
    return id;
  }
  /// The tensor whose storage a tensor shares.
  constexpr std::int32_t owner(std::int32_t tensor) const { return storage_of(g_.values.data(), g_.nodes.data(), tensor); }
  /// Marks the storage of a tensor as overwritten: reading it later is an error.
  constexpr void overwrite(std::int32_t tensor) { overwritten_[std::size_t(owner(tensor))] = 1; }
  constexpr bool is_overwritten(std::int32_t tensor) const { return overwritten_[std::size_t(owner(tensor))]; }
  /// Adds a form of a tensor that the plan does not have, to price a plan that has it. `retract` removes assumed forms, the last one first.
  constexpr void assume(std::int32_t tensor, const sharding& layout) { add(tensor, layout, {}, -1); }
  constexpr void retract(std::int32_t tensor) {
    const auto last = std::int32_t(values.size()) - 1;
    std::int32_t* at = &first_[std::size_t(tensor)];
    while (*at != last) at = &next_[std::size_t(*at)];
    *at = -1;
    next_.pop_back();
    values.pop_back();
  }
  /// Adds a value that is not a form of a tensor: a form as devices exchange it. Step `producer` of the plan makes it.
  constexpr std::int32_t add_sent(const value& form, std::int32_t producer) {
    value v = sent(form);
    v.bf16_on_wire = v.fits_bf16 = false;
    v.producer = producer;
    values.push_back(v);
    next_.push_back(-1);
    return std::int32_t(values.size()) - 1;
  }
  /// Gives the first form of a tensor its final dims and sharding.
  constexpr void reshape_first(std::int32_t tensor, const dim_list& dims, const sharding& layout) {
    value& v = values[std::size_t(first(tensor))];
    v.dims = dims;
    v.layout = layout;
    v.layout.open = 0;
  }
  /// Forgets all forms of the tensor; its values stay in the plan.
  constexpr void forget(std::int32_t tensor) { first_[std::size_t(tensor)] = -1; }

  /// The moves that reshard a form of a tensor. An exchange that moves only rows in use is ragged. Its price assumes that choices are
  /// spread equally over expert groups. It starts twice: counts travel first.
  constexpr move_list moves_between(std::int32_t tensor, const value& form, const sharding& from, const sharding& to) const {
    const value v = sent(form);
    move_list all = plan_reshard(v, from, to, e_);
    for (std::size_t i = 0; may_count_rows(tensor) && i < all.count; ++i) {
      move& m = all.moves[i];
      const sharding& before = i == 0 ? from : all.moves[i - 1].to;
      if (!moves_whole_rows(m.axes, v, before, m.to)) continue;
      const std::int32_t counts = row_counts(g_, tensor);
      if (counts < 0) continue;
      if (const std::int64_t c = cost(counts, sharding_of_counts(before)); c < 0 || c > 1) continue;  // they would need a collective
      const std::int64_t bytes = bytes_received(m.kind, m.axes, v, before, m.to, e_);
      m.kind = op::ragged_all_to_all;
      all.bytes -= bytes - bytes_in_use(bytes, counts, v);
      ++all.starts;
    }
    return all;
  }
  /// The cost of resharding a form of a tensor, device orders included.
  constexpr std::int64_t reshard_cost(std::int32_t tensor, const value& form, const sharding& from, const sharding& to) const {
    const value v = sent(form);
    const move_list way = moves_between(tensor, form, from, to);
    if ((from.order | to.order) == 0 || !traits(way.moves[way.count - 1].kind).collective) return way.cost(e_);
    value before = v, after = v;
    before.layout = way.count > 1 ? way.moves[way.count - 2].to : from;
    after.layout = to;
    const std::int64_t bytes = bytes_between_orders(before, after, g_.windows, g_.orders, e_);
    return way.cost(e_) + (bytes > 0 ? bytes : -e_.start_bytes);
  }
  /// The cost of one exchange between two forms, if one has windows.
  constexpr std::int64_t exchange_cost(const value& before, const value& after) const {
    const value from = sent(before), to = sent(after);
    const std::int64_t bytes = from.layout.order == to.layout.order ? bytes_lacking(from, to, g_.windows, e_)
                                                                     : bytes_between_orders(from, to, g_.windows, g_.orders, e_);
    return bytes == 0 ? 1 : bytes + e_.start_bytes;
  }

  /// The cost of getting a tensor in this sharding: from its cheapest form, or by running its node again. 0: it exists; -1: no form can
  /// become it.
  constexpr std::int64_t cost(std::int32_t tensor, const sharding& layout) const {
    const std::int64_t moved = cost_of_move(tensor, layout);
    if (moved <= 1 || !of_smaller_.data()[tensor]) return moved;
    const std::int64_t repeated = cost_of_repetition(tensor, layout);
    return repeated >= 0 && repeated < moved ? repeated : moved;
  }
  /// True if it is cheaper to run the node of a tensor again than to move a form of it.
  constexpr bool is_repeated(std::int32_t tensor, const sharding& layout) const {
    if (!of_smaller_.data()[tensor]) return false;
    const std::int64_t moved = cost_of_move(tensor, layout), repeated = moved > 1 ? cost_of_repetition(tensor, layout) : -1;
    return repeated >= 0 && repeated < moved;
  }
  /// The cost of a move from the cheapest form. Sets `from` to that form.
  constexpr std::int64_t cost_of_move(std::int32_t tensor, const sharding& layout, std::int32_t* from = nullptr) const {
    std::int64_t best = -1;
    const value* const all = values.data();
    const std::int32_t* const next = next_.data();
    for (std::int32_t v = first_.data()[tensor]; v >= 0; v = next[v]) {
      const sharding& s = all[v].layout;
      if ((layout.partial & ~s.partial) || all[v].windows.count > 0) continue;
      const std::int64_t c = s.same_layout(layout) ? 0 : 1 + reshard_cost(tensor, all[v], s, layout);
      if (best < 0 || c < best) {
        best = c;
        if (from) *from = v;
      }
      if (best == 0) break;
    }
    return best;
  }
  /// The same for a form with windows. `from` receives -1 if the tensor is first resharded without windows.
  constexpr std::int64_t cost(std::int32_t tensor, const sharded_form& wanted, std::int32_t& from) const {
    value goal = g_.at(tensor);
    goal.layout = wanted.layout;
    goal.windows = wanted.windows;
    value plain = goal;
    plain.windows = {};
    from = -1;
    std::int64_t best = cost(tensor, wanted.layout) + exchange_cost(plain, goal);
    for (std::int32_t v = first(tensor); v >= 0; v = next(v)) {
      const value& have = at(v);
      if (have.layout.partial != wanted.layout.partial) continue;
      std::int64_t c = 0;
      if (have.windows.empty()) c = exchange_cost(have, goal);
      else if (have.windows != wanted.windows || !have.layout.same_layout(wanted.layout)) continue;
      if (c > best || (c == best && from >= 0)) continue;
      best = c;
      from = v;
    }
    return best;
  }

 private:
  const graph& g_;
  const extents& e_;
  list<std::int32_t> first_;  // by tensor
  list<std::int32_t> next_;   // by value of the plan: the next form of the same tensor
  list<char> overwritten_;    // by tensor
  list<char> of_smaller_;     // by tensor @see tensors_of_smaller_operands
  list<char> counts_rows_;    // by tensor @see tensors_of_counted_rows

  /// The cost of the operands if the node of a tensor runs again to make this sharding; -1: it cannot. Forms in `counted` are free. Forms
  /// that the cost includes are added to `counted`. `left`: the number of nodes that may still be visited.
  constexpr std::int64_t cost_of_repetition(std::int32_t tensor, const sharding& layout, priced_forms& counted, int& left) const {
    if (left-- <= 0) return -1;
    const node& n = g_.nodes.data()[g_.at(tensor).producer];
    const repetition r = repeat_in(n, layout);
    if (!r.possible) return -1;
    std::int64_t total = 1;
    for (int i = 0; i < n.inputs; ++i) {
      if (is_overwritten(n.in[i])) return -1;
      if (counted.has(n.in[i], r.in[i])) continue;
      std::int64_t c = cost_of_move(n.in[i], r.in[i]);
      if (c > 1 && of_smaller_.data()[n.in[i]]) {
        priced_forms with = counted;
        if (const std::int64_t repeated = cost_of_repetition(n.in[i], r.in[i], with, left); repeated >= 0 && repeated < c) {
          c = repeated;
          counted = with;
        }
      }
      if (c < 0 || counted.full()) return -1;
      if (c > 0) counted.add(n.in[i], r.in[i]);
      total += c;
    }
    return total;
  }
  constexpr std::int64_t cost_of_repetition(std::int32_t tensor, const sharding& layout) const {
    priced_forms counted;
    int left = most_repeated;
    return cost_of_repetition(tensor, layout, counted, left);
  }

  /// The bytes of the rows in use, out of `bytes` for all rows, if choices are spread equally over expert groups. `counts`: the counts of
  /// these rows.
  constexpr std::int64_t bytes_in_use(std::int64_t bytes, std::int32_t counts, const value& rows) const {
    const dim_list& choices = g_.at(g_.nodes[std::size_t(g_.at(counts).producer)].in[0]).dims;  // [G,S,K]
    const std::int64_t groups = e_.dim(rows.dims[0]), all = e_.dim(rows.dims[2]);
    const std::int64_t used = (e_.dim(choices[1]) * e_.dim(choices[2]) + groups - 1) / groups;
    return used < all ? bytes / all * used : bytes;
  }
};

}}}  // namespace gshard::v0::detail
