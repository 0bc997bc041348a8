// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses how the collective of a step runs, among the kinds that a program needs.

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

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// Moves by messages, directly between all members or in two hops.
inline std::unique_ptr<collective> make_by_messages(const step_moves& moves, std::shared_ptr<collective_room> room, bool early) {
  const auto direct = [&](const step_moves& part, bool is_early) {
    return std::make_unique<exchange_in_rounds>(blocks_of_exchange(part, room, false), is_early);
  };
  if (!moves.has_hops()) return direct(moves, early);
  return std::make_unique<two_hops>(direct(moves.as_exchange(hop::first), early), direct(moves.as_exchange(hop::second), false));
}

// The collectives of each kind of moves. `early`: other steps run between start() and finish(), so it goes by messages. No other step may
// use `room` in that time.

inline std::unique_ptr<collective> make_exchange(const step_moves& moves, std::shared_ptr<collective_room> room, bool early) {
  if (!early && shared_memory_collective::serves(moves)) return std::make_unique<shared_memory_exchange>(moves);
  return make_by_messages(moves.spread_over_replicas(), std::move(room), early);
}
inline std::unique_ptr<collective> make_gather(const step_moves& given, std::shared_ptr<collective_room> room, bool early) {
  if (!early && shared_memory_collective::serves(given)) return std::make_unique<shared_memory_exchange>(given);
  const step_moves moves = given.spread_over_replicas();
  if (!moves.gathers() || moves.has_hops()) return make_by_messages(moves, std::move(room), early);
  held_groups groups;
  groups.use(moves.cluster().backend(), moves.axes());
  const bool by_node = groups.have_levels() && moves.gathers_whole_shards();
  exchanged_blocks what = blocks_of_exchange(moves, std::move(room), by_node);
  if (by_node) return std::make_unique<gather_by_node>(std::move(what), std::move(groups), early);
  if (what.blocks.rounds() <= 1 && !early) return std::make_unique<gather_at_once>(std::move(what));
  return std::make_unique<exchange_in_rounds>(std::move(what), early);
}
inline std::unique_ptr<collective> make_all_reduce(const step_moves& moves, std::shared_ptr<collective_room> room, bool early) {
  if (!early && shared_memory_collective::serves(moves)) return std::make_unique<shared_memory_all_reduce>(moves);
  return std::make_unique<all_reduce_step>(moves, std::move(room));
}
inline std::unique_ptr<collective> make_reduce_scatter(const step_moves& moves, std::shared_ptr<collective_room> room, bool early) {
  if (!early && shared_memory_collective::serves(moves)) return std::make_unique<shared_memory_reduce_scatter>(moves, std::move(room));
  return std::make_unique<reduce_scatter_step>(moves, std::move(room), early);
}
inline std::unique_ptr<collective> make_ragged_exchange(const step_moves& moves, std::shared_ptr<collective_room> room, bool) {
  if (moves.stays()) return std::make_unique<ragged_copy>(moves);
  return std::make_unique<ragged_exchange>(moves, std::move(room));
}

/// One of the functions above for each kind of moves, or null: no step of the program is of that kind, and its classes are not compiled.
struct collective_table {
  std::array<std::unique_ptr<collective> (*)(const step_moves&, std::shared_ptr<collective_room>, bool), move_kinds> make{};
};
/// The table for the kinds of moves in a bit mask.
template <std::uint32_t Kinds>
inline constexpr collective_table collectives_for = [] {
  collective_table t;
  const auto has = [](move_kind kind) { return ((Kinds >> unsigned(kind)) & 1u) != 0; };
  if constexpr (has(move_kind::exchange)) t.make[std::size_t(move_kind::exchange)] = &make_exchange;
  if constexpr (has(move_kind::gather)) t.make[std::size_t(move_kind::gather)] = &make_gather;
  if constexpr (has(move_kind::all_reduce)) t.make[std::size_t(move_kind::all_reduce)] = &make_all_reduce;
  if constexpr (has(move_kind::reduce_scatter)) t.make[std::size_t(move_kind::reduce_scatter)] = &make_reduce_scatter;
  if constexpr (has(move_kind::ragged)) t.make[std::size_t(move_kind::ragged)] = &make_ragged_exchange;
  return t;
}();
inline constexpr std::uint32_t all_move_kinds = (1u << move_kinds) - 1;

/// Binds a step to the way in which it runs. Throws if the table has none.
inline std::unique_ptr<collective> make_collective(const collective_table& kinds, const step_moves& moves,
                                                   std::shared_ptr<collective_room> room, bool early = false) {
  if (moves.stays() && !moves.row_counts()) return std::make_unique<local_copy>(moves);
  if (const auto make = kinds.make[std::size_t(moves.kind())]) return make(moves, std::move(room), early);
  throw error("executor: no collective of this program runs a step of kind " + std::string(name(moves.operation())));
}

}}}  // namespace gshard::v0::detail
