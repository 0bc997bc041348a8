// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/hash.hpp>
#include <gshard/pass/plan.hpp>

#include <bit>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// A hash of a step, but for the line that asked for it.
inline std::uint64_t fingerprint_of(const node& step) {
  fnv1a<std::uint64_t> h;
  const auto mix = [&](auto... x) { (h.add(std::uint64_t(x)), ...); };
  const auto mix_list = [&](const auto& l) { mix(l.count, l.bits); };
  mix(step.kind, step.inputs, step.outputs, step.in_place);
  for (int k = 0; k < step.inputs; ++k) mix_list(step.loops.in[k]);
  for (int k = 0; k < step.outputs; ++k) mix_list(step.loops.out[k]);
  mix_list(step.loops.windows);
  mix_list(step.attr.dims);
  for (int k = 0; k < step.inputs; ++k) mix(step.input(k));
  for (int k = 0; k < step.outputs; ++k) mix(step.output(k));
  for (std::int32_t k : step.attr.integer) mix(k);
  for (double x : step.attr.number) mix(std::bit_cast<std::uint64_t>(x));
  return h.value();
}

/// A hash of a plan, by which processes find out whether they have the same one.
inline std::uint64_t fingerprint_of(const plan_view& plan) {
  fnv1a<std::uint64_t> h;
  h.add(std::uint64_t(plan.dims.size()));
  const auto mix = [&](auto... x) { (h.add(std::uint64_t(x)), ...); };
  const auto mix_list = [&](const auto& l) { mix(l.count, l.bits); };
  for (const node& step : plan.steps) mix(fingerprint_of(step));
  for (const window& w : plan.windows)
    mix(w.over, w.stride_dim, w.low_dim, w.taps_dim, w.plus_low, w.wrap, w.stride, w.low, w.step, w.dilation);
  for (const gshard::value& v : plan.values) {
    mix(v.type, v.layout.partial, v.layout.pending, v.layout.order);
    mix_list(v.dims);
    mix_list(v.windows);
    for (int d = 0; d < v.rank(); ++d) mix_list(v.layout[d]);
  }
  for (const int device : plan.orders) mix(device);
  for (const parameter& p : plan.parameters) mix(p.value, p.updated, fnv1a<std::uint64_t>().add(p.name.view()).value());
  for (const port& p : plan.inputs) mix(p.value);
  for (const port& p : plan.outputs) mix(p.value);
  return h.value();
}

}}  // namespace gshard::v0
