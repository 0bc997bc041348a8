// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the nodes that run with a parameter update, such as the cast that makes its master value.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The nodes that run right before or right after a parameter update, so that their results are not kept for long:
/// - before: nodes computed from parameters that no update overwrites, and read by this update alone, such as master values.
/// - after: nodes computed from the results of this update alone, if parameters hold their last results, such as weights rounded from a
///   master value.
/// They are cheap, without random numbers, and outside of loops. Programs whose updates all overwrite parameters themselves have none.
/// @see update_order
class update_companions {
 public:
  // Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
  constexpr update_companions(const graph& g, const char* is_live, const list<std::int32_t>& updates)
      : n_(std::int32_t(g.nodes.size())), values_(g.values.data()), nodes_(g.nodes.data()) {
    bool any = false;
    list<char> overwritten(g.values.size(), 0);
    for (const std::int32_t u : updates)
      for (int k = 0; k < nodes_[u].in_place; ++k) {
        const std::int32_t v = storage_of(values_, nodes_, nodes_[u].in[k]);
        overwritten.data()[v] = 1;
        any = any || values_[v].producer >= 0;
      }
    if (!any) return;
    list<char> may_move(g.nodes.size(), 0), of_parameters(g.nodes.size(), 0);
    find_movable(is_live, overwritten.data(), may_move.data(), of_parameters.data());
    update_ = first_ = next_ = list<std::int32_t>(g.nodes.size(), -1);
    find_before(g, is_live, of_parameters.data(), update_.data());
    find_after(g, may_move.data(), update_.data());
    for (std::int32_t i = n_; i-- > 0;) {
      if (update_.data()[i] < 0) continue;
      std::int32_t& first = first_.data()[update_.data()[i]];
      next_.data()[i] = first;
      first = i;
    }
  }

  /// The update with which a node runs, or -1.
  constexpr std::int32_t update_of(std::int32_t i) const { return update_.empty() ? -1 : update_.data()[i]; }
  /// The first node that runs with an update, and the one after another, in their own order; or -1.
  constexpr std::int32_t first(std::int32_t update) const { return first_.empty() ? -1 : first_.data()[update]; }
  constexpr std::int32_t next(std::int32_t i) const { return next_.data()[i]; }

 private:
  std::int32_t n_;
  const value* values_;
  const node* nodes_;
  list<std::int32_t> update_, first_, next_;  // by node

  constexpr bool is_update(std::int32_t i) const { return updates_parameters(nodes_[i]) && !traits(nodes_[i].kind).of_addends; }

  /// Finds the nodes that may move, and among them the nodes computed from parameters that no update overwrites.
  constexpr void find_movable(const char* is_live, const char* overwritten, char* may_move, char* of_parameters) const {
    for (std::int32_t i = 0, depth = 0; i < n_; ++i) {
      const node& it = nodes_[i];
      depth += traits(it.kind).nesting;
      may_move[i] = is_live[i] && depth == 0 && it.inputs > 0 && traits(it.kind).recomputable && !updates_parameters(it);
      bool all = may_move[i] != 0;
      for (int k = 0; all && k < it.inputs; ++k) {
        const value& v = values_[it.in[k]];
        all = v.producer < 0 ? v.parameter >= 0 && !overwritten[it.in[k]] : of_parameters[v.producer] != 0;
      }
      of_parameters[i] = all;
    }
  }
  constexpr void find_before(const graph& g, const char* is_live, const char* of_parameters, std::int32_t* update) const {
    constexpr std::int32_t unknown = -1, several = -2;
    list<std::int32_t> reader_list(g.nodes.size(), unknown);  // by node: the only update that needs it
    std::int32_t* const reader = reader_list.data();
    const auto read = [&](std::int32_t v, std::int32_t by) {
      if (const std::int32_t maker = values_[v].producer; maker >= 0)
        reader[maker] = reader[maker] == unknown || reader[maker] == by ? by : several;
    };
    for (const port& q : g.outputs) read(q.value, several);
    for (const parameter& q : g.parameters)
      if (q.updated >= 0) read(q.updated, several);
    for (std::int32_t i = n_; i-- > 0;) {
      if (!is_live[i]) continue;
      const std::int32_t by = is_update(i) ? i : of_parameters[i] ? reader[i] : several;
      for (int k = 0; k < nodes_[i].inputs; ++k) read(nodes_[i].in[k], by);
      if (of_parameters[i] && reader[i] >= 0) update[i] = reader[i];
    }
  }
  constexpr void find_after(const graph& g, const char* may_move, std::int32_t* update) const {
    constexpr std::int32_t unknown = -1, several = -2;
    for (std::int32_t i = 0; i < n_; ++i) {
      std::int32_t of = may_move[i] && update[i] < 0 ? unknown : several;
      for (int k = 0; of != several && k < nodes_[i].inputs; ++k) {
        const std::int32_t maker = values_[nodes_[i].in[k]].producer;
        const bool follows = maker >= 0 && update[maker] >= 0 && update[maker] < maker;
        const std::int32_t from = follows ? update[maker] : maker >= 0 && is_update(maker) ? maker : several;
        of = of == unknown || of == from ? from : several;
      }
      if (of >= 0) update[i] = of;
    }
    list<char> kept_list(g.values.size(), 0);  // by value: a parameter holds it after the run, or a value computed from it
    char* const kept = kept_list.data();
    for (const parameter& q : g.parameters)
      if (q.updated >= 0) kept[q.updated] = 1;
    for (std::int32_t i = n_; i-- > 0;) {
      if (update[i] < 0 || update[i] > i) continue;
      if (!kept[nodes_[i].out[0]]) update[i] = -1;
      for (int k = 0; update[i] >= 0 && k < nodes_[i].inputs; ++k) kept[nodes_[i].in[k]] = 1;
    }
  }
};

}}}  // namespace gshard::v0::detail
