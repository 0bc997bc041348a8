// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The bound form of a plan's step on one device: a function that runs it at once or piece by piece.

#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The work of one step on one device. A step with `piece` can compute only the elements [begin, end) of its result. For an elementwise
/// step this is any range, for a batched einsum a range of its batch.
struct action {
  std::function<void(const run_context&)> whole;
  std::function<void(const run_context&, std::int64_t begin, std::int64_t end)> piece;
  std::int64_t elements = 0;  // of the result, if there is a `piece`

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

  explicit operator bool() const { return whole != nullptr || piece != nullptr; }
  void operator()(const run_context& run) const {
    if (whole) whole(run);
    else kernel::parallel_rows(elements, 1, [&](std::int64_t begin, std::int64_t end) { piece(run, begin, end); });
  }
};

/// Fuses several actions: computes the first piece of all results, then the second, and so on. Each action then reads its operand from
/// the cache. `pieces`: the number of pieces. If it is 0, all actions are elementwise with equally many elements, in pieces of 4096.
inline action together(std::vector<action> all, std::int64_t pieces) {
  return [all = std::move(all), pieces](const run_context& run) {
    if (pieces == 0) {
      constexpr std::int64_t most = 4096;
      return kernel::parallel_rows(all.front().elements, 1, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; begin += most)
          for (const action& a : all) a.piece(run, begin, std::min(begin + most, end));
      });
    }
    const auto make = [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin)
        for (const action& a : all) a.piece(run, a.elements / pieces * begin, a.elements / pieces * (begin + 1));
    };
    const std::int64_t even = pieces - pieces % kernel::threads();
    kernel::parallel_for(even, 1, make);
    make(even, pieces);  // the remaining pieces one at a time, each by all threads
  };
}

}}}  // namespace gshard::v0::detail
