// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/shards.hpp>
#include <gshard/kernel/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Told when elements [begin, end) of a result are final.
using piece_done = std::function<void(std::int64_t begin, std::int64_t end)>;

/// What a step does on a device when it runs: `whole`, or, of elementwise steps, `piece` by piece. One whose result is done piece by piece
/// has `by_pieces` as well, which says when.
struct action {
  std::function<void(const run_context&)> whole;
  std::function<void(const run_context&, std::int64_t begin, std::int64_t end)> piece;
  std::function<void(const run_context&, const piece_done&)> by_pieces;
  std::int64_t elements = 0;  // of the result of a step that has pieces

  action() = default;
  template <class F>
    requires std::is_invocable_v<F&, const run_context&>
  action(F f) : whole(std::move(f)) {}

  /// f(context, begin, end) for an elementwise step.
  template <class F>
  static action elementwise(std::int64_t elements, F f) {
    action a;
    a.elements = elements;
    a.piece = std::move(f);
    return a;
  }
  /// f(context, done).
  template <class F>
  static action producing(F f) {
    action a([f](const run_context& run) { f(run, [](std::int64_t, std::int64_t) {}); });
    a.by_pieces = std::move(f);
    return a;
  }

  explicit operator bool() const { return whole != nullptr || piece != nullptr; }
  void operator()(const run_context& run) const {
    if (piece) kernel::parallel_rows(elements, 1, [&](std::int64_t begin, std::int64_t end) { piece(run, begin, end); });
    else whole(run);
  }
};

/// The first action, and after each piece of its result the others, elementwise ones, on that piece: one pass over memory, as what a step
/// writes is still in the cache when the next one reads it.
inline action together(action first, std::vector<action> others) {
  if (others.empty()) return first;
  return [first = std::move(first), others = std::move(others)](const run_context& run) {
    constexpr std::int64_t most = 4096;
    const auto go_through = [&](std::int64_t from, std::int64_t after) {
      kernel::parallel_rows(after - from, 1, [&, from](std::int64_t begin, std::int64_t end) {
        for (begin += from, end += from; begin < end; begin += most) {
          const std::int64_t to = std::min(begin + most, end);
          if (first.piece) first.piece(run, begin, to);
          for (const action& a : others) a.piece(run, begin, to);
        }
      });
    };
    if (first.piece) go_through(0, first.elements);
    else first.by_pieces(run, std::ref(go_through));
  };
}

}}}  // namespace gshard::v0::detail
