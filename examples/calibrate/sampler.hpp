// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "statistics.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Measures functions that all ranks run at once, in interleaved rounds. Takes more rounds of samples that differ.
namespace calibrate {

class sampler {
 public:
  /// Measures `run`, which all ranks call together. A sample repeats it until it takes at least `least` seconds.
  std::size_t add(std::string name, std::function<void()> run, double least = 4e-3) {
    const double once = timed(run, 1);
    const int times = int(std::clamp(least / std::max(once, 1e-7), 1.0, 2000.0));
    points_.push_back({std::move(name), std::move(run), times, {}, 0});
    return points_.size() - 1;
  }
  /// Takes `rounds` samples of each point in turn. Points that spread by more than a tenth get up to twice as many further samples. A point
  /// with three samples and `longest` seconds gets no further one.
  void measure(int rounds, double longest = 0.5) {
    for (int round = 0; round < 3 * rounds; ++round)
      for (point& p : points_) {
        if (p.seconds.size() >= 3 && p.sampled >= longest) continue;
        if (round >= rounds && summarize(p.seconds).spread <= 0.1) continue;
        const double seconds = timed(p.run, p.times);
        p.sampled += seconds;
        p.seconds.push_back(seconds / p.times);
      }
  }
  summary of(std::size_t i) const { return summarize(points_[i].seconds); }
  const std::string& name(std::size_t i) const { return points_[i].name; }
  std::size_t size() const { return points_.size(); }

 private:
  struct point {
    std::string name;
    std::function<void()> run;
    int times = 1;
    std::vector<double> seconds;  // seconds per run in each sample; the same on all ranks
    double sampled = 0;           // the total seconds of all samples
  };
  std::vector<point> points_;

  /// The seconds of the slowest rank.
  static double timed(const std::function<void()>& run, int times) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) run();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
  }
};

}  // namespace calibrate
