// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Event simulation of messages on a torus, with max-min fair links and faults.

#include <gshard/exec/process/error.hpp>
#include <gshard/sim/network/message_list.hpp>
#include <gshard/sim/network/torus_links.hpp>
#include <gshard/sim/network/torus_mesh.hpp>
#include <gshard/sim/record/faults.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The arrival times of messages, and the loads of links.
struct event_run {
  double seconds = 0;        ///< until the last arrival
  std::vector<double> ends;  ///< arrival of each message
  std::vector<link_load> links;
};

namespace detail {

/// Messages as fluids on the links of a torus. Messages in flight share the links by max-min fairness: no rate can grow without reducing
/// one that is not faster. Rates change when a message starts or arrives, and only among messages that share links with it, directly or
/// through others.
class fluid_simulation {
 public:
  fluid_simulation(const torus_mesh& mesh, const message_list& messages, const faults& broken)
      : mesh_(mesh), messages_(messages), broken_(broken), links_(mesh.topology(), broken) {
    const std::size_t n = messages.size();
    flows_.resize(n);
    waiting_.resize(n);
    open_.resize(n);
    carried_.assign(std::size_t(links_.count()), 0.0);
    for (int l = 0; l < links_.count(); ++l) rates_.push_back(links_.rate(l));
    on_.resize(rates_.size());
    for (std::size_t i = 0; i < n; ++i) {
      open_[i] = messages.after(i).size();
      for (const int before : messages.after(i)) waiting_[std::size_t(before)].push_back(int(i));
    }
    for (std::size_t i = 0; i < n; ++i)
      if (open_[i] == 0) begin(int(i), 0);
  }

  /// Events less than `resolution` seconds apart are simultaneous.
  event_run run(std::string_view what, double resolution) {
    std::vector<int> changed;  // links
    for (;;) {
      double now = starts_.empty() ? never : starts_.top().first;
      for (const int f : active_) now = std::min(now, flows_[std::size_t(f)].end);
      if (now == never) break;
      changed.clear();
      for (std::size_t i = 0; i < active_.size();) {
        const int f = active_[i];
        if (flows_[std::size_t(f)].end > now + resolution) {
          ++i;
          continue;
        }
        active_[i] = active_.back();
        active_.pop_back();
        for (const int l : flows_[std::size_t(f)].way) {
          std::erase(on_[std::size_t(l)], f);
          changed.push_back(l);
        }
        arrive(f, flows_[std::size_t(f)].end);
      }
      while (!starts_.empty() && starts_.top().first <= now + resolution) {
        const auto [time, f] = starts_.top();
        starts_.pop();
        flow& x = flows_[std::size_t(f)];
        if (x.way.empty()) {
          arrive(f, time);
          continue;
        }
        x.left = messages_[std::size_t(f)].bytes;
        x.since = time;
        active_.push_back(f);
        for (const int l : x.way) {
          on_[std::size_t(l)].push_back(f);
          changed.push_back(l);
        }
      }
      share(changed, now);
    }
    finish_.ends.resize(messages_.size());
    check_all_arrived(what);
    for (std::size_t i = 0; i < messages_.size(); ++i) finish_.ends[i] = flows_[i].end;
    for (int l = 0; l < links_.count(); ++l)
      if (const double carried = carried_[std::size_t(l)]; links_.live(l))
        finish_.links.push_back({links_.from(l), links_.to(l), carried, carried / links_.rate(l)});
    return std::move(finish_);
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct flow {
    std::vector<int> way;  // links, and one of its own if its sender is slow
    double left = 0, rate = 0, since = 0, end = never;
    bool arrived = false;
  };

  const torus_mesh& mesh_;
  const message_list& messages_;
  const faults& broken_;
  torus_links links_;
  std::vector<double> rates_;          // bytes a second of links
  std::vector<std::vector<int>> on_;   // messages on a link
  std::vector<flow> flows_;            // by message
  std::vector<std::vector<int>> waiting_;
  std::vector<std::size_t> open_;      // by message: the number that it waits for
  std::vector<int> active_;
  std::vector<double> carried_;
  std::vector<char> link_seen_, flow_seen_;
  std::vector<int> part_links_, part_flows_, flows_left_;
  std::vector<double> rate_left_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> starts_;
  event_run finish_;

  /// Called when all dependencies of a message have arrived. The message flows after its latency.
  void begin(int f, double time) {
    const message& m = messages_[std::size_t(f)];
    if (broken_.dead(m.from)) return;
    const torus& t = mesh_.topology();
    const double start = std::max(time, broken_.delay(m.from)), slowness = broken_.slowness(m.from, std::uint64_t(f));
    const int from = mesh_.chip(m.from), to = mesh_.chip(m.to);
    double latency = m.seconds * slowness;
    flow& x = flows_[std::size_t(f)];
    if (from != to) {
      x.way = links_.way(from, to, m.up);
      latency += double(x.way.size()) * t.hop;
      for (const int l : x.way) carried_[std::size_t(l)] += m.bytes;
      if (m.bytes <= 0) x.way.clear();
      if (slowness > 1 && m.bytes > 0) {
        x.way.push_back(int(rates_.size()));
        rates_.push_back(t.link_bytes / slowness);
        on_.emplace_back();
      }
    } else {
      latency += m.bytes / t.core_bytes * slowness;
    }
    starts_.emplace(start + latency, f);
  }

  void arrive(int f, double time) {
    flow& x = flows_[std::size_t(f)];
    x.end = time;
    x.arrived = true;
    x.way.clear();
    finish_.seconds = std::max(finish_.seconds, time);
    for (const int next : waiting_[std::size_t(f)])
      if (--open_[std::size_t(next)] == 0) begin(next, time);
  }

  /// Computes the rates of messages that share links with the changed ones.
  void share(const std::vector<int>& changed, double now) {
    link_seen_.resize(rates_.size(), 0);
    flow_seen_.resize(flows_.size(), 0);
    rate_left_.resize(rates_.size());
    flows_left_.resize(rates_.size());
    part_links_.clear();
    part_flows_.clear();
    const auto reach = [&](int l) {
      if (link_seen_[std::size_t(l)]) return;
      link_seen_[std::size_t(l)] = 1;
      part_links_.push_back(l);
    };
    for (const int l : changed) reach(l);
    for (std::size_t i = 0; i < part_links_.size(); ++i)
      for (const int f : on_[std::size_t(part_links_[i])]) {
        if (flow_seen_[std::size_t(f)]) continue;
        flow_seen_[std::size_t(f)] = 1;
        part_flows_.push_back(f);
        for (const int l : flows_[std::size_t(f)].way) reach(l);
      }
    // Progressive filling. The link with the least rate per message gives its messages that rate. This leaves less of the other links on
    // their routes. The next link follows.
    std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> least;
    for (const int l : part_links_) {
      link_seen_[std::size_t(l)] = 0;
      rate_left_[std::size_t(l)] = rates_[std::size_t(l)];
      flows_left_[std::size_t(l)] = int(on_[std::size_t(l)].size());
      if (flows_left_[std::size_t(l)] > 0) least.emplace(share_of(l), l);
    }
    while (!least.empty()) {
      const auto [each, l] = least.top();
      least.pop();
      if (flows_left_[std::size_t(l)] == 0) continue;
      if (const double current = share_of(l); current > each * (1 + 1e-12)) {  // some of its messages are slower because of other links
        least.emplace(current, l);
        continue;
      }
      for (const int f : on_[std::size_t(l)]) {
        if (!flow_seen_[std::size_t(f)]) continue;
        flow_seen_[std::size_t(f)] = 0;
        flow& x = flows_[std::size_t(f)];
        for (const int k : x.way) {
          rate_left_[std::size_t(k)] = std::max(0.0, rate_left_[std::size_t(k)] - each);
          --flows_left_[std::size_t(k)];
        }
        if (x.rate == each) continue;
        x.left = std::max(0.0, x.left - x.rate * (now - x.since));
        x.rate = each;
        x.since = now;
        x.end = now + x.left / each;
      }
    }
  }
  double share_of(int l) const { return rate_left_[std::size_t(l)] / flows_left_[std::size_t(l)]; }

  void check_all_arrived(std::string_view what) const {
    std::vector<int> waiting, dead;
    bool stuck = false;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      if (flows_[i].arrived) continue;
      stuck = true;
      if (broken_.dead(messages_[i].from)) dead.push_back(messages_[i].from);
      if (!broken_.dead(messages_[i].to)) waiting.push_back(messages_[i].to);
    }
    const auto once = [](std::vector<int>& list) {
      std::ranges::sort(list);
      list.erase(std::ranges::unique(list).begin(), list.end());
    };
    once(waiting);
    once(dead);
    if (!waiting.empty() && !dead.empty()) fail_waiting(what, waiting, dead, broken_.timeout);
    if (stuck && dead.empty()) throw error(std::string(what) + ": messages wait for one another");
  }
};

}  // namespace detail

/// Simulates messages on the torus on which a mesh is placed. Each message starts when its dependencies have arrived, and takes the time of
/// a hop for each link on its route. It then flows at its max-min fair rate among all messages in flight. Between cores of a chip it takes
/// bytes / core_bytes. Launches are not counted. Devices may be late, slow or dead; links may be slow or dead.
///
/// Suited to up to some hundred devices: each start and each arrival costs work for all messages that share links. Events within
/// `resolution` seconds are one event, so regular traffic of 1024 devices takes less than a second.
/// Throws `gshard::error` with the devices that wait for dead ones, after the timeout of the faults. Also throws if a fault names a link
/// that does not exist, or if dead links cut off a device. @see message_list, all_gather_messages
inline event_run simulate(const torus_mesh& mesh, const message_list& messages, const faults& broken = {},
                          std::string_view what = "messages", double resolution = 1e-11) {
  broken.check(mesh.topology().devices());
  return detail::fluid_simulation(mesh, messages, broken).run(what, resolution);
}

}}  // namespace gshard::v0
