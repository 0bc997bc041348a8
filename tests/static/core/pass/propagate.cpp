// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/propagate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/convolution.hpp>

#include "../../tracing.hpp"

#include <initializer_list>
#include <vector>

namespace gs = gshard;
using gs::any, gs::axes, gs::builder, gs::einsum, gs::init, gs::none, gs::P, gs::symbol;
using tracing::input;

namespace {

/// The axes of every dim of s: 0 is "x", 1 is "y".
constexpr bool lies(symbol s, std::initializer_list<std::initializer_list<int>> wanted) {
  int d = 0;
  for (const auto& list : wanted)
    if (!tracing::reads(s.get().layout[d++], list)) return false;
  return d == s.rank();
}
constexpr bool propagated(builder& b) {
  gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, {}));
  return !b.failed();
}

// Forwards and backwards along the letters of an equation.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC", P<"x", any, any>{}), w = input(b, "CD", P<any, "y">{}),
               y = einsum<"abc,cd->abd">(x, w);
  return propagated(b) && lies(y, {{0}, {}, {1}}) && lies(x, {{0}, {}, {}}) && lies(w, {{}, {1}});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC"), w = input(b, "CD"),
               y = gs::annotate<P<"x", none, "y">>(einsum<"abc,cd->abd">(x, w));
  return propagated(b) && lies(x, {{0}, {}, {}}) && lies(w, {{}, {1}}) && lies(y, {{0}, {}, {1}});
}));
// From one operand to the other along the contracted index.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<none, "x">{}), w = input(b, "BC"), y = einsum<"ab,bc->ac">(x, w);
  return propagated(b) && lies(w, {{0}, {}}) && lies(y, {{}, {}});
}));

// Nothing passes a barrier, in either direction.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", any>{}), y = gs::propagation_barrier(x) * gs::annotate<P<any, "y">>(input(b, "AB"));
  return propagated(b) && lies(x, {{0}, {}}) && lies(y, {{}, {1}});
}));

// Closed dims keep their sharding, and pass it on.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{}), y = input(b, "AB", P<none, none>{}), z = x + y;
  return propagated(b) && lies(y, {{}, {}}) && lies(z, {{0}, {}});
}));
// An axis shards a tensor once: the first sharding wins.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", any>{}), y = input(b, "AB", P<any, "x">{}), z = x + y;
  return propagated(b) && lies(x, {{0}, {}}) && lies(y, {{}, {0}}) && z.get().layout.used() == 1;
}));
// An axis with a pending sum cannot shard the tensor as well.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<any, any, gs::partial<"x">>{}), y = input(b, "AB", P<"x", "y">{}),
               s = x + y;
  return propagated(b) && lies(x, {{}, {1}}) && x.get().layout.partial == 1 && lies(s, {{0}, {1}});
}));
// A longer list refines only its own prefix.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A", P<axes<"x", "y">>{}), y = gs::relu(x), z = input(b, "A", P<"y">{}),
               s = y + z;
  return propagated(b) && lies(y, {{0, 1}}) && lies(z, {{1}}) && lies(s, {{0, 1}});
}));

// If two annotations conflict, the one with fewer operations in between wins.
static_assert(tracing::holds([](builder& b, auto&) {
  symbol far = input(b, "AB", P<"x", any>{}), near = input(b, "AB", P<any, "x">{});
  const symbol first = gs::relu(far), second = gs::relu(first), third = gs::relu(second),
               meeting = near + third;
  return propagated(b) && lies(first, {{0}, {}}) && lies(meeting, {{}, {0}});
}));
// If two conflict in one operation, the leading dim wins, for any order of the operands.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", any>{}), y = input(b, "AB", P<any, "x">{}), s = x + y, t = y + x;
  return propagated(b) && lies(s, {{0}, {}}) && lies(t, {{0}, {}});
}));
// Operations along rows pass on the sharding of rows.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", "y">{}), y = gs::softmax(x);
  return propagated(b) && lies(y, {{0}, {1}});
}));
// Elementwise operations have priority over einsums, even nearer ones. Broadcasts come last.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", any>{}), w = input(b, "BC", P<any, "x">{});
  const symbol far = gs::relu(gs::relu(x)), met = gs::einsum<"ab,bc->ac">(far, w);
  return propagated(b) && lies(far, {{0}, {}}) && lies(met, {{0}, {}});
}));
// A contraction waits for elementwise operations and broadcasts: a sum costs more than an existing sharding of an operand.
template <gs::fixed_string Letters>
constexpr bool contraction_waits(gs::dims known) {
  return tracing::holds([&](builder& b, auto&) {
    const symbol x = input(b, "AB", P<"x", any>{}), bias = input(b, "B"), w = input(b, "BC", P<"x", any>{});
    const symbol h = gs::relu(gs::relu(x) + bias), y = einsum<Letters>(h, w);
    b.mesh.extents[0] = 4;
    gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, known));
    return !b.failed() && lies(h, {{0}, {}}) && lies(y, {{0}, {}});
  });
}
static_assert(contraction_waits<"ab,bc->ac">({}));
// Not if the sum is known to be cheap: few rows, a large matrix.
static_assert(contraction_waits<"ab,bc->ac">({{'A', 4096}, {'B', 1024}, {'C', 1024}}));
static_assert(!contraction_waits<"ab,bc->ac">({{'A', 4}, {'B', 1024}, {'C', 1024}}));
// An annotation of lower priority waits, and then takes the remaining axes.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = gs::annotate<P<"x", any>>(input(b, "AB"), {}, 1), y = gs::annotate<P<any, "x">>(input(b, "AB"));
  const symbol s = gs::relu(x) + gs::relu(gs::relu(y));
  return propagated(b) && lies(s, {{}, {0}});
}));
// Blocked factors pass nothing on: merged dims except the first, tokens of a group.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC", P<none, "x", "y">{}), y = gs::merge_dims<0>(x);
  return propagated(b) && lies(y, {{}, {1}});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE", P<"x", any, any>{}));
  return propagated(b) && lies(r.dispatch, {{0}, {}, {}, {}}) && lies(r.load, {{0}, {}}) && lies(r.aux, {});
}));
// A spatial dim gets the sharding of the positions of its windows. If there are certainly fewer positions than taps, it gets the sharding
// of the taps.
constexpr bool passes_to(int taps, bool to_taps) {
  return tracing::holds([=](builder& b, auto&) {
    const symbol x = input(b, "BXI", P<any, "x", any>{}), w = input(b, "BKO"), y = gs::conv<"BXI,BxO->XIO">(x, w);
    gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, {{'X', 8}, {'K', taps}}));
    return to_taps ? lies(w, {{}, {0}, {}}) && lies(y, {{}, {}, {}}) : lies(w, {{}, {}, {}}) && lies(y, {{0}, {}, {}});
  });
}
static_assert(passes_to(8, true) && passes_to(5, true) && passes_to(4, false) && passes_to(3, false) && passes_to(0, false));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "BXI"), w = input(b, "BKO", P<any, "y", any>{});
  gs::conv<"BXI,BxO->XIO">(x, w);
  gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, {{'X', 8}, {'K', 8}}));
  return lies(x, {{}, {1}, {}});
}));
// A diagonal cannot be sharded by one axis in both dims.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AAB"), y = gs::annotate<P<"x", "y">>(einsum<"iij->ij">(x));
  return propagated(b) && lies(x, {{}, {}, {1}}) && lies(y, {{0}, {1}});
}));

// Properties of the fixed point, for a program with cyclic constraints (x is used twice) and many annotations: it is reached, another pass
// changes nothing, and every layout refines the one before: axes stay where they were, and none is used twice.
constexpr bool refines(const gs::sharding& before, const gs::sharding& after) {
  unsigned seen = 0;
  for (int d = 0; d < before.rank; ++d) {
    if (!before[d].is_prefix_of(after[d]) || (!before.is_open(d) && before[d] != after[d])) return false;
    for (int i = 0; i < after[d].size(); ++i) {
      if ((seen >> after[d][i]) & 1u) return false;
      seen |= 1u << after[d][i];
    }
  }
  return true;
}
constexpr bool is_fixed_point(int choice) {
  builder b = tracing::on(tracing::mesh);
  const symbol x = input(b, "AB"), w = input(b, "BC"), v = input(b, "CA");
  const symbol y = einsum<"ab,bc->ac">(x, w), z = gs::relu(einsum<"ac,ca->ac">(y, v));
  const symbol s = einsum<"ac,bc->ab">(z, w) + x, t = einsum<"ab->ba">(s), u = einsum<"ba,ba->b">(t, t);
  // Each of seven tensors is left alone, sharded by x or y along its first or last dim, or by both.
  for (const symbol& p : {x, w, v, y, z, s, u}) {
    gs::sharding& layout = b.program.at(p.id).layout;
    const int kind = choice % 5;
    choice /= 5;
    if (kind == 1 || kind == 3) layout[0].push_back(kind == 1 ? 0 : 1);
    if (kind == 2) layout[layout.rank - 1].push_back(0);
    if (kind == 4) {
      layout[0].push_back(1);
      layout[0].push_back(0);
      layout.open = 0;
    }
    if (p.id != x.id && p.id != w.id && p.id != v.id)
      b.program.inputs.push_back({{}, p.id});  // propagation also starts from here
  }
  std::vector<gs::sharding> before;
  for (const gs::value& value : b.program.values) before.push_back(value.layout);
  gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, {}));
  std::vector<gs::sharding> after;
  for (const gs::value& value : b.program.values) after.push_back(value.layout);
  gs::propagate(b.program, gs::detail::assume_extents(b.program.dims, b.mesh, {}));
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!refines(before[i], after[i]) || after[i] != b.program.values[i].layout) return false;
  return true;
}
constexpr bool are_fixed_points(int first, int last, int step) {
  for (int choice = first; choice < last; choice += step)
    if (!is_fixed_point(choice)) return false;
  return true;
}
static_assert(are_fixed_points(0, 78125, 1511));

// If the only reader of a tensor is an annotation, it determines the sharding. Unused nodes have no influence.
enum class dead_reader { none, computes, annotates };
constexpr int axes_wanted(dead_reader dead, bool annotated) {
  builder b;
  b.mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape;
  const symbol y = einsum<"BM,MH->BH">(input(b, "BM"), input(b, "MH"));
  if (dead == dead_reader::computes) (void)gs::relu(y);
  if (dead == dead_reader::annotates) (void)gs::annotate<P<"y", none>>(y);
  const symbol z = annotated ? gs::annotate<P<"x", none>>(y) : gs::relu(y);
  b.program.outputs.push_back({gs::tensor_name("z"), z.id});
  gs::want_annotated(b.program);
  return int(y.get().layout[0].mask());
}
static_assert(axes_wanted(dead_reader::none, true) == 1);
static_assert(axes_wanted(dead_reader::computes, true) == 1);
static_assert(axes_wanted(dead_reader::annotates, true) == 1);
static_assert(axes_wanted(dead_reader::annotates, false) == 0);

}  // namespace
