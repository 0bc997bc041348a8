// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Scratch memory that communication steps share.

#include <gshard/core/reshard/cost.hpp>
#include <gshard/exec/process/function_ref.hpp>
#include <gshard/exec/reduce/reduce.hpp>
#include <gshard/exec/reduce/rounds.hpp>
#include <gshard/exec/tensor/buffer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Scratch state for communication steps that are never in flight together: a round sequence, reductions and packing buffers.
struct collective_room {
  round_sequence rounds;
  hierarchical_reduce_scatter scatter;
  hierarchical_all_gather gather;
  reducer sums{small_sum_bytes};
  std::vector<buffer> packed;  // per held device
  std::uint32_t channel = 0;   // of its exchanges
  /// Called while a step waits. Returns false if no collective is in flight. Empty: messages advance without calls.
  std::function<bool()> advance_others;

  void demand(std::size_t device, std::int64_t bytes) {
    if (packed.size() <= device) packed.resize(device + 1);
    if (packed[device].size() < bytes) packed[device] = buffer(bytes);
  }
  /// Members often wait for another collective: advances all of them, until advance() returns true or none is in flight. After some time
  /// it returns, and the watched wait of the backend follows.
  void advance_with_others(function_ref<bool()> advance) const {
    using clock = std::chrono::steady_clock;
    if (!advance_others) return;
    constexpr auto most = std::chrono::milliseconds(500);
    for (const clock::time_point end = clock::now() + most; !advance() && clock::now() < end;)
      if (!advance_others()) return;
  }
};

}}}  // namespace gshard::v0::detail
