// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/run/recompute.hpp>
#include <gshard/sim/run/sweep_row.hpp>
#include <gshard/train/adam.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A training step of a mixture of experts, and a made-up record of its simulated run. The numbers of steps are from the planner's prices.
namespace sample {

namespace gs = gshard;

inline constexpr auto train = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m.scope("moe"), x, mask, {});
  auto error = r.y - 3.0 * x;
  gs::adam{}.minimize(m, m.objective(gs::mean(error * error), 0.1), rate);
};
using cut = gs::P<gs::axes<"data", "expert">, gs::none>;
using program = gs::program<train, gs::mesh<gs::axis<"data">, gs::axis<"expert">>,
                            gs::in<"GSM", gs::P<gs::axes<"data", "expert">, gs::none, gs::none>>, gs::in<"GS", cut>, gs::in<"">>;
inline constexpr gs::plan_view plan = program::plan;

struct run {
  gs::run_record record;
  gs::extents sizes;
};

inline gs::step_part part_of(const gs::node& step) {
  switch (step.kind->id) {
    case gs::op::all_to_all.id: return gs::step_part::dispatch_combine;
    case gs::op::all_reduce.id:
    case gs::op::reduce_scatter.id: return gs::step_part::all_reduce;
    case gs::op::dispatch.id:
    case gs::op::combine.id: return gs::step_part::gate_einsum;
    case gs::op::einsum.id: return gs::step_part::moe_feed_forward;
    case gs::op::adam.id: return gs::step_part::optimizer;
    case gs::op::softmax.id:
    case gs::op::top_k_gating.id: return gs::step_part::gate_other;
    default: return gs::step_part::other;
  }
}

/// Every link of a torus, some with higher loads than others.
inline std::vector<gs::link_load> links_of(const std::vector<int>& chips) {
  std::vector<gs::link_load> links;
  int stride = 1, all = 1;
  for (const int n : chips) all *= n;
  for (std::size_t d = chips.size(); d-- > 0; stride *= chips[d])
    for (int chip = 0; chip < all; ++chip) {
      const int n = chips[d], at = chip / stride % n;
      if (n < 2) continue;
      for (const int way : {1, n - 1}) {
        const int to = chip + ((at + way) % n - at) * stride;
        const double bytes = 1e6 * (1 + (chip * 7 + int(d) * 3 + way) % 11) * (d == 0 ? 1.5 : 1);
        links.push_back({chip, to, bytes, bytes / 70e9});
      }
    }
  return links;
}

/// data x expert devices, two per chip.
inline run make(int data, int expert, std::vector<int> chips) {
  const gs::machine machine{61.5e12, 450e9, 35e9, 5e-6};
  run r;
  r.sizes = plan.bind({{'G', 2 * data * expert}, {'S', 1024}, {'M', 1024}, {'E', expert}, {'F', 8192}}, std::array{data, expert});
  gs::run_record& run = r.record;
  run.program = "a mixture of experts";
  run.network = "TPU v3, torus of " + std::to_string(chips[0]) + (chips.size() > 1 ? "x" + std::to_string(chips[1]) : "") + " chips";
  run.source = "made up for a test";
  run.axes = {"data", "expert"};
  run.extents = {data, expert};
  run.chips = chips;
  run.received = {12, 34};
  run.cores_per_chip = 2;
  run.links = links_of(chips);
  run.assumptions = {"A link carries 70 GB/s each way (ISCA 2023, table 4; others say 82 or 100).",
                     "Collectives and compute do not overlap."};

  gs::device_track steady, slow;
  const int devices = data * expert;
  for (int d = 0; d < devices; ++d) (d == devices - 1 ? slow : steady).devices.push_back(d);
  double now = 0;
  std::int64_t resident = 0, alive = 0;
  for (const gs::parameter& p : plan.parameters) resident += gs::detail::shard_bytes(plan, p.value, r.sizes);
  std::vector<gs::scheduled_step> order;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    order.push_back({std::int32_t(i)});
    if (i % 5 == 3 && !gs::traits(plan.steps[i].kind).collective) order.push_back({std::int32_t(i), true});
  }
  for (const auto& [i, recomputed] : order) {
    const gs::node& step = plan.steps[std::size_t(i)];
    const auto row = std::int32_t(run.steps.size());
    gs::step_record s;
    s.step = i;
    s.part = part_of(step);
    s.flops = gs::flops(plan, step, r.sizes);
    s.bytes_received = plan.bytes_received(step, r.sizes);
    if (!gs::traits(step.kind).collective) s.bytes_touched = gs::bytes_touched(plan, step, r.sizes);
    s.arithmetic = s.flops / machine.flops;
    s.memory = double(s.bytes_touched) / machine.memory_bytes;
    s.network = double(s.bytes_received) / machine.link_bytes;
    s.seconds = std::max({s.arithmetic, s.memory, s.network}) + (gs::traits(step.kind).collective ? machine.start : 0);
    s.bound = s.seconds == 0              ? gs::limit::nothing
              : s.network > machine.start ? gs::limit::network
              : s.bytes_received > 0      ? gs::limit::start
              : s.arithmetic > s.memory   ? gs::limit::arithmetic
                                          : gs::limit::memory;
    s.recomputed = recomputed;
    run.parts[std::size_t(s.part)] += s.seconds;
    const bool moves = gs::traits(step.kind).collective;
    const gs::activity what = moves ? gs::activity::collective : gs::activity::compute;
    if (s.seconds > 0) {
      const double slower = moves ? 0 : 0.1 * s.seconds;
      slow.spans.push_back({row, what, now, now + s.seconds + slower});
      steady.spans.push_back({row, what, now, now + s.seconds});
      if (slower > 0) steady.spans.push_back({row, gs::activity::wait, now + s.seconds, now + s.seconds + slower});
      (moves ? steady.communicate : steady.compute) += s.seconds;
      (moves ? slow.communicate : slow.compute) += s.seconds + slower;
      steady.wait += slower;
      now += s.seconds + slower;
    }
    alive = 0;
    for (std::size_t v = 0; v < plan.values.size(); ++v)
      if (const gs::lifetime& l = plan.lifetimes[v]; l.root == int(v) && !l.persistent && l.first <= int(i) && l.last > int(i))
        alive += gs::detail::shard_bytes(plan, std::int32_t(v), r.sizes);
    for (gs::device_track* t : {&steady, &slow}) t->memory.push_back({now, resident + alive});
    if (resident + alive > run.memory.peak) {
      run.memory.peak = resident + alive;
      run.memory.step = s.step;
    }
    run.steps.push_back(s);
  }
  run.seconds = now;
  run.tracks = {steady, slow};

  gs::memory_record& m = run.memory;
  m.limit = std::int64_t(16) << 30;
  m.padding = 12'345;
  const auto hold = [&](std::int32_t v, gs::memory_kind kind) {
    const std::int64_t bytes = gs::detail::shard_bytes(plan, v, r.sizes);
    m.bytes[std::size_t(kind)] += bytes;
    m.largest.push_back({v, kind, bytes});
  };
  for (const gs::parameter& p : plan.parameters)
    hold(p.value, !p.trainable ? gs::memory_kind::optimizer_state
                  : plan.at(p.value).layout.used() ? gs::memory_kind::sharded_weight
                                                   : gs::memory_kind::replicated_weight);
  for (std::size_t v = 0; v < plan.values.size(); ++v)
    if (const gs::lifetime& l = plan.lifetimes[v]; l.root == int(v) && !l.persistent && l.first <= m.step && l.last > m.step)
      hold(std::int32_t(v), l.first < 0 ? gs::memory_kind::input : gs::memory_kind::activation);
  std::stable_sort(m.largest.begin(), m.largest.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  m.largest.resize(std::min<std::size_t>(m.largest.size(), 10));
  return r;
}

inline const run& small() {
  static const run r = make(2, 8, {4, 2});
  return r;
}

inline std::vector<gs::sweep_row> sweep() {
  return {{"data=2 expert=8", "G over data and expert, E over expert", 0.0123, std::int64_t(9) << 30, std::int64_t(16) << 30, true, 4.5},
          {"data=4 expert=4", "the same", 0.0141, std::int64_t(12) << 30, std::int64_t(16) << 30, true, 5.25},
          {"data=16 expert=1", "G over data", 0, std::int64_t(40) << 30, std::int64_t(16) << 30, false, 0}};
}

}  // namespace sample
