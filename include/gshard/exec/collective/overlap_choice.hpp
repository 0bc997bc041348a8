// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses by measurement whether the collectives of a program overlap with its computation.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace gshard { inline namespace v0 { namespace detail {

/// The choice of one executor. Runs alternate between both modes. The first run of each mode sets up connections and memory, and does not
/// count. The medians of the other runs decide. All processes measure the same runs, and one process decides for all.
class overlap_choice {
 public:
  static constexpr std::size_t samples = 5;  ///< per mode

  /// Without this call, all runs overlap.
  void measure() { measures_ = true; }
  bool measures() const { return measures_; }
  /// True if collectives overlap with computation in the current run, or in the next one after end().
  bool overlaps() const { return measures_ ? overlaps_in(runs_) : overlaps_; }

  /// The time of a measured run begins here. The last call before end() counts.
  void begin() {
    if (measures_) begin_ = clock::now();  // two reads take a quarter of the time of a run of one small step
  }
  /// Ends a measured run.
  void end() { end_after(std::chrono::duration<double>(clock::now() - begin_).count()); }
  void end_after(double seconds) {
    if (runs_ >= first) seconds_[overlaps_in(runs_) ? 1 : 0][(runs_ - first) / 2] = seconds;
    ++runs_;
  }

  /// True after the last measured run.
  bool is_ready() const { return measures_ && runs_ == first + 2 * samples; }
  /// True if runs with overlap were clearly faster on this process.
  bool pays() const { return median(seconds_[1]) < 0.98 * median(seconds_[0]); }
  void choose(bool overlaps) {
    measures_ = false;
    overlaps_ = overlaps;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t first = 2;
  bool measures_ = false, overlaps_ = true;
  std::size_t runs_ = 0;
  clock::time_point begin_{};
  std::array<std::array<double, samples>, 2> seconds_{};  // by mode

  /// Each pair of runs measures both modes. Every second pair has the opposite order, because the load of the machine changes slowly.
  static constexpr bool overlaps_in(std::size_t run) { return (run + run / 2) % 2 == 0; }
  static double median(std::array<double, samples> all) {
    std::ranges::sort(all);
    return all[samples / 2];
  }
};

}}}  // namespace gshard::v0::detail
