// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

#include <array>
#include <vector>

// The structure of gradients. Programs that run check their numbers.
namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::einsum, gs::fault, gs::gradients, gs::init, gs::symbol;
using tracing::count, tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr const gs::node& producer(symbol s) {
  return s.owner->program.nodes[std::size_t(s.get().producer)];
}
constexpr symbol gradient(symbol of, symbol wanted) {
  return gradients(of, std::array{wanted})[0];
}

// einsum's rule is another einsum: dx = dy w over the other letters, dw = dy x.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GSM"), w = input(b, "ME"), y = einsum<"GSM,ME->GSE">(x, w);
  const gs::list<symbol> d = gradients(gs::sum(y), std::array{x, w});
  const gs::node &dx = producer(d[0]), &dw = producer(d[1]);
  return has_dims(d[0], "GSM") && has_dims(d[1], "ME") && dx.kind == op::einsum && dx.input(1) == w.id &&
         dw.kind == op::einsum && dw.input(1) == x.id && dx.input(0) == dw.input(0) &&
         count(b.program, op::einsum) == 4;  // y, its sum, dx, dw
}));
// A gradient has the dims and the type of its tensor, for every operation.
constexpr auto gradients_fit = [](std::string_view letters, auto f) {
  return tracing::holds([&](builder& b, const gs::parameter_scope& m) {
    const symbol x = input(b, letters), y = f(m, x);
    const symbol d = gradient(gs::sum(y), x);
    return d.id >= 0 && d.get().dims == x.get().dims && d.get().type == x.get().type;
  });
};
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::softmax(x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::reduce_max<"ab->b">(x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return einsum<"ab->ba">(x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return einsum<"ab->b">(x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::mean(x * x) * x; }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return einsum<"ab,cb->ac">(x, x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return einsum<"ab,cd->ad">(x, x); }));
static_assert(gradients_fit("AB", [](auto& m, symbol x) {
  return gs::layer_norm(x, m.param("g", "B", init::constant(1)), m.param("b", "B", init::zeros()));
}));
static_assert(gradients_fit("AB",
                            [](auto& m, symbol x) { return x * m.param("bias", "B", init::zeros()) - x; }));
static_assert(gradients_fit("B", [](auto& m, symbol x) { return x * m.param("w", "AB", init::zeros()); }));
static_assert(gradients_fit("ABC", [](auto&, symbol x) { return gs::split_dim<1>(gs::merge_dims<1>(x)); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::split_dim<0>(x, "CD"); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::squeeze<0>(gs::squeeze<1>(gs::expand_dims<1>(x))); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::dropout(x, 0.5); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::annotate<gs::P<"x", gs::none>>(x); }));
static_assert(gradients_fit("AB", [](auto&, symbol x) { return gs::cast<double>(x); }));
static_assert(gradients_fit("AB", [](auto& m, symbol x) { return gs::gather(x, gs::iota<"ST">(m)); }));
static_assert(gradients_fit("AV", [](auto& m, symbol x) { return gs::cross_entropy(x, gs::iota<"A">(m)); }));
static_assert(gradients_fit("GSE", [](auto&, symbol x) { return gs::top2_gating(gs::softmax(x)).combine; }));
static_assert(gradients_fit("GSE", [](auto&, symbol x) { return gs::top2_gating(gs::softmax(x)).aux; }));

// A reader of a broadcast's operand contributes to the gradients with respect to the broadcast tensor and to the operand.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol p = input(b, "M"), x = input(b, "BM"), copies = gs::broadcast<"M,BM->BM">(p, x), loss = gs::sum(copies * x);
  const gs::list<symbol> d = gradients(loss, std::array{copies, p});
  const gs::node &by_copy = producer(d[0]), &sum = producer(d[1]);
  return has_dims(d[0], "BM") && by_copy.kind == op::map && by_copy.inputs == 3 && sum.kind == op::einsum && sum.input(0) == d[0].id;
}));
// Without such a request, the program is differentiated as before: the sum over the copies is taken at once.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol p = input(b, "M"), x = input(b, "BM"), copies = gs::broadcast<"M,BM->BM">(p, x);
  gradient(gs::sum(copies * x), p);
  for (const gs::node& n : b.program.nodes)
    for (int i = 0; i < n.inputs; ++i)
      if (n.input(i) == copies.id) return false;
  return true;
}));
// Verbs that take a whole gating read its slots and weights.
static_assert(fails(fault::gradient_of_gating, "chunk_of", [](builder& b, auto&) {
  const gs::gating_result gating = gs::top2_gating(gs::softmax(input(b, "GSE")));
  const gs::gating_result chunk = gs::chunk_of(gating, 0, 2);
  gradient(gs::sum(chunk.combine), gating.combine);
}));

// A tensor that is used twice gets one gradient, the sum of both.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), d = gradient(gs::sum(x * x), x);
  return producer(d).kind == op::map && producer(d).attr.function == &gs::pointwise_add;
}));
// The seed is a constant: a gradient does not wait for the value of its scalar.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), loss = gs::sum(x);
  gradient(loss, x);
  for (const gs::node& n : b.program.nodes)
    for (int i = 0; i < n.inputs; ++i)
      if (n.input(i) == loss.id) return false;
  return true;
}));
// A tensor on which the scalar does not depend has gradient zero, with its own dims. A tensor that is only counted has it as well.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), other = input(b, "BC"), d = gradient(gs::sum(x), other);
  return has_dims(d, "BC") && producer(d).inputs == 0;
}));
// Only the requested gradients are computed: no gradient of w.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), w = input(b, "BC"), y = einsum<"ab,bc->ac">(x, w);
  const int before = count(b.program, op::einsum);
  gradient(gs::sum(y), x);
  return count(b.program, op::einsum) == before + 2;  // the sum, dx
}));
// Gradients of intermediate tensors, also of a tensor that depends on no input.
static_assert(tracing::holds([](builder& b, const gs::parameter_scope& m) {
  const symbol x = input(b, "A"), h = gs::relu(x), t = gs::cast<float>(gs::iota<"A">(m));
  const gs::list<symbol> d = gradients(gs::sum(h * t), std::array{h, t});
  return producer(d[0]).inputs == 3 && producer(d[1]).inputs == 3;
}));
// The gradient of an annotated tensor has its sharding.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  const symbol d = gradient(gs::sum(gs::annotate<gs::P<gs::none, "y">>(x)), x);
  return producer(d).kind == op::annotate && d.get().layout.dim_of(1) == 1;
}));
// Dispatch and combine are each other's gradients: index operations stay index operations.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE"));
  const symbol x = input(b, "GSM"), d = gradient(gs::sum(einsum<"GSEC,GSM->EGCM">(r.dispatch, x)), x);
  return producer(d).kind == op::combine && count(b.program, op::dispatch) == 1;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE"));
  const symbol h = input(b, "EGCM");
  b.program.at(h.id).dims.set(2, r.combine.get().dims[3]);
  const symbol d = gradient(gs::sum(einsum<"GSEC,EGCM->GSM">(r.combine, h)), h);
  return producer(d).kind == op::dispatch && count(b.program, op::combine_weight_grad) == 0;
}));
// The same elements are dropped in the gradient.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = gs::dropout(x, 0.5), d = gradient(gs::sum(y), x);
  return producer(d).kind == op::dropout && producer(d).attr.key == producer(y).attr.key;
}));

static_assert(fails(fault::not_a_scalar, "gradients",
                    [](builder& b, auto&) { gradient(input(b, "A"), input(b, "A")); }));
static_assert(fails(fault::not_differentiable, "map: second derivative", [](builder& b, auto&) {
  const symbol x = input(b, "A");
  gradient(gs::sum(gradient(gs::sum(x * x * x), x)), x);
}));
// The gradient of a diagonal is zero off the diagonal.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AA");
  return has_dims(gradient(gs::sum(einsum<"aa->a">(x)), x), "AA") && count(b.program, op::iota) == 2;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AA");
  return has_dims(gradient(einsum<"aa->">(x), x), "AA");
}));

static_assert(tracing::holds([](builder&, const gs::parameter_scope& m) {
  const symbol w = m.param("w", "A", init::zeros());
  m.state("adam.m.", w);
  return gs::trainable(m).size() == 1 && gs::trainable(m)[0].id == w.id;
}));

}  // namespace
