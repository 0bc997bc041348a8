// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

// Every side of a comparison runs once in every round, so that disturbances of the machine affect all of them.
namespace bench {

struct side {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
};

/// Runs all sides in turn for `rounds` rounds, after one that is not counted. Calls `before` before each run. Prints a line of JSON for
/// each side if `prints`. Returns the sides with their seconds.
inline std::vector<side> compare(const std::string& what, std::vector<side> sides, int rounds, bool prints = true,
                                 const std::function<void()>& before = [] {}) {
  for (int round = -1; round < rounds; ++round)
    for (side& s : sides) {
      before();
      const auto start = std::chrono::steady_clock::now();
      s.run();
      const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (round >= 0) s.seconds.push_back(t);
    }
  if (!prints) return sides;
  for (const side& s : sides) {
    std::printf("{\"case\": \"%s\", \"side\": \"%s\", \"seconds\": [", what.c_str(), s.name.c_str());
    for (std::size_t i = 0; i < s.seconds.size(); ++i) std::printf("%s%.6g", i ? ", " : "", s.seconds[i]);
    std::printf("]}\n");
  }
  std::fflush(stdout);
  return sides;
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace bench
