// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Deadlines of waits for other processes: the times until a process reports, and until it gives up.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>

namespace gshard { inline namespace v0 {

/// Deadlines of waits for other processes, in seconds. The same on all processes.
struct wait_deadlines {
  double warn = 60;   ///< Until one of the waiting processes reports where every process is. 0: never.
  double fail = 600;  ///< Until it reports again, and every process that waits so long ends with `restart_status`. 0: never.

  /// The exit status of processes that give up, EX_TEMPFAIL of sysexits.h: the run can be started again.
  static constexpr int restart_status = 75;

  bool operator==(const wait_deadlines&) const = default;
};

namespace detail {
/// The milliseconds between two checks of a wait: an eighth of the shorter deadline, from 5 to 250.
constexpr int watch_pause(const wait_deadlines& deadlines) {
  const double shorter = std::min(deadlines.warn > 0 ? deadlines.warn : 1, deadlines.fail > 0 ? deadlines.fail : 1);
  return int(std::clamp(shorter * 1000 / 8, 5.0, 250.0));
}
/// False for a negative number and NaN. Infinity is a deadline that is never reached.
constexpr bool are_valid(const wait_deadlines& deadlines) { return deadlines.warn >= 0 && deadlines.fail >= 0; }
}  // namespace detail

}}  // namespace gshard::v0
