// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Partial sums with several readers: completes one early if that costs less for all its readers together.
//
// A product may keep an operand partial, and move its other operand instead. This is cheaper for this product alone. However, if a later
// reader needs the complete sum, the product can read it at no cost.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/choose_strategy.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/pass/neighbors.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

class shared_sums {
 public:
  /// `cache`: the cache of `p`, in which forms are assumed and retracted.
  constexpr shared_sums(const planning& p, layout_cache& cache, const list<char>& live) : p_(p), cache_(cache), live_(live) {}

  /// True if it costs less for all readers of a tensor together to complete it before the next node reads it. The tensor is a partial sum
  /// that this node would keep. The complete sum gets the sharding that propagation found.
  constexpr bool pay_if_completed(std::int32_t tensor) {
    const list<std::int32_t> readers = readers_left(tensor);
    if (readers.size() < 2) return false;
    const std::int64_t kept = cost_of_all(readers, tensor);
    const sharding complete = complete_sharding(tensor);
    const std::int64_t completed = p_.cache.cost(tensor, complete);
    cache_.assume(tensor, complete);
    const bool pays = completed + cost_of_all(readers, tensor) < kept;
    cache_.retract(tensor);
    return pays;
  }
  constexpr sharding complete_sharding(std::int32_t tensor) const {
    sharding s = p_.g.at(tensor).layout;
    s.partial = s.open = 0;
    return s;
  }

 private:
  const planning& p_;
  layout_cache& cache_;
  const list<char>& live_;
  neighbors near_;  // empty until it is needed
  static constexpr std::size_t most_readers = 12;
  static constexpr std::int32_t leaves_program = -1;  // among readers: an output, or a parameter that takes the value

  constexpr const node& at(std::int32_t i) const { return p_.g.nodes.data()[i]; }

  /// The next nodes that read a tensor and are not in the plan yet. At most `most_readers`, because each reader asks for all readers after
  /// it.
  constexpr list<std::int32_t> readers_left(std::int32_t tensor) {
    if (near_.empty()) near_ = neighbors(p_.g);
    list<std::int32_t> found;
    near_.of(tensor, [&](std::int32_t i) {
      const node& n = at(i);
      if (found.size() == most_readers) return;
      if (!live_[std::size_t(i)] || p_.g.at(tensor).producer == i || (!found.empty() && found.back() == i)) return;
      if (n.outputs == 0 || p_.cache.first(n.output()) < 0) found.push_back(i);
    });
    bool leaves = false;
    for (const port& out : p_.g.outputs) leaves = leaves || out.value == tensor;
    for (const parameter& q : p_.g.parameters) leaves = leaves || q.updated == tensor;
    if (leaves) found.push_back(leaves_program);
    return found;
  }
  /// The cost of the readers, one after the other. A sum that one reader completes is complete for the next readers.
  constexpr std::int64_t cost_of_all(const list<std::int32_t>& readers, std::int32_t tensor) {
    std::int64_t total = 0;
    int completed = 0;
    for (const std::int32_t i : readers) {
      sharding read = complete_sharding(tensor);
      total += i == leaves_program ? p_.cache.cost(tensor, read) : cost_of(at(i), tensor, read);
      if (read.partial || p_.cache.cost(tensor, read) == 0) continue;
      cache_.assume(tensor, read);
      ++completed;
    }
    for (; completed > 0; --completed) cache_.retract(tensor);
    return total;
  }
  /// The cost of one reader. Operands that are not in the plan yet have the shardings that propagation found. `read`: the sharding in which
  /// it reads the tensor.
  constexpr std::int64_t cost_of(const node& n, std::int32_t tensor, sharding& read) {
    if (traits(n.kind).annotates && !is_of_loop(n.kind)) {
      if (n.attr.may_move && p_.g.at(n.output()).layout.open) read = p_.cache.first_layout(tensor);
      else read = p_.g.at(n.output()).layout;
    }
    if (n.outputs == 0 || traits(n.kind).annotates || traits(n.kind).of_addends || follows_result(n)) return p_.cache.cost(tensor, read);
    std::int32_t assumed[sharding_rule::most_in]{};
    int count = 0;
    for (int i = 0; i < n.inputs; ++i) {
      if (p_.cache.first(n.input(i)) >= 0) continue;
      cache_.assume(n.input(i), p_.g.at(n.input(i)).layout);
      assumed[count++] = n.input(i);
    }
    const partitioning chosen = choose_strategy(p_, n, false);
    const std::int64_t cost = strategy_cost(p_, n, chosen.how, chosen.partial);
    for (int i = 0; i < n.inputs; ++i)
      if (n.input(i) == tensor) read = sharding_of(n.rule.in[i], chosen.how, chosen.partial.of_operand(i));
    while (count > 0) cache_.retract(assumed[--count]);
    return cost;
  }
};

}}}  // namespace gshard::v0::detail
