// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Orders the nodes of a plan: parameter updates run early, to free gradients and to overlap their reductions.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>
#include <gshard/core/schedule/update_companions.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The order in which nodes become steps: their own order, but parameter updates come as early as possible, so that gradients are freed
/// early. An update waits for its operands, for all readers of the tensors that it overwrites, and for all nodes that may fail. An error
/// therefore leaves the parameters unchanged. Updates run in buckets of `bucket`: their gradients are summed together, while the next
/// gradients are computed. Error feedback runs at once, so that the sum of its result can start. No update runs later than in its own
/// order. Its companions, such as the cast that makes its master value, run with it.
/// @see update_companions, async_schedule
class update_order {
 public:
  static constexpr std::size_t bucket = 8;

  // Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
  constexpr update_order(const graph& g, const list<char>& live)
      : order_(g.nodes.size(), -1), values_(g.values.data()), nodes_(g.nodes.data()) {
    const auto n = std::int32_t(g.nodes.size());
    const char* const is_live = live.data();
    std::int32_t* const order = order_.data();
    const auto is_update = [this](std::int32_t i) { return updates_parameters(nodes_[i]); };
    list<std::int32_t> updates;
    for (std::int32_t i = 0; i < n; ++i)
      if (is_live[i] && is_update(i)) updates.push_back(i);
    if (updates.empty()) {
      for (std::int32_t i = 0; i < n; ++i)
        if (is_live[i]) order[count_++] = i;
      return;
    }
    const update_companions with(g, is_live, updates);
    list<std::int32_t> ready_list(std::size_t(n) + 1, -1), next_list(std::size_t(n), -1);  // by node + 1: the updates ready after it
    std::int32_t *const ready = ready_list.data(), *const next = next_list.data();
    find_ready(g.values.size(), n, is_live, updates, with, ready, next);
    list<std::int32_t> waiting;
    std::size_t first = 0;  // the first that waits
    const auto place_until = [&](std::size_t end) {
      for (; first < end; ++first) {
        const std::int32_t u = waiting[first];
        std::int32_t i = with.first(u);
        for (; i >= 0 && i < u; i = with.next(i)) order[count_++] = i;
        order[count_++] = u;
        for (; i >= 0; i = with.next(i)) order[count_++] = i;
        next[u] = placed;
      }
    };
    for (std::int32_t i = 0; i <= n; ++i) {
      if (i > 0 && is_live[i - 1] && with.update_of(i - 1) < 0) {
        if (!is_update(i - 1)) order[count_++] = i - 1;
        else if (next[i - 1] != placed) place_until(waiting.size());
      }
      for (std::int32_t u = ready[i], after = -1; u >= 0; u = after) {
        after = next[u];
        if (!traits(nodes_[u].kind).of_addends) {
          waiting.push_back(u);
          continue;
        }
        order[count_++] = u;
        next[u] = placed;
      }
      if (waiting.size() >= first + 2 * bucket) place_until(waiting.size() - bucket);
    }
  }

  constexpr const std::int32_t* begin() const { return order_.data(); }
  constexpr const std::int32_t* end() const { return order_.data() + count_; }

 private:
  static constexpr std::int32_t placed = -2;

  list<std::int32_t> order_;  // of live nodes
  std::size_t count_ = 0;
  const value* values_;
  const node* nodes_;

  constexpr void find_ready(std::size_t n_values, std::int32_t n, const char* is_live, const list<std::int32_t>& updates,
                            const update_companions& with, std::int32_t* ready, std::int32_t* next) const {
    list<std::int32_t> last_read_list(n_values, -1);
    list<std::int32_t> checked_list(n_values, -1);  // by tensor of ids: the dim whose extent an earlier node checks it against
    std::int32_t *const last_read = last_read_list.data(), *const checked = checked_list.data();
    // Only tensors that updates overwrite matter.
    constexpr std::int32_t unread = -1, watched = -2;
    for (const std::int32_t u : updates)
      for (int k = 0; k < nodes_[u].in_place; ++k) last_read[storage_of(values_, nodes_, nodes_[u].in[k])] = watched;
    std::int32_t may_fail = -1;
    for (std::int32_t i = 0; i < n; ++i) {
      if (!is_live[i]) continue;
      const node& it = nodes_[i];
      const bool updates_here = updates_parameters(it);
      for (int k = updates_here ? it.in_place : 0; k < it.inputs; ++k) {
        const std::int32_t made = values_[it.in[k]].producer;
        if (made >= 0 && !traits(nodes_[made].kind).alias) continue;
        if (const std::int32_t v = storage_of(values_, nodes_, it.in[k]); last_read[v] != unread) last_read[v] = i;
      }
      const int operand = traits(it.kind).ids;
      if (operand < 0) {
        if (gshard::may_fail(it.kind) || is_of_loop(it.kind)) may_fail = i;
        continue;
      }
      const dim_list& table = values_[traits(it.kind).ids_of_result ? it.out[0] : it.in[0]].dims;
      const std::int32_t below = table[traits(it.kind).ids_along == line_dim::attribute ? it.attr.dim : table.count - 1];
      if (checked[it.in[operand]] != below) may_fail = i;
      checked[it.in[operand]] = below;
    }
    list<std::int32_t> ready_after(updates.size(), -1);  // by update: the node after which it is ready
    list<std::int32_t> feedback(std::size_t(n), -1);  // the same by node
    for (std::size_t j = 0; j < updates.size(); ++j) {
      const std::int32_t i = updates[j];
      const node& it = nodes_[i];
      std::int32_t after = may_fail;
      for (int k = 0; k < it.inputs; ++k) {
        std::int32_t made = values_[it.in[k]].producer;
        if (made >= 0 && traits(nodes_[made].kind).of_addends) made = feedback[std::size_t(made)];
        if (made >= 0 && with.update_of(made) == i) continue;
        if (made > after) after = made;
        if (k >= it.in_place) continue;
        if (const std::int32_t read = last_read[storage_of(values_, nodes_, it.in[k])]; read > after) after = read;
      }
      for (std::int32_t c = with.first(i); c >= 0 && c < i; c = with.next(c))
        for (int k = 0; k < nodes_[c].inputs; ++k)
          if (const std::int32_t made = values_[nodes_[c].in[k]].producer; made > after && with.update_of(made) != i) after = made;
      if (after >= i) after = i - 1;  // the partitioner reports a later read of its operand
      ready_after[j] = feedback[std::size_t(i)] = after;
    }
    for (std::size_t j = updates.size(); j-- > 0;) {
      const std::int32_t i = updates[j], after = ready_after[j];
      next[i] = ready[after + 1];
      ready[after + 1] = i;
    }
  }
};

}}}  // namespace gshard::v0::detail
