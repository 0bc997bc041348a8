// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The record of a simulated run: steps, device tracks, memory and link loads, in simulated seconds.

#include <gshard/core/base/compiler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The parts of a training step, as in arXiv 2006.16668 figure 8. @see parts_of
enum class step_part : std::uint8_t {
  attention,
  feed_forward,
  moe_feed_forward,
  gate_einsum,  // one-hot dispatch and combine einsums, and the einsum that gives the gates
  gate_other,
  dispatch_combine,  // moves between groups and experts
  all_reduce,        // sums of gradients
  optimizer,
  other,
  count_
};

/// The bottleneck of a step.
enum class limit : std::uint8_t { nothing, arithmetic, memory, network, start };

/// One step of the plan on a device: its work, and the time of each kind of work alone.
struct step_record {
  std::int32_t step = 0;
  step_part part = step_part::other;
  double flops = 0;
  std::int64_t bytes_touched = 0, bytes_received = 0;
  double bytes_between_nodes = 0;  // that a node receives from others, if the devices are on nodes
  double arithmetic = 0, memory = 0, network = 0;  // seconds, each alone
  double seconds = 0;
  double measured = 0;  // seconds of it in a real run on this process; for asynchronous collectives, of the wait
  limit bound = limit::nothing;
  bool recomputed = false;  // runs again for the gradient
};

enum class activity : std::uint8_t { compute, collective, wait };

struct time_span {
  std::int32_t row = 0;  // of run_record::steps: a step that runs again has two rows
  activity what = activity::compute;
  double begin = 0, end = 0;
};

struct memory_sample {
  double time = 0;
  std::int64_t bytes = 0;
};

/// Devices with the same events at the same times.
struct device_track {
  std::vector<int> devices;
  std::vector<time_span> spans;         // sorted by begin
  std::vector<memory_sample> memory;    // bytes that are alive after each change
  double compute = 0, communicate = 0, wait = 0;  // total seconds
};

enum class memory_kind : std::uint8_t {
  replicated_weight,
  sharded_weight,
  gradient,
  optimizer_state,
  input,
  activation,
  scratch,  // of collectives
  count_
};

struct live_tensor {
  std::int32_t value = 0;
  memory_kind kind = memory_kind::activation;
  std::int64_t bytes = 0;
};

/// Memory of the device that holds most, at its peak.
struct memory_record {
  std::array<std::int64_t, std::size_t(memory_kind::count_)> bytes{};  // by kind
  std::int64_t peak = 0;
  std::int64_t padding = 0;   // part of the peak: the padding of uneven shards
  std::int64_t limit = 0;  // 0: none
  std::int32_t step = 0;      // of the plan, at the peak
  std::vector<live_tensor> largest;  // at the peak, the largest first
};

/// Bytes over one link of the network, in one direction.
struct link_load {
  int from = 0, to = 0;  // chips, row-major
  double bytes = 0;
  double seconds = 0;  // in which the link is busy
};

struct run_record {
  std::string program, network, source;  // the program, its hardware, and the source of the numbers
  std::vector<std::string> axes;         // of the mesh of devices
  std::vector<int> extents;
  std::vector<int> chips;  // along the dimensions of the network; empty: it has no links to draw
  int cores_per_chip = 1;
  std::vector<int> chip_of;  // of each device; empty: devices fill one chip after the other
  double seconds = 0;
  double measured_seconds = 0;  // from the first step to the last one of a real run, on this process
  std::vector<step_record> steps;
  std::vector<device_track> tracks;
  memory_record memory;
  std::vector<link_load> links;
  std::vector<std::int64_t> received;  // bytes, by device of this process, counted by the backend of a real run
  std::vector<std::int64_t> between_nodes;  // likewise, bytes received from devices on other nodes
  std::array<double, std::size_t(step_part::count_)> parts{};  // seconds of the first track
  std::vector<std::string> assumptions;                        // one sentence each
};

constexpr std::string_view name(step_part p) {
  constexpr std::array<std::string_view, std::size_t(step_part::count_)> names{
      "attention", "feed-forward", "MoE feed-forward", "gate einsum", "gate other", "dispatch/combine", "all-reduce", "optimizer", "other"};
  return names[std::size_t(p)];
}
constexpr std::string_view name(limit l) {
  constexpr std::array<std::string_view, 5> names{"nothing", "arithmetic", "memory", "network", "start"};
  return names[std::size_t(l)];
}
constexpr std::string_view name(activity a) {
  constexpr std::array<std::string_view, 3> names{"compute", "collective", "wait"};
  return names[std::size_t(a)];
}
constexpr std::string_view name(memory_kind k) {
  constexpr std::array<std::string_view, std::size_t(memory_kind::count_)> names{
      "replicated weights", "sharded weights", "gradients", "optimizer state", "inputs", "activations", "scratch of collectives"};
  return names[std::size_t(k)];
}

}}  // namespace gshard::v0
