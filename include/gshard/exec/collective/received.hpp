// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts the bytes that the collectives of a run receive, by kind of operation.

#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/collective/step_moves.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Counts calls and bytes by kind of operation. For a combined step the backend counts only the total bytes. This class divides them by
/// kind, with the sizes that follow from the shardings.
class received_by_kind {
 public:
  const received_count& operator[](op_ref kind) const { return counts_[std::size_t(kind->move + 1)]; }

  /// Prepares for a plan of n steps.
  void resize(std::size_t n) { steps_.resize(n); }
  /// Computes the bytes received for each tensor of step i, if the step combines several kinds.
  void bind(std::size_t i, const node& step, const step_moves& moves) {
    if (!has_several_kinds(step)) return;
    steps_[i].resize(moves.devices());
    for (std::size_t d = 0; d < moves.devices(); ++d) {
      const device_group members = moves.group(d);
      moves.for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& pieces) {
        if (from == to || to != std::size_t(members.member())) return;
        for (const piece& p : pieces) steps_[i][d][p.tensor] += p.elements * moves.width();
      });
    }
  }
  /// Counts one call of each kind in a step.
  void call(const node& step) {
    std::uint32_t kinds = 0;  // a bit each
    for (int t = 0; t < step.inputs; ++t) {
      const op_ref kind = operation_of_move(step, t);
      if (!((kinds >> bit(kind)) & 1u)) ++count_of(kind).calls;
      kinds |= 1u << bit(kind);
    }
  }
  /// Adds bytes that a device received in step i.
  void add(std::size_t i, const node& step, std::size_t device, std::int64_t bytes) {
    if (!steps_[i].empty())
      for (int t = 1; t < step.inputs; ++t) {
        const std::int64_t own = std::min(bytes, steps_[i][device][std::size_t(t)]);
        count_of(operation_of_move(step, t)).bytes += own;
        bytes -= own;
      }
    count_of(operation_of_move(step, 0)).bytes += bytes;
  }

 private:
  using shares = std::vector<std::array<std::int64_t, sharding_rule::most_in>>;  // bytes, by held device and operand
  std::array<received_count, 1 + std::size(move_operations)> counts_{};  // by move; the first: of operations that move nothing
  std::vector<shares> steps_;

  received_count& count_of(op_ref kind) { return counts_[std::size_t(kind->move + 1)]; }
  /// The number of a collective among the operations that plans add.
  static constexpr unsigned bit(op_ref kind) { return unsigned(kind->move); }
  static bool has_several_kinds(const node& step) {
    for (int t = 1; t < step.inputs; ++t)
      if (operation_of_move(step, t) != operation_of_move(step, 0)) return true;
    return false;
  }
};

}  // namespace detail

}}  // namespace gshard::v0
