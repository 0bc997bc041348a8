// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::init, gs::none, gs::P, gs::parameter_scope, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Names contain the path of the scopes.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  m.scope("encoder").scope(0).scope("moe").param("wi", "EMH", init::zeros());
  m.scope(31).param("w", "M", init::zeros());
  m.param("b", "", init::zeros());
  const auto& p = b.program.parameters;
  return p[0].name.view() == "encoder.0.moe.wi" && p[1].name.view() == "31.w" && p[2].name.view() == "b" &&
         p.size() == 3;
}));
// Equal names are one tensor.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol w = m.param("w", "AB", init::zeros());
  return m.param("w", "AB", init::zeros()).id == w.id &&
         m.scope("w").param("w", "AB", init::zeros()).id != w.id && b.program.parameters.size() == 2;
}));
static_assert(fails(fault::duplicate_name, "s.w", [](builder&, const parameter_scope& m) {
  m.scope("s").param("w", "AB", init::zeros());
  m.scope("s").param("w", "BA", init::zeros());
}));
static_assert(tracing::out_of_range("scope", "index", {-3},
                                    [](builder&, const parameter_scope& m) { m.scope(-3).param("w", "A", init::zeros()); }));
// The second layout may be omitted or equal. Another one is refused.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  m.param("w", "AB", init::zeros());
  m.param("w", "AB", P<"x", none>{}, init::zeros());
  m.param("w", "AB", P<"x", none>{}, init::zeros());
  return m.param("w", "AB", init::zeros()).get().layout.dim_of(0) == 0 && b.program.parameters.size() == 1;
}));
static_assert(fails(fault::duplicate_name, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "AB", P<"x", none>{}, init::zeros());
  m.param("w", "AB", P<none, "x">{}, init::zeros());
}));

static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol w = m.param("w", "MHD", P<none, "y", gs::any>{}, init::fan_in("MH", 2));
  const gs::initializer& i = b.program.parameters[0].init;
  return has_dims(w, "MHD") && w.get().layout.dim_of(1) == 1 && w.get().layout.open == 0b100 &&
         b.program.parameters[0].trainable && i.what == gs::initializer::kind::normal && i.scale == 2 &&
         i.fan_in.size() == 2 && i.fan_in[0] == w.get().dims[0];
}));
// The text of the dims may state the sharding.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol w = m.param("w", "M,H@y,D?", init::fan_in("MH", 2));
  return has_dims(w, "MHD") && m.param("w", "MHD", P<none, "y", gs::any>{}, init::fan_in("MH", 2)).id == w.id &&
         w.get().layout.dim_of(1) == 1 && w.get().layout.open == 0b100 && b.program.parameters.size() == 1;
}));
static_assert(tracing::holds([](builder&, const parameter_scope& m) {
  const symbol v = m.variable("v", "A@x,B", init::zeros()), c = m.cache("c", "A,B@x", init::zeros(), gs::dtype::i32);
  return v.get().layout.dim_of(0) == 0 && c.get().layout.dim_of(0) == 1 && c.get().layout.open == 0;
}));
static_assert(fails(fault::sharded_twice, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "A@x,B", P<"x", none>{}, init::zeros());
}));
static_assert(fails(fault::unknown_axis, "w", [](builder&, const parameter_scope& m) { m.param("w", "A@z,B", init::zeros()); }));
static_assert(fails(fault::axis_used_twice, "w", [](builder&, const parameter_scope& m) { m.param("w", "A@x,B@x", init::zeros()); }));
static_assert(fails(fault::incomplete_output, "w", [](builder&, const parameter_scope& m) { m.param("w", "A+x", init::zeros()); }));
static_assert(fails(fault::foreign_letter, "w", [](builder&, const parameter_scope& m) { m.param("w", "A@x,B", init::fan_in("x")); }));
// Faults have the line of the declaration. Nodes keep the lines of their verbs, also if a declaration is an operand.
template <class F>
constexpr int line_of_fault(F declare) {
  return tracing::problem_of([&](builder& b, const parameter_scope& m) {
    gs::einsum<"ab->ba">(input(b, "AB"));
    declare(m);
  }).line;
}
static_assert(line_of_fault([](auto& m) { m.param("w", "A@z,B", init::zeros()); }) == __LINE__);
static_assert(line_of_fault([](auto& m) { m.param("w", "A@x,B@x", init::zeros()); }) == __LINE__);
static_assert(line_of_fault([](auto& m) { m.variable("w", "AB", P<"z", none>{}, init::zeros()); }) == __LINE__);
static_assert(line_of_fault([](auto& m) { m.cache("w", "A B", init::zeros()); }) == __LINE__);
static_assert(line_of_fault([](auto& m) { m.param("w", "AB", init::fan_in("C")); }) == __LINE__);
static_assert(line_of_fault([](auto& m) { m.param("w", "AB", init::zeros(), gs::dtype::i32); }) == __LINE__);
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const auto weight = [&] { return m.param("w", "BC", init::zeros()); };
  gs::einsum<"ab,bc->ac">(input(b, "AB"), weight()); const int line = __LINE__;
  return int(b.program.nodes.back().place.line) == line;
}));
// Without a sharding, propagation chooses the layout.
static_assert(tracing::holds([](builder&, const parameter_scope& m) {
  return m.param("w", "AB", init::zeros()).get().layout == gs::sharding::unconstrained(2);
}));
static_assert([] {
  builder b;
  const parameter_scope m(b, gs::dtype::f64);
  return m.scope("s").param("w", "A", init::zeros()).get().type == gs::dtype::f64;
}());

static_assert(fails(fault::unknown_axis, "s.w", [](builder&, const parameter_scope& m) {
  m.scope("s").param("w", "A", P<"z">{}, init::zeros());
}));
static_assert(fails(fault::rank_mismatch, "w",
                    [](builder&, const parameter_scope& m) { m.param("w", "AB", P<"x">{}, init::zeros()); }));
static_assert(fails(fault::incomplete_output, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "A", P<none, gs::partial<"x">>{}, init::zeros());
}));
static_assert(fails(fault::unknown_letter, "w",
                    [](builder&, const parameter_scope& m) { m.param("w", "A, B", init::zeros()); }));
static_assert(fails(fault::unknown_letter, "w", [](builder&, const parameter_scope& m) { m.param("w", "A@x,2", init::zeros()); }));
static_assert(fails(fault::foreign_letter, "w",
                    [](builder&, const parameter_scope& m) { m.param("w", "AB", init::fan_in("C")); }));
static_assert(fails(fault::duplicate_name, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "A", init::zeros());
  m.param("w", "A", init::constant(1));
}));
static_assert(tracing::problem_of([](builder&, const parameter_scope& m) {
                m.scope("abcdefghijklmnopqrstuvwxyz")
                    .scope("abcdefghijklmnopqrstuvwxyz")
                    .param("abcdefghijklmnopqrst", "A", init::zeros());
              }).what == fault::name_too_long);

// The state of an optimizer: not trained, named after its parameter, sharded like it, and further if its gradient is.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol w = m.scope("s").param("w", "AB", P<"x", none>{}, init::normal(1)), v = m.state("adam.v.", w);
  const gs::parameter& p = b.program.parameters.back();
  return p.value == v.id && p.name.view() == "adam.v.s.w" && !p.trainable && p.of_optimizer &&
         p.init.what == gs::initializer::kind::zeros && v.get().dims == w.get().dims &&
         v.get().layout.same_layout(w.get().layout) && v.get().layout.is_open(1);
}));
static_assert(tracing::problem_of([](builder&, const parameter_scope& m) {
                m.state("adam.m.", m.scope("abcdefghijklmnopqrstuvwxyz")
                                       .scope("abcdefghijklmnopqrstuvwxyz")
                                       .param("wi", "A", init::zeros()));
              }).what == fault::nothing);
static_assert(tracing::problem_of([](builder&, const parameter_scope& m) {
                m.state("adam.m.", m.scope("abcdefghijklmnopqrstuvwxyz")
                                       .scope("abcdefghijklmnopqrstuvwxyz")
                                       .param("weight", "A", init::zeros()));
              }).what == fault::name_too_long);

// A variable is stored like a parameter, in any element type. No optimizer trains it, and it is not optimizer state.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol v = m.scope("s").variable("v", "AB", P<"x", none>{}, init::constant(2));
  const symbol n = m.variable("n", "", init::zeros(), gs::dtype::i64);
  const gs::parameter& p = b.program.parameters[0];
  return p.value == v.id && p.name.view() == "s.v" && !p.trainable && !p.of_optimizer && p.init.scale == 2 && has_dims(v, "AB") &&
         v.get().layout.dim_of(0) == 0 && n.get().type == gs::dtype::i64 && m.variable("n", "", init::zeros(), gs::dtype::i64).id == n.id &&
         b.program.parameters.size() == 2;
}));
static_assert(fails(fault::duplicate_name, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "A", init::zeros());
  m.variable("w", "A", init::zeros());
}));
static_assert(fails(fault::duplicate_name, "n", [](builder&, const parameter_scope& m) {
  m.variable("n", "A", init::zeros());
  m.variable("n", "A", init::zeros(), gs::dtype::i32);
}));
static_assert(fails(fault::incomplete_output, "v", [](builder&, const parameter_scope& m) {
  m.variable("v", "A", P<none, gs::partial<"x">>{}, init::zeros());
}));
// A cache is a variable that checkpoints do not contain. No other tensor can have its name.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol c = m.scope("s").cache("c", "AB", P<"x", none>{}, init::zeros());
  const symbol n = m.cache("n", "", init::zeros(), gs::dtype::i64), v = m.variable("v", "A", init::zeros());
  const gs::list<gs::parameter>& all = b.program.parameters;
  return all[0].value == c.id && all[0].name.view() == "s.c" && all[0].is_cache && !all[0].trainable && !all[0].of_optimizer &&
         c.get().layout.dim_of(0) == 0 && n.get().type == gs::dtype::i64 && m.cache("n", "", init::zeros(), gs::dtype::i64).id == n.id &&
         all[2].value == v.id && !all[2].is_cache && all.size() == 3;
}));
static_assert(fails(fault::duplicate_name, "v", [](builder&, const parameter_scope& m) {
  m.variable("v", "A", init::zeros());
  m.cache("v", "A", init::zeros());
}));
static_assert(fails(fault::duplicate_name, "w", [](builder&, const parameter_scope& m) {
  m.cache("w", "A", init::zeros());
  m.param("w", "A", init::zeros());
}));
// An update gives the value after the run. The variable itself keeps the old value.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol v = m.variable("v", "A", init::zeros()), next = v + input(b, "A");
  if (m.updated(v).id != v.id) return false;
  m.update(v, next);
  return m.updated(v).id == next.id && b.program.parameters[0].updated == next.id;
}));
constexpr bool update_fails(fault expected, std::string_view letters, gs::dtype type) {
  return tracing::problem_of([&](builder& b, const parameter_scope& m) {
           m.update(m.variable("v", "A", init::zeros()), input(b, letters, type));
         }).what == expected;
}
static_assert(update_fails(fault::nothing, "A", gs::dtype::f32));
static_assert(update_fails(fault::dims_differ, "B", gs::dtype::f32) && update_fails(fault::rank_mismatch, "AB", gs::dtype::f32));
static_assert(update_fails(fault::wrong_type, "A", gs::dtype::i32));
static_assert(fails(fault::updated_twice, "v", [](builder& b, const parameter_scope& m) {
  const symbol v = m.variable("v", "A", init::zeros()), x = input(b, "A");
  m.update(v, x);
  m.update(v, x);
}));
static_assert(fails(fault::not_kept, "update", [](builder& b, const parameter_scope& m) { m.update(input(b, "A"), input(b, "A")); }));
static_assert(fails(fault::not_kept, "updated", [](builder& b, const parameter_scope& m) { m.updated(input(b, "A")); }));

// The sum of the terms that layers passed to `loss`.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol first = gs::sum(input(b, "A"));
  m.scope("s").loss(first);
  if (m.auxiliary().id != first.id) return false;
  m.loss(gs::sum(input(b, "A")));
  return has_dims(m.auxiliary(), "") && b.program.nodes.back().in[0] == first.id;
}));
static_assert(fails(fault::no_terms, "auxiliary", [](builder&, const parameter_scope& m) { m.auxiliary(); }));

// The objective: main + weight * (sum of the terms).
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol main = gs::sum(input(b, "A"));
  if (m.objective(main).id != main.id) return false;
  m.scope("s").loss(gs::sum(input(b, "A")));
  m.loss(gs::sum(input(b, "A")));
  return has_dims(m.objective(main, 0.01), "") &&
         b.program.nodes[b.program.nodes.size() - 2].attr.factor == 0.01;
}));

// Parameters in half precision are trainable. Their state has the type of their gradient. Integers cannot be parameters.
static_assert(tracing::holds([](builder& b, const parameter_scope& m) {
  const symbol w = m.param("w", "AB", P<"x", none>{}, init::zeros(), gs::dtype::bf16);
  if (w.get().type != gs::dtype::bf16 || !b.program.parameters[0].trainable || w.get().layout.dim_of(0) != 0) return false;
  return m.state("s.", w).get().type == gs::dtype::f32 && m.param("w", "AB", P<"x", none>{}, init::zeros(), gs::dtype::bf16).id == w.id;
}));
static_assert(tracing::wrong_type("param", "s.w", "i32", "f32, f64, f16, bf16", [](builder&, const parameter_scope& m) {
  m.scope("s").param("w", "A", init::zeros(), gs::dtype::i32);
}));
static_assert(fails(fault::duplicate_name, "w", [](builder&, const parameter_scope& m) {
  m.param("w", "A", init::zeros());
  m.param("w", "A", init::zeros(), gs::dtype::bf16);
}));

}  // namespace
