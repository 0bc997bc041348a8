// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses how the collective of a step runs.

#include <gshard/exec/collective/all_reduce_step.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_in_rounds.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/exchange_in_rounds.hpp>
#include <gshard/exec/collective/gather_at_once.hpp>
#include <gshard/exec/collective/gather_by_node.hpp>
#include <gshard/exec/collective/local_copy.hpp>
#include <gshard/exec/collective/ragged_exchange.hpp>
#include <gshard/exec/collective/reduce_scatter_step.hpp>
#include <gshard/exec/collective/shared_memory_collective.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/collective/two_hops.hpp>

#include <memory>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

using shared_room = std::shared_ptr<collective_room>;

inline std::unique_ptr<collective> make_ragged_exchange(const step_moves& moves, shared_room room) {
  if (moves.stays()) return std::make_unique<ragged_copy>(moves);
  return std::make_unique<ragged_exchange>(moves, std::move(room));
}

inline std::unique_ptr<collective> make_in_shared_memory(const step_moves& moves, shared_room room) {
  if (moves.all_reduces()) return std::make_unique<shared_memory_all_reduce>(moves);
  if (moves.reduce_scatters()) return std::make_unique<shared_memory_reduce_scatter>(moves, std::move(room));
  return std::make_unique<shared_memory_exchange>(moves);
}

/// An exchange or an all_gather by messages.
inline std::unique_ptr<collective> make_exchange(const step_moves& moves, shared_room room, bool early) {
  const auto direct = [&](hop which, bool is_early) {
    return std::make_unique<exchange_in_rounds>(blocks_of_exchange(moves.as_exchange(which), room, false), is_early);
  };
  if (moves.has_hops()) return std::make_unique<two_hops>(direct(hop::first, early), direct(hop::second, false));
  held_groups groups;
  groups.use(moves.cluster().backend(), moves.axes());
  const bool by_node = moves.gathers() && groups.have_levels() && moves.gathers_whole_shards();
  exchanged_blocks what = blocks_of_exchange(moves, std::move(room), by_node);
  if (by_node) return std::make_unique<gather_by_node>(std::move(what), std::move(groups), early);
  if (moves.gathers() && what.blocks.rounds() <= 1 && !early) return std::make_unique<gather_at_once>(std::move(what));
  return std::make_unique<exchange_in_rounds>(std::move(what), early);
}

/// Binds a step to the way in which it runs. `early`: other steps run between start() and finish(). No other step may use `room` in that
/// time.
inline std::unique_ptr<collective> make_collective(const step_moves& moves, shared_room room, bool early = false) {
  if (moves.row_counts()) return make_ragged_exchange(moves, std::move(room));
  if (moves.stays()) return std::make_unique<local_copy>(moves);
  if (shared_memory_collective::serves(moves)) return make_in_shared_memory(moves, std::move(room));
  if (moves.all_reduces()) return std::make_unique<all_reduce_step>(moves, std::move(room));
  if (moves.reduce_scatters()) return std::make_unique<reduce_scatter_step>(moves, std::move(room), early);
  return make_exchange(moves.spread_over_replicas(), std::move(room), early);
}

}}}  // namespace gshard::v0::detail
