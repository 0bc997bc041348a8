// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "held.hpp"
#include "request.hpp"

#include <gshard/exec/bind/step_text.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planning {

/// A tensor of a plan: its shape, and the shape of its largest shard.
struct tensor_facts {
  shape whole;
  std::vector<std::int64_t> local;
};

/// The use of an axis before and after a step: it shards a dim, holds copies, or holds the addends of a partial sum.
struct axis_move {
  static constexpr int copies = -1, sums = -2;
  int axis = 0, from = copies, to = copies;
  bool halo = false;  // devices hold more or other indices of the dim than their block, as windows read them

  bool operator==(const axis_move&) const = default;
};

/// A step of a plan, for printing.
struct step_facts {
  std::string called;            // its kinds: "all_to_all", "all_gather+all_to_all"
  std::vector<int> axes;         // the axes over which devices exchange data
  std::vector<axis_move> moves;  // the moves of all its tensors
  std::vector<tensor_facts> in, out;
  std::int64_t bytes = 0;  // bytes that the device with the most receives
  std::int64_t flops = 0;  // flops of the device with the most
  int groups = 0, group_size = 1;
  std::vector<std::vector<int>> members;  // the devices of the groups; empty for more than 16 devices
};

struct plan_facts {
  gs::mesh_shape mesh;
  std::vector<tensor_facts> inputs, outputs;
  std::vector<step_facts> steps;
  std::int64_t bytes = 0, flops = 0;
};

/// The largest number of devices that are listed one by one.
inline constexpr int most_listed = 16;

namespace detail {

inline tensor_facts facts_of(const planned& p, std::int32_t v) {
  const gs::value& value = p.at(v);
  tensor_facts t{shape_of(value, p.sizes, p.tables.orders), {}};
  std::int64_t most = -1;
  gs::value in_mesh_order = value;  // its first device has the largest blocks
  in_mesh_order.layout.order = 0;
  const gs::device_group different(extents_of(p.tables.mesh), axes_of_halos(value), 0);
  for (int m = 0; m < different.size(); ++m) {
    const holding has = held(p, in_mesh_order, different.device(m));
    std::vector<std::int64_t> local;
    for (int d = 0; d < value.rank(); ++d) local.push_back(has[std::size_t(d)].size());
    if (const std::int64_t n = elements_of(local); n > most) {
      most = n;
      t.local = local;
    }
  }
  return t;
}

inline int place_of(int axis, const gs::sharding& s) {
  return s.is_partial(axis) ? axis_move::sums : s.dim_of(axis);  // -1: copies
}

/// Multiplies. Refuses an overflow.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) throw refusal("the operations of a step are too many to count: make the extents smaller");
  return a;
}

/// The product of the extents of all factors of the result, and of the operands that are not read through windows.
inline std::int64_t iterations(const gs::node& n, const step_facts& s) {
  std::uint32_t seen = 0;
  std::int64_t count = 1;
  const auto look = [&](const gs::short_list& factors, const tensor_facts& t) {
    for (int d = 0; d < factors.size(); ++d) {
      const std::uint32_t factor = 1u << factors[d];
      if ((seen & factor) == 0) count = times(count, t.local[std::size_t(d)]);
      seen |= factor;
    }
  };
  const std::int32_t last = n.kind == gs::op::looped_einsum ? gs::ring_operand(n) : -1;  // the other tensors are sharded like the work
  for (const bool now : {false, true}) {
    if ((n.output() == last) == now) look(n.rule.out[0], s.out[0]);
    for (std::size_t i = 0; i < s.in.size(); ++i)
      if ((n.input(int(i)) == last) == now) look(n.rule.in[i], s.in[i]);
  }
  return count;
}

/// The number of taps of all windows of a convolution or pool without a second operand.
inline std::int64_t taps(const planned& p, const gs::node& n) {
  std::int64_t count = 1;
  for (int d = 0; d < n.rule.windows.size(); ++d)
    if (const int w = n.rule.windows[d]) count = times(count, p.tables.windows[std::size_t(w)].bind(p.sizes).taps);
  return count;
}

/// An einsum or a convolution has a multiplication and an addition for every product, with one operand an addition alone. A pool has one
/// operation for every tap. Other operations that compute have one for every element of the largest tensor. Operations that only move
/// elements have none.
inline std::int64_t flops_of(const planned& p, const gs::node& n, const step_facts& s) {
  switch (n.kind->id) {
    case gs::op::einsum.id:
    case gs::op::looped_einsum.id:
      return times(n.inputs, iterations(n, s));
    case gs::op::convolution.id:
      return n.inputs == 2 ? times(2, iterations(n, s)) : times(taps(p, n), iterations(n, s));
    case gs::op::pool.id:
      return times(taps(p, n), iterations(n, s));
    case gs::op::map.id:
    case gs::op::scale.id:
    case gs::op::reduce.id:
    case gs::op::argmax.id:
    case gs::op::softmax.id:
    case gs::op::layer_norm.id:
    case gs::op::cumsum.id:
    case gs::op::block_sum.id:
    case gs::op::sort.id:
    case gs::op::top_k.id:
    case gs::op::scatter_add.id: {
      std::int64_t most = 0;
      for (const auto* list : {&s.in, &s.out})
        for (const tensor_facts& t : *list) most = std::max(most, elements_of(t.local));
      return most;
    }
    default:
      return 0;
  }
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

/// Adds the move of a tensor along each axis, without duplicates.
inline void add_moves(step_facts& s, std::uint32_t axes, const gs::value& before, const gs::value& after, const gs::mesh_shape& mesh) {
  const std::uint32_t halos = axes_of_halos(before) | axes_of_halos(after);
  for (int a = 0; a < mesh.rank(); ++a) {
    const axis_move m{a, place_of(a, before.layout), place_of(a, after.layout), ((halos >> a) & 1u) != 0};
    if (((axes >> a) & 1u) && std::find(s.moves.begin(), s.moves.end(), m) == s.moves.end()) s.moves.push_back(m);
  }
}

inline step_facts facts_of(const planned& p, const gs::node& n) {
  step_facts s;
  s.called = gs::kind_text(n);
  for (int i = 0; i < n.inputs; ++i) s.in.push_back(facts_of(p, n.input(i)));
  for (int o = 0; o < n.outputs; ++o) s.out.push_back(facts_of(p, n.output(o)));
  const bool communicates = gs::traits(n.kind).collective;
  if (communicates || n.kind == gs::op::slice) {
    const std::uint32_t axes = n.attr.axes;
    if (n.kind == gs::op::looped_einsum) {
      gs::value before = p.at(gs::ring_operand(n)), after = before;
      if (gs::ring_carries_sum(n))
        before.layout = before.layout.without(axes), before.layout.partial = std::uint8_t(axes);
      else
        after.layout = after.layout.without(axes);
      add_moves(s, axes, before, after, p.tables.mesh);
    } else {
      for (int i = 0; i < n.inputs; ++i) add_moves(s, axes, p.at(n.input(i)), p.at(n.output(i)), p.tables.mesh);
    }
    for (int a = 0; a < p.tables.mesh.rank(); ++a)
      if ((axes >> a) & 1u) s.axes.push_back(a);
    if (communicates) add_groups(s, axes, p.tables.mesh);
  }
  s.bytes = p.view().bytes_received(n, p.sizes);
  s.flops = flops_of(p, n, s);
  return s;
}

}  // namespace detail

inline plan_facts facts_of(const planned& p) {
  plan_facts f;
  f.mesh = p.tables.mesh;
  for (const gs::port& i : p.tables.inputs) f.inputs.push_back(detail::facts_of(p, i.value));
  for (const gs::port& o : p.tables.outputs) f.outputs.push_back(detail::facts_of(p, o.value));
  for (const gs::node& n : p.tables.steps) {
    if (n.kind == gs::op::annotate) continue;  // only a second name: there is nothing to run
    f.steps.push_back(detail::facts_of(p, n));
    f.bytes += f.steps.back().bytes;
    f.flops += f.steps.back().flops;
  }
  return f;
}

}  // namespace planning
