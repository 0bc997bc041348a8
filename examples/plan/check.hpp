// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <gshard/exec/all_kernels.hpp>
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

/// More than this is not simulated: bytes of all shards together, and operations.
inline constexpr double most_bytes = 4e9, most_flops = 2e11;

inline void check_affordable(const planned& p) {
  const plan_facts f = facts_of(p);
  const double devices = gs::device_count(extents_of(f.mesh));
  double bytes = 0;
  for (const gs::value& v : p.tables.values) bytes += devices * double(gs::shard_elements(v.dims, v.layout, p.sizes) * gs::size_of(v.type));
  if (bytes > most_bytes || devices * double(f.flops) > most_flops)
    throw refusal("--check computes every shard in this process, and these are too many or too large: check smaller extents");
}

template <class F>
void with_element(gs::dtype type, F f) {
  if (type == gs::dtype::f64) f(static_cast<double*>(nullptr));
  else f(static_cast<float*>(nullptr));
}

/// Calls f(index in the whole tensor, index in the shard) for the elements of a shard.
template <class F>
void for_each_element(const gs::kernel::placement& at, F f) {
  gs::kernel::for_each_run(at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) f(std::size_t(global + i), std::size_t(local + i));
  });
}

/// Addend k of the n that an element is the sum of; all but the first are made up.
inline double addend(double whole, std::size_t element, int k, int n) {
  const auto made_up = [&](int j) { return double(int(element % 7) - 3 + j % 5) / 4; };
  if (k > 0) return made_up(k);
  for (int j = 1; j < n; ++j) whole -= made_up(j);
  return whole;
}

/// The place of the i-th device among those that hold the addends of a sum.
inline gs::device_group addends_at(const gs::any_cluster& on, const gs::detail::bound_value& v, std::size_t i) {
  return {on.on().extents(), v.layout.partial, on.devices()[i]};
}

inline void scatter(const gs::any_cluster& on, const gs::detail::bound_value& to, const std::vector<double>& whole) {
  for (std::size_t i = 0; i < to.data.size(); ++i) {
    const gs::device_group group = addends_at(on, to, i);
    with_element(to.type, [&]<class T>(T*) {
      for_each_element(to.places[i], [&](std::size_t global, std::size_t local) {
        to.as<T>(i)[local] = T(addend(whole[global], global, group.member(), group.size()));
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
    with_element(from.type, [&]<class T>(T*) {
      for_each_element(from.places[i], [&](std::size_t global, std::size_t local) {
        const auto v = double(from.as<T>(i)[local]);
        part[global] = part[global].value_or(v) == v ? v : std::nan("");
      });
    });
  }
  std::vector<double> whole(size, 0.0);
  for (const auto& part : parts)
    for (std::size_t e = 0; e < size; ++e) whole[e] += part[e].value_or(std::nan(""));
  return whole;
}

inline std::size_t elements_of(const shape& s) {
  std::size_t n = 1;
  for (const std::int64_t e : s.extents) n *= std::size_t(e);
  return n;
}

/// Runs a plan once.
inline std::vector<double> run(const planned& p, const std::vector<std::vector<double>>& inputs) {
  const std::span<const int> extents = extents_of(p.tables.mesh);
  const gs::any_cluster on(p.tables.mesh, std::make_shared<gs::simulated>(std::vector<int>(extents.begin(), extents.end())));
  gs::executor e(p.view(), gs::all_kernels, on, p.dims, gs::parameter_store(on));
  for (std::size_t i = 0; i < inputs.size(); ++i) scatter(on, e.input(i), inputs[i]);
  e.run({});
  return collect(on, e.output(0), elements_of(shape_of(p.output(), p.sizes)));
}

/// The same request for one device.
inline request on_one_device(request r) {
  const auto whole = [](shape& s) { s.layout = gs::sharding::replicated(s.rank()); };
  for (int& extent : r.mesh.extents) extent = 1;
  for (request::operand& o : r.inputs) whole(o.is);
  if (r.output) whole(*r.output);
  r.keep_partial = false;
  return r;
}

}  // namespace detail

/// The largest difference between what a plan computes on its mesh and what one device computes; infinite where devices
/// disagree. The numbers are random multiples of 1/4, whose sums are exact in any order, so a plan that is right gives 0.
inline double largest_error(const request& r, const planned& p, std::uint32_t seed = 1) {
  detail::check_affordable(p);
  std::mt19937 gen(seed);
  std::uniform_int_distribution<int> pick(-8, 8);
  std::vector<std::vector<double>> inputs;
  for (const request::operand& o : r.inputs) {
    std::vector<double>& whole = inputs.emplace_back(detail::elements_of(o.is));
    for (double& v : whole) v = double(pick(gen)) / 4;
  }
  const std::vector<double> got = detail::run(p, inputs), expected = detail::run(make_plan(detail::on_one_device(r)), inputs);
  double worst = 0;
  for (std::size_t e = 0; e < got.size(); ++e) {
    const double difference = std::abs(got[e] - expected[e]);
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
  }
  return worst;
}

}  // namespace planning
