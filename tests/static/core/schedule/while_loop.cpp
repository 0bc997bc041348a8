// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/schedule/while_loop.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::input;

namespace {

constexpr auto same = [](symbol s) { return s; };

/// The result of check_loops for a program.
template <class F>
constexpr bool refused(fault expected, std::string_view about, F f) {
  return fails(expected, about, [&](builder& b, auto& m) {
    const symbol result = f(b, m);
    b.program.outputs.push_back({gs::tensor_name("result"), result.id});
    gs::detail::check_loops(b.program);
  });
}

// A tensor of the body is used only in the body, a result of the loop after it, and a tensor from outside everywhere.
static_assert(refused(fault::nothing, "", [](builder& b, auto&) {
  const symbol x = input(b, "A"), n = input(b, "");
  const symbol y = gs::repeat(n, [&](symbol s) { return gs::repeat(n, [&](symbol t) { return s + t + x; }, s); }, x);
  return y + x;
}));
static_assert(refused(fault::used_outside_loop, "map", [](builder& b, auto&) {
  symbol inside;
  const symbol y = gs::repeat(input(b, ""), [&](symbol s) { return inside = s + s; }, input(b, "A"));
  return y + inside;
}));
static_assert(refused(fault::used_outside_loop, "result", [](builder& b, auto&) {
  symbol inside;
  gs::repeat(input(b, ""), [&](symbol s) { return inside = s; }, input(b, "A"));
  return inside;
}));
static_assert(refused(fault::used_outside_loop, "map", [](builder& b, auto&) {  // a tensor of an inner loop in the outer one
  const symbol n = input(b, "");
  return gs::repeat(n, [&](symbol s) {
    symbol inside;
    const symbol t = gs::repeat(n, [&](symbol u) { return inside = u + u; }, s);
    return t + inside;
  }, input(b, "A"));
}));
static_assert(refused(fault::used_outside_loop, "w", [](builder& b, auto& m) {
  const symbol w = m.param("w", "A", gs::init::zeros());
  return gs::repeat(input(b, ""), [&](symbol s) {
    b.set_updated(w, s + s);
    return s;
  }, w);
}));
static_assert(refused(fault::update_in_loop, "adam", [](builder& b, auto& m) {
  const symbol w = m.param("w", "A", gs::init::zeros()), rate = input(b, "");
  return gs::repeat(input(b, ""), [&](symbol s) {
    gs::adam{}.minimize(m, gs::sum(w * w), rate);
    return s;
  }, input(b, "A"));
}));
static_assert(fails(fault::gradient_of_loop, "while_loop", [](builder& b, auto&) {
  const symbol x = input(b, "A");
  gs::gradients(gs::sum(gs::repeat(input(b, ""), same, x)), std::array{x});
}));
static_assert(fails(fault::gradient_of_loop, "while_loop", [](builder& b, auto&) {  // with respect to a tensor that only the body reads
  const symbol x = input(b, "A"), w = input(b, "A");
  gs::gradients(gs::sum(gs::repeat(input(b, ""), [w](symbol s) { return s + w; }, x)), std::array{w});
}));

constexpr gs::node step(gs::op_ref kind) {
  gs::node n;
  n.kind = kind;
  return n;
}
constexpr gs::lifetime from_to(int first, int last) {
  gs::lifetime l;
  l.first = first;
  l.last = last;
  return l;
}
// Steps: map, begin, map, begin, map, end, end, map.
static_assert([] {
  namespace op = gs::op;
  gs::list<gs::node> steps;
  const gs::op_ref kinds[]{op::map, op::loop_begin, op::map, op::loop_begin, op::map, op::loop_end, op::loop_end, op::map};
  for (const gs::op_ref kind : kinds) steps.push_back(step(kind));
  gs::list<gs::lifetime> life{from_to(-1, 0), from_to(-1, 2), from_to(0, 4), from_to(0, 7), from_to(2, 2), from_to(2, 4), from_to(4, 4)};
  gs::detail::keep_through_loops(life, steps);
  const int last[]{0, 6, 6, 7, 2, 5, 4};
  for (std::size_t i = 0; i < life.size(); ++i)
    if (life[i].last != last[i]) return false;
  return true;
}());

}  // namespace
