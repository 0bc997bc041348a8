// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/survive/monitor/run_history.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

/// A made-up run. It dies after 4/10 of its steps, and restarts from the last checkpoint. The last process is slow for a while.
inline gshard::run_history sample_history(std::size_t processes, std::uint32_t steps, std::size_t experts) {
  gshard::run_history h;
  h.names = {"all_to_all", "all_reduce", "loss", "rate", "expert load"};
  const double start = 1764000000;
  const std::uint32_t died = steps * 2 / 5, again = died - died / 10;
  h.processes = processes;
  h.repeated = died - again;
  h.summary = gshard::detail::run_summary(0, steps - 1, processes);
  for (std::size_t p = 0; p < processes; ++p) {
    double time = start;
    const auto life = [&](std::uint32_t from, std::uint32_t to) {
      h.starts.push_back({time, int(p), int(processes), "node" + std::to_string(p / 2 + 1), "0.1.0", {{"data", int(processes)}}});
      gshard::start_history& life_of = h.starts.back();
      for (std::uint32_t n = from; n < to; ++n) {
        const double along = double(n) / steps, slow = along > .6 && along < .7 ? 1.8 : 1, noise = double(n * 7919 % 101) / 1000;
        gshard::step_history s;
        s.step = n;
        s.seconds = .3 * slow + .1 + noise;
        s.waiting = s.seconds - .3 * (p + 1 == processes ? slow : 1);
        s.time = time += s.seconds;
        s.predicted = .35;
        s.resident = 6e8 + 4e7 * double(p);
        s.arena = 3e8;
        s.received = {{0, 8 << 20}, {1, 3 << 20}};
        if (p == 0) s.values = {{2, 1.5 + 6 * std::exp(-4 * along) + noise}, {3, 1e-5 + 1e-2 * along}};
        if (p == 0 && n == steps / 4) s.values[0].second = std::numeric_limits<double>::quiet_NaN();
        if (p == 0 && n % 10 == 0) {
          auto& load = s.lists.emplace_back(4, std::vector<float>()).second;
          for (std::size_t e = 0; e < experts; ++e) load.push_back(float(100 + 90 * std::sin(double(e) * 2 + along * 3) * (1 - along)));
        }
        if (life_of.steps++ == 0) life_of.first = n;
        life_of.last = n;
        life_of.ended = s.time;
        if (to == steps || n < again) h.summary.add(p, s);  // otherwise the step is done again
      }
      time += 30;
    };
    life(0, died);
    life(again, steps);
  }
  const auto event = [&](double time, std::string what, nlohmann::ordered_json fields) {
    h.events.push_back({time, 0, std::move(what), std::move(fields), 0});
  };
  event(start, "start", {{"processes", processes}});
  for (std::uint32_t n = again; n < steps; n += std::max(1u, died / 10)) event(start + n, "checkpoint", {{"step", n}});
  event(start + steps, "straggler", {{"process", processes - 1}, {"step", steps * 2 / 3}});
  event(start + 2 * steps, "stop", {{"step", steps - 1}});
  h.logs = {"events-00000.jsonl: 9 records, unaltered; no seal was given, so that records may be missing at the end"};
  return h;
}
