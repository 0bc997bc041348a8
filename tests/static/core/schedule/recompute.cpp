// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/schedule/recompute.hpp>

#include <gshard/models/transformer.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P, gs::remat_policy;

namespace {

template <remat_policy Saved>
constexpr auto three_layers = [](auto& m, auto x, auto rate) {
  auto y = x;
  for (int i = 0; i < 3; ++i) {
    const auto layer = m.scope(i);
    const gs::remat recomputed(layer, Saved);
    y = y + gs::dropout(gs::nn::feed_forward(layer, gs::nn::norm(layer, y)), 0.1);
  }
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"model">>;
template <auto Model>
using planned = gs::program<Model, mesh, gs::in<"GBTM", P<"model", none, none, none>>, gs::in<"">>;
template <remat_policy Saved>
using plan_with = planned<three_layers<Saved>>;
template <remat_policy Saved>
using with_sums = gs::program<three_layers<Saved>, mesh, gs::in<"GBTM", P<none, none, none, "model">>, gs::in<"">>;

constexpr int repeated(const gs::plan_view& p, gs::op_ref kind = op::none) {
  int n = 0;
  for (const gs::node& s : p.steps) n += s.place.recomputed && (kind == op::none || performs(s, kind));
  return n;
}
/// True if each value is computed before it is read, by the step that is recorded as its producer.
constexpr bool in_order(const gs::plan_view& p) {
  gs::list<char> made(p.values.size(), 0);
  for (const gs::port& q : p.inputs) made[std::size_t(q.value)] = 1;
  for (const gs::parameter& q : p.parameters) made[std::size_t(q.value)] = 1;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const gs::node& n = p.steps[i];
    for (int k = 0; k < n.inputs; ++k)
      if (!made[std::size_t(n.input(k))]) return false;
    for (int o = 0; o < n.outputs; ++o) {
      if (p.at(n.output(o)).producer != std::int32_t(i)) return false;
      made[std::size_t(n.output(o))] = 1;
    }
  }
  return true;
}
/// The number of tensors that stay in memory from the forward to the backward pass. A tensor of a scope that is not read after it is in
/// memory in only one of both.
constexpr int kept_for_gradient(const gs::plan_view& p) {
  std::int32_t backward = 0;
  while (!p.steps[std::size_t(backward)].place.gradient) ++backward;
  int n = 0;
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const gs::lifetime& l = p.lifetimes[v];
    n += l.root == std::int32_t(v) && !l.persistent && l.first >= 0 && l.first < backward && l.last > backward;
  }
  return n;
}
/// The number of reads of a parameter after it was overwritten.
constexpr int late_reads(const gs::plan_view& p) {
  gs::list<char> overwritten(p.values.size(), 0);
  int n = 0;
  for (const gs::node& s : p.steps) {
    for (int k = 0; k < s.inputs; ++k) n += overwritten[std::size_t(s.input(k))];
    for (int o = 0; o < s.in_place; ++o) overwritten[std::size_t(s.input(o))] = 1;
  }
  return n;
}

}  // namespace

// Without scopes nothing runs again. With scopes, only the inputs of layers are kept, and each gradient recomputes what it reads.
static_assert(repeated(plan_with<remat_policy::everything>::plan) == 0);
static_assert(repeated(plan_with<remat_policy::nothing>::plan, op::layer_norm) == 3 &&
              repeated(plan_with<remat_policy::nothing>::plan, op::einsum) == 3);
static_assert(repeated(plan_with<remat_policy::nothing>::plan, op::dropout) == 0);  // its gradient reads only its random numbers
static_assert(in_order(plan_with<remat_policy::nothing>::plan) && late_reads(plan_with<remat_policy::nothing>::plan) == 0);
static_assert(kept_for_gradient(plan_with<remat_policy::nothing>::plan) < kept_for_gradient(plan_with<remat_policy::products>::plan));
static_assert(kept_for_gradient(plan_with<remat_policy::products>::plan) < kept_for_gradient(plan_with<remat_policy::everything>::plan));

// Results of products, and of collectives, are kept if the policy says so.
static_assert(repeated(plan_with<remat_policy::products>::plan, op::einsum) == 0 && repeated(plan_with<remat_policy::products>::plan) > 0);
static_assert(repeated(with_sums<remat_policy::nothing>::plan, op::all_reduce) > 0);
static_assert(repeated(with_sums<remat_policy::collectives>::plan, op::all_reduce) == 0 &&
              repeated(with_sums<remat_policy::collectives>::plan) > 0);
static_assert(in_order(with_sums<remat_policy::nothing>::plan) && late_reads(with_sums<remat_policy::nothing>::plan) == 0);

// Plans differ only in the repeated steps.
static_assert(int(plan_with<remat_policy::nothing>::plan.steps.size()) - repeated(plan_with<remat_policy::nothing>::plan) ==
              int(plan_with<remat_policy::everything>::plan.steps.size()));

namespace {

// The second product is read after its scope, so it is kept. The gradient of w needs the first one again, before w is updated.
constexpr auto read_later = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "MN", gs::init::zeros()), v = m.param("v", "NM", gs::init::zeros());
  gs::symbol first, second;
  {
    const gs::remat recomputed(m);
    first = gs::relu(gs::einsum<"GBTM,MN->GBTN">(x, w));
    second = gs::einsum<"GBTN,NM->GBTM">(first, v);
  }
  const auto loss = gs::sum(second * second);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
// Loops are not recomputed, neither in a scope nor around its readers.
constexpr auto with_loop = [](auto& m, auto x, auto rate) {
  const gs::remat recomputed(m);
  const auto w = m.param("w", "M", gs::init::zeros());
  const auto y = gs::repeat(rate, [](gs::symbol s) { return s + s; }, gs::stop_gradient(x + x));
  const auto loss = gs::sum(gs::broadcast<"M,GBTM->GBTM">(w, y) * y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};

}  // namespace

static_assert(repeated(planned<read_later>::plan, op::einsum) == 1 && late_reads(planned<read_later>::plan) == 0);
static_assert(in_order(planned<read_later>::plan));
static_assert(repeated(planned<with_loop>::plan, op::carry) == 0 && in_order(planned<with_loop>::plan));

// A forward pass alone repeats nothing.
static_assert(repeated(gs::program<[](auto& m, auto x) {
                const gs::remat recomputed(m);
                return gs::relu(x) * x;
              }, mesh, gs::in<"A", P<none>>>::plan) == 0);
