// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "request.hpp"

#include <gshard/tensor/placement.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planning {

/// A tensor of a plan: its shape, and that of its largest shard.
struct tensor_facts {
  shape whole;
  std::vector<std::int64_t> local;
};

/// Where an axis is before and after a step: it cuts a dim, holds copies, or holds the addends of a pending sum.
struct axis_move {
  static constexpr int copies = -1, sums = -2;
  int axis = 0, from = copies, to = copies;
};

/// What one step of a plan does, for printing.
struct step_facts {
  gs::op kind{};
  std::vector<axis_move> moves;
  std::vector<tensor_facts> in, out;
  std::int64_t bytes = 0;  // received by the device that receives most
  std::int64_t flops = 0;  // of the device that computes most
  int groups = 0, group_size = 1;
  std::vector<std::vector<int>> members;  // of the groups; left out for more than 16 devices
};

struct plan_facts {
  gs::mesh_shape mesh;
  std::vector<tensor_facts> inputs;
  tensor_facts output;
  std::vector<step_facts> steps;
  std::int64_t bytes = 0, flops = 0;
};

/// Devices are listed one by one up to this many.
inline constexpr int most_listed = 16;

namespace detail {

inline tensor_facts facts_of(const planned& p, std::int32_t v) {
  tensor_facts t{shape_of(p.at(v), p.sizes), {}};
  // Every cut rounds up, so the first device has the largest shard.
  const gs::kernel::placement at = gs::place(t.whole.extents, t.whole.layout, extents_of(p.tables.mesh), 0);
  t.local.assign(at.extent.begin(), at.extent.begin() + at.rank);
  return t;
}

inline int place_of(int axis, const gs::sharding& s) {
  return s.is_partial(axis) ? axis_move::sums : s.dim_of(axis);  // -1: copies
}

/// 2 x the product of the extents of all loops: a multiplication and an addition; 1 x with one operand.
inline std::int64_t flops_of(const gs::node& n, const step_facts& s) {
  std::uint32_t seen = 0;
  std::int64_t flops = n.inputs;
  for (std::size_t i = 0; i < s.in.size(); ++i)
    for (int d = 0; d < n.loops.in[i].size(); ++d) {
      const std::uint32_t factor = 1u << n.loops.in[i][d];
      if ((seen & factor) == 0 && __builtin_mul_overflow(flops, s.in[i].local[std::size_t(d)], &flops))
        throw refusal("the operations of a step are too many to count: make the extents smaller");
      seen |= factor;
    }
  return flops;
}

inline void add_groups(step_facts& s, std::uint32_t axes, const gs::mesh_shape& mesh) {
  const int devices = gs::device_count(extents_of(mesh));
  s.group_size = gs::device_group(extents_of(mesh), axes, 0).size();
  s.groups = devices / s.group_size;
  if (devices > most_listed) return;
  for (int device = 0; device < devices; ++device) {
    const gs::device_group group(extents_of(mesh), axes, device);
    if (group.member() != 0) continue;
    std::vector<int>& list = s.members.emplace_back();
    for (int m = 0; m < group.size(); ++m) list.push_back(group.device(m));
  }
}

inline step_facts facts_of(const planned& p, const gs::node& n) {
  step_facts s;
  s.kind = n.kind;
  for (int i = 0; i < n.inputs; ++i) s.in.push_back(facts_of(p, n.input(i)));
  for (int o = 0; o < n.outputs; ++o) s.out.push_back(facts_of(p, n.output(o)));
  const bool communicates = gs::traits(n.kind).collective;
  if (communicates || n.kind == gs::op::slice) {
    const auto axes = std::uint32_t(n.attr.integer[0]);
    for (int a = 0; a < p.tables.mesh.rank(); ++a)
      if ((axes >> a) & 1u) s.moves.push_back({a, place_of(a, s.in[0].whole.layout), place_of(a, s.out[0].whole.layout)});
    if (communicates) add_groups(s, axes, p.tables.mesh);
  }
  s.bytes = p.view().bytes_received(n, p.sizes);
  if (n.kind == gs::op::einsum) s.flops = flops_of(n, s);
  return s;
}

}  // namespace detail

inline plan_facts facts_of(const planned& p) {
  plan_facts f;
  f.mesh = p.tables.mesh;
  for (const gs::port& i : p.tables.inputs) f.inputs.push_back(detail::facts_of(p, i.value));
  f.output = detail::facts_of(p, p.tables.outputs[0].value);
  for (const gs::node& n : p.tables.steps) {
    if (n.kind == gs::op::annotate) continue;  // a second name, nothing is done
    f.steps.push_back(detail::facts_of(p, n));
    f.bytes += f.steps.back().bytes;
    f.flops += f.steps.back().flops;
  }
  return f;
}

}  // namespace planning
