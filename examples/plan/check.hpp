// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <gshard/all_kernels.hpp>
#include <gshard/all_operations.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/testing/run_program.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

// Runs a plan on simulated devices and on one device, with the same inputs.
namespace planning {

namespace detail {

/// The limits of a simulation: bytes of all shards together, operations, and devices.
inline constexpr double most_bytes = 4e9, most_flops = 2e11, most_devices = 512;

inline void check_affordable(const planned& p) {
  const plan_facts f = facts_of(p);
  const double devices = gs::device_count(extents_of(p.tables.mesh));
  if (devices > most_devices) throw refusal("--check simulates at most 512 devices: check a smaller mesh");
  double bytes = 0;
  for (const gs::value& v : p.tables.values)
    bytes += devices * double(gs::shard_elements(v, p.tables.windows, p.sizes) * gs::size_of(v.type));
  if (bytes > most_bytes || devices * double(f.flops) > most_flops)
    throw refusal("--check computes every shard in this process, and these are too many or too large: check smaller extents");
}

using whole_tensors = gs::testing::arrays;

struct outcome {
  whole_tensors results;
  std::int64_t received = 0;  // bytes, for the device that receives most in each step
};

/// Runs a plan once.
inline outcome run(const planned& p, const whole_tensors& inputs) {
  const std::span<const int> extents = extents_of(p.tables.mesh);
  const gs::any_cluster on(p.tables.mesh, std::make_shared<gs::simulated>(std::vector<int>(extents.begin(), extents.end())));
  gs::executor e(p.view(), gs::all_kernels, on, {}, gs::parameter_store(on));
  for (std::size_t i = 0; i < inputs.size(); ++i) gs::testing::scatter(on, e.input(i), inputs[i]);
  e.run({});
  outcome made;
  for (const gs::op_ref kind : gs::all_operations) made.received += e.received(kind).bytes;
  for (std::size_t o = 0; o < p.tables.outputs.size(); ++o) made.results.push_back(gs::testing::collect(on, e.output(o)));
  return made;
}

/// The same request for one device.
inline request on_one_device(request r) {
  const auto whole = [](shape& s) { s = {s.extents, gs::sharding::replicated(s.rank())}; };
  for (int& extent : r.mesh.extents) extent = 1;
  for (request::operand& o : r.inputs) whole(o.is);
  if (r.output) whole(*r.output);
  r.keep_partial = false;
  return r;
}

/// Multiples of 1/4, whose sums are exact in any order. If `multiplies`: powers of 2, mostly 1 and -1. For int32: indices.
inline whole_tensors random_inputs(const request& r, std::uint32_t seed) {
  std::mt19937 gen(seed);
  const auto below = [&](std::int64_t n) { return std::int64_t(gen() % std::uint64_t(n)); };
  whole_tensors inputs;
  for (const request::operand& o : r.inputs)
    for (double& v : inputs.emplace_back(std::size_t(elements_of(o.is.extents)))) {
      if (o.type == gs::dtype::i32)
        v = double(below(o.below));
      else if (r.multiplies)
        v = (below(2) ? 1 : -1) * (below(8) ? 1 : below(2) ? 2 : 0.5);
      else
        v = double(below(17) - 8) / 4;
    }
  return inputs;
}

}  // namespace detail

/// The difference between the results on the mesh and on one device.
struct comparison {
  double largest_error = 0;   // infinite if a difference is NaN
  double allowed = 0;         // 0 if the inputs make every order of computation exact
  std::int64_t received = 0;  // bytes that the simulated devices received, as in plan_facts

  bool equal() const { return largest_error <= allowed; }
};

/// Runs a plan on simulated devices and on one device. The inputs are random numbers whose sums and products are exact in any order. If
/// results depend on rounding, as for exp, errors up to 1e-12 (1e-5 for float) of the largest input or output are allowed.
inline comparison compare(const request& r, const planned& p, std::uint32_t seed = 1) {
  detail::check_affordable(p);
  const detail::whole_tensors inputs = detail::random_inputs(r, seed);
  const detail::outcome on_mesh = detail::run(p, inputs), alone = detail::run(make_plan(detail::on_one_device(r)), inputs);
  const detail::whole_tensors &got = on_mesh.results, &expected = alone.results;
  comparison c;
  c.received = on_mesh.received;
  double largest = 0;
  const auto note = [&](double v) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  };
  for (const std::vector<double>& input : inputs)
    for (const double v : input) note(v);
  for (std::size_t o = 0; o < got.size(); ++o)
    for (std::size_t e = 0; e < got[o].size(); ++e) {
      const double error = got[o][e] == expected[o][e] ? 0 : std::abs(got[o][e] - expected[o][e]);
      c.largest_error = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(c.largest_error, error);
      note(expected[o][e]);
    }
  if (r.rounds) c.allowed = largest * (r.inputs[0].type == gs::dtype::f64 ? 1e-12 : 1e-5);
  return c;
}

}  // namespace planning
