// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace translate {

/// The length of a training in steps, or in seconds if steps is 0.
struct training_length {
  double seconds = 0;
  std::int64_t steps = 0;

  /// The share that is done, from 0 to 1, after `step` steps in `elapsed` seconds.
  double share(std::int64_t step, double elapsed) const {
    return std::min(1.0, steps > 0 ? double(step) / double(steps) : elapsed / seconds);
  }
  /// The remaining seconds. If the length is in steps, the rate so far is extrapolated.
  double seconds_left(std::int64_t step, double elapsed) const {
    if (steps > 0) return step > 0 ? std::max(0.0, elapsed / double(step) * double(steps - step)) : 0;
    return std::max(0.0, seconds - elapsed);
  }
};

/// Shows the progress of the training: a bar that is redrawn on a terminal, or a line every few seconds in a log.
class progress {
 public:
  progress(training_length length, bool bar) : on_terminal_(bar), length_(length), start_(clock::now()), shown_(start_) {}

  /// Seconds of training, including those before a restart.
  double elapsed() const { return before_ + std::chrono::duration<double>(clock::now() - start_).count(); }
  void continue_at(double seconds) {
    before_ = seconds;
    start_ = clock::now();
  }

  void show(std::uint32_t step, const step_report& r, bool last) {
    tokens_ += r.tokens;
    const double since = std::chrono::duration<double>(clock::now() - shown_).count();
    if (!last && since < (on_terminal_ ? 0.5 : 10)) return;
    const double share = length_.share(step, elapsed());
    const int left = int(length_.seconds_left(step, elapsed()));
    std::string bar;
    if (on_terminal_) {
      bar = "\r[";
      for (int i = 0; i < 20; ++i) bar += i < int(share * 20) ? '#' : '.';
      bar += "] ";
    }
    std::printf("%sstep %5u  loss %6.3f  balance %.4f  %6.0f tokens/s  busiest expert %.2fx  refused %4.1f%%  %d:%02d left%s",
                bar.c_str(), step, r.loss, r.balance_loss, tokens_ / since, r.imbalance(), 100 * r.refused_share(), left / 60, left % 60,
                on_terminal_ && !last ? "" : "\n");
    std::fflush(stdout);
    shown_ = clock::now();
    tokens_ = 0;
  }

 private:
  using clock = std::chrono::steady_clock;
  bool on_terminal_;
  training_length length_;
  clock::time_point start_, shown_;
  double before_ = 0;  // seconds of earlier processes
  double tokens_ = 0;  // target tokens since the last line
};

}  // namespace translate
