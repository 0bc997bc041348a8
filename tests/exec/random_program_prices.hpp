// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <gshard/all_operations.hpp>
#include <gshard/core/cost/step_time.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace random_program {

/// Compares the bytes that the simulated devices receive in each step of a run with the price of the step.
class audit {
 public:
  audit(const gs::plan_view& plan, const gs::extents& sizes, const gs::backend& on) : plan_(plan), sizes_(sizes), on_(on), last_(now()) {}

  /// Called after a step. All bytes since the previous step that communicated belong to this step.
  void after(const gs::node& step) {
    if (!gs::traits(step.kind).collective) return;
    std::vector<std::int64_t> bytes = now();
    for (std::size_t d = 0; d < bytes.size(); ++d) bytes[d] -= std::exchange(last_[d], bytes[d]);
    const std::int64_t received = *std::ranges::max_element(bytes), planned = plan_.bytes_received(step, sizes_);
    for (const gs::op_ref kind : gs::all_operations)
      if (gs::performs(step, kind)) planned_[std::size_t(kind->id)] += plan_.bytes_received(step, sizes_, kind);
    ragged_ = ragged_ || gs::traits(step.kind).ragged;
    ++steps;
    if (received == planned || (gs::traits(step.kind).ragged && received <= planned) || !failure.empty()) return;
    failure = gs::describe(plan_, step) + ": a device receives " + std::to_string(received) + " bytes, and the price is " +
              std::to_string(planned);
  }
  /// Compares the kinds of all steps that ran.
  void end(const gs::executor& run) {
    for (const gs::op_ref kind : gs::all_operations) {
      const std::int64_t received = run.received(kind).bytes, planned = planned_[std::size_t(kind->id)];
      if (received != planned && !(ragged_ && received <= planned) && failure.empty())
        failure = std::string(kind->name) + ": " + std::to_string(received) + " bytes, and the price is " + std::to_string(planned);
    }
  }

  std::string failure;    // the first one
  std::size_t steps = 0;  // steps that communicated

 private:
  gs::plan_view plan_;
  const gs::extents& sizes_;
  const gs::backend& on_;
  std::vector<std::int64_t> last_;  // received until the previous step, by device
  std::array<std::int64_t, gs::most_operations> planned_{};
  bool ragged_ = false;

  /// Bytes received so far, by device.
  std::vector<std::int64_t> now() const {
    std::vector<std::int64_t> bytes;
    for (const gs::traffic& t : on_.received()) bytes.push_back(t.exchange_bytes + t.gather_bytes);
    return bytes;
  }
};

/// Simulated devices whose collectives do not overlap: bytes arrive during the step that receives them.
struct devices_in_turn : gs::simulated {
  using simulated::simulated;
  bool overlaps() const override { return false; }
};

/// The difference between the prices of a program's plan and the bytes of a run, or nothing. `steps`: counts the steps that communicated.
inline std::string failure_of_prices(const recipe& r, std::size_t& steps) {
  const on_mesh::prepared p = on_mesh::prepare(r.on, inputs_of(r), model_of(r));
  try {
    const gs::plan_tables tables = run_graph::plan(p.program, p.setting);
    const gs::plan_view plan = tables.view();
    const gs::any_cluster on(run_graph::mesh_of_rank(r.on.mesh.size()),
                             std::make_shared<devices_in_turn>(r.on.mesh, run_graph::some_nodes(p.setting)));
    gs::executor e(plan, gs::all_kernels, on, r.on.dims, gs::parameter_store(on));
    for (std::size_t i = 0; i < tables.inputs.size(); ++i) run_graph::scatter(on, e.input(i), p.sources[i]);
    audit prices(plan, e.sizes(), on.backend());
    e.hook = [&](const gs::node& step, bool begins) {
      if (!begins) prices.after(step);
    };
    e.run(p.setting.context);
    prices.end(e);
    steps += prices.steps;
    if (!prices.failure.empty()) return prices.failure;
    const gs::step_price price = gs::price(plan, e.sizes(), gs::machine{});
    const double flops = gs::flops(plan, e.sizes());
    if (!(flops >= 0 && std::isfinite(flops)) || !(price.seconds() >= 0 && std::isfinite(price.seconds())) || price.bytes() < 0 ||
        gs::bytes_touched(plan, e.sizes()) < 0)
      return "a price is negative or not finite";
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace random_program
