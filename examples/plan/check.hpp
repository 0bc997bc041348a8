// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <gshard/comm/combine.hpp>
#include <gshard/exec/bind/all_kernels.hpp>
#include <gshard/exec/executor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <vector>

// Runs a plan on simulated devices and on one, with the same numbers.
namespace planning {

namespace detail {

/// More than this is not simulated: bytes of all shards together, operations, and devices.
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

/// Part k of the n that an element is combined from: one is made from the others, which are made up.
inline double part_of(gs::reduction what, double whole, std::size_t element, int k, int n) {
  const auto made_up = [&](int j) { return double(int(element % 7) - 3 + j % 5) / 4; };
  const auto chosen = int(element % std::size_t(n));
  switch (what) {
    case gs::reduction::max:
      return k == chosen ? whole : whole - std::abs(made_up(k));
    case gs::reduction::min:
      return k == chosen ? whole : whole + std::abs(made_up(k));
    case gs::reduction::prod:
      return k == chosen ? whole * (n % 2 ? 1 : -1) : -1;
    case gs::reduction::sum:
      break;
  }
  if (k > 0) return made_up(k);
  for (int j = 1; j < n; ++j) whole -= made_up(j);
  return whole;
}
inline double combined(gs::reduction what, double a, double b) {
  return gs::detail::with_operation<double>(what, [&](auto combine, double) { return combine(a, b); });
}

/// The place of the i-th device among those that hold the addends of a sum.
inline gs::device_group addends_at(const gs::any_cluster& on, const gs::detail::bound_value& v, std::size_t i) {
  return {on.on().extents(), v.layout.partial, on.devices()[i]};
}

inline void scatter(const gs::any_cluster& on, const gs::detail::bound_value& to, const std::vector<double>& whole) {
  for (std::size_t i = 0; i < to.data.size(); ++i) {
    const gs::device_group group = addends_at(on, to, i);
    gs::detail::with_element(to.type, [&]<class T>(T*) {
      gs::kernel::for_each_element(to.places[i], [&](std::size_t global, std::size_t local) {
        to.as<T>(i)[local] = T(part_of(to.layout.pending, whole[global], global, group.member(), group.size()));
      });
    });
  }
}

/// The whole tensor from its shards; not a number where an element is on no device, or copies of it differ.
inline std::vector<double> collect(const gs::any_cluster& on, const gs::detail::bound_value& from, std::size_t size) {
  const auto addends = std::size_t(addends_at(on, from, 0).size());
  std::vector<std::vector<std::optional<double>>> parts(addends, std::vector<std::optional<double>>(size));
  for (std::size_t i = 0; i < from.data.size(); ++i) {
    auto& part = parts[std::size_t(addends_at(on, from, i).member())];
    gs::detail::with_element(from.type, [&]<class T>(T*) {
      gs::kernel::for_each_element(from.places[i], [&](std::size_t global, std::size_t local) {
        const auto v = double(from.as<T>(i)[local]);
        part[global] = part[global].value_or(v) == v ? v : std::nan("");
      });
    });
  }
  std::vector<double> whole(size);
  for (std::size_t k = 0; k < addends; ++k)
    for (std::size_t e = 0; e < size; ++e) {
      const double v = parts[k][e].value_or(std::nan(""));
      whole[e] = k == 0 ? v : combined(from.layout.pending, whole[e], v);
    }
  return whole;
}

using whole_tensors = std::vector<std::vector<double>>;

struct outcome {
  whole_tensors results;
  std::int64_t received = 0;  // bytes, by the device that receives most in each step
};

/// Runs a plan once.
inline outcome run(const planned& p, const whole_tensors& inputs) {
  const std::span<const int> extents = extents_of(p.tables.mesh);
  const gs::any_cluster on(p.tables.mesh, std::make_shared<gs::simulated>(std::vector<int>(extents.begin(), extents.end())));
  gs::executor e(p.view(), gs::all_kernels, on, {}, gs::parameter_store(on));
  for (std::size_t i = 0; i < inputs.size(); ++i) scatter(on, e.input(i), inputs[i]);
  e.run({});
  outcome made;
  for (int kind = 0; kind < int(gs::op::count_); ++kind) made.received += e.received(gs::op(kind)).bytes;
  for (std::size_t o = 0; o < p.tables.outputs.size(); ++o)
    made.results.push_back(collect(
        on, e.output(o),
        std::size_t(
            elements_of(shape_of(p.at(p.tables.outputs[o].value), p.sizes, p.tables.orders).extents))));
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

/// Multiples of 1/4, whose sums are exact in any order; or, where products shall be, powers of 2, mostly 1 and -1; or indices.
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

/// How far apart are what a plan computes on its mesh and what one device computes.
struct comparison {
  double largest_error = 0;   // infinite where devices disagree
  double allowed = 0;         // 0 where the numbers make every order of computing exact
  std::int64_t received = 0;  // bytes that the simulated devices received, as in plan_facts

  bool equal() const { return largest_error <= allowed; }
};

/// Runs a plan on simulated devices and on one, with random numbers whose sums and products are exact in any order. Where results depend
/// on roundings all the same, as those of exp, 1e-12 (of float 1e-5) of the largest number that goes in or comes out is allowed.
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
