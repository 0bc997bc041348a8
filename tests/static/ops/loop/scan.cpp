// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/remat.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::count, tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr auto add = [](symbol, symbol s, symbol x) { return s + x; };
constexpr auto doubled = [](symbol, symbol s) { return s + s; };

// A tensor, or an array of tensors: the states, then the stacked outputs.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol xs = input(b, "TAB"), x = input(b, "AB", P<"x", none>{}), ids = input(b, "TA", gs::dtype::i32);
  const symbol y = gs::scan(add, x, xs);
  const auto all = gs::scan([](symbol step, symbol s, symbol v, symbol i) { return std::tuple(s, gs::sum<"ab->b">(v), i, step); }, x,
                            std::tuple(xs, ids));
  static_assert(std::is_same_v<decltype(all), const std::array<symbol, 4>>);
  return has_dims(y, "AB") && y.get().layout == x.get().layout && has_dims(all[0], "AB") && has_dims(all[1], "TB") &&
         has_dims(all[2], "TA") && all[2].get().type == gs::dtype::i32 && has_dims(all[3], "T") && count(b.program, op::loop_begin) == 2;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  const auto [s, t] = gs::scan<3>([](symbol, symbol u, symbol v) { return std::array{v, u}; }, std::array{x, x});
  const auto [last, all] = gs::scan<3>([](symbol, symbol u) { return std::tuple(u + u, u); }, x);
  return has_dims(s, "AB") && has_dims(t, "AB") && has_dims(last, "AB") && has_dims(all, "#AB") && has_dims(gs::scan<0>(doubled, x), "AB");
}));

// Scans that are refused.
static_assert(fails(fault::dims_differ, "scan", [](builder& b, auto&) {
  gs::scan<2>([](symbol, symbol s) { return gs::sum<"ab->a">(s); }, input(b, "AB"));
}));
static_assert(tracing::wrong_type("scan", 0, "f64", "f32", [](builder& b, auto&) {
  gs::scan<2>([](symbol, symbol s) { return gs::cast<double>(s); }, input(b, "AB"));
}));
static_assert(fails(fault::dims_differ, "scan", [](builder& b, auto&) {
  gs::scan([](symbol, symbol s, symbol, symbol) { return s; }, input(b, "A"), std::array{input(b, "TA"), input(b, "SA")});
}));
static_assert(fails(fault::no_such_dim, "scan", [](builder& b, auto&) { gs::scan(add, input(b, "A"), input(b, "")); }));

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto escapes = [](auto&, auto x, auto xs) {
  symbol kept = x;
  gs::scan([&](symbol, symbol s, symbol v) { return kept = s + v; }, x, xs);
  return kept;
};
static_assert(tracing::holds([](builder& b, auto& m) {
  b.program.outputs.push_back({gs::tensor_name("y"), escapes(m, input(b, "A"), input(b, "TA")).id});
  gs::detail::check_loops(b.program);
  const bool found = b.program.problem.what == fault::used_outside_loop;
  b.program.problem = {};
  return found;
}));

// The plan does not depend on the number of steps. Unused tensors are not in it, neither outputs nor states for a gradient.
template <int Steps, bool Gradient>
inline constexpr auto iterated = [](auto&, auto x, auto w) {
  const auto [y, unused] = gs::scan<Steps>([=](symbol, symbol s) { return std::tuple(gs::einsum<"bm,mn->bn">(s, w), s * s); }, x);
  if constexpr (Gradient) {
    const auto g = gs::gradients(gs::sum(y * y), std::array{x, w});
    return std::tuple(g[0], g[1]);
  } else {
    return y;
  }
};
template <int Steps, bool Gradient>
constexpr const gs::plan_view& plan = gs::program<iterated<Steps, Gradient>, mesh, in<"BM", P<"x", none>>, in<"MM">>::plan;
constexpr const gs::plan_view &forward = plan<3, false>, &two = plan<2, true>, &thousand = plan<1000, true>;
static_assert(forward.count(op::loop_begin) == 1 && forward.count(op::carry) == 4 && forward.collectives() == 0);
static_assert(two.count(op::loop_begin) == 2 && two.steps.size() == thousand.steps.size());
// Every step adds to the gradient of w on its device. The sum over devices is taken once, after the loop, also for stacked weights.
constexpr int collectives_in_loops(const gs::plan_view& plan) {
  int depth = 0, n = 0;
  for (const gs::node& s : plan.steps) {
    depth += s.kind == op::loop_begin ? 1 : s.kind == op::loop_end ? -1 : 0;
    n += depth > 0 && gs::traits(s.kind).collective;
  }
  return n;
}
static_assert(thousand.collectives() == 1 && collectives_in_loops(thousand) == 0);
template <class Weights>
inline constexpr auto over_layers = [](auto&, auto x, auto w) {
  const auto y = gs::scan([](symbol, symbol s, symbol layer) { return gs::einsum<"bm,mn->bn">(s, layer); }, x, w);
  return gs::gradients(gs::sum(y * y), std::array{w})[0];
};
template <class Weights>
constexpr const gs::plan_view& stacked = gs::program<over_layers<Weights>, mesh, in<"BM", P<"x", none>>, in<"LMM", Weights>>::plan;
static_assert(stacked<P<none, none, none>>.collectives() == 1 && collectives_in_loops(stacked<P<none, none, none>>) == 0);
// Weights that are sharded over the batch's axis: each step gathers a layer, and scatters its gradient. No device has all layers.
static_assert(stacked<P<none, none, "x">>.count(op::reduce_scatter) == 1 && collectives_in_loops(stacked<P<none, none, "x">>) == 3);

// Saved tensors are read instead of computed again. Tensors that the gradient does not read, or that depend only on the step, are not
// saved.
template <gs::remat_policy Saved>
inline constexpr auto two_layers = [](auto&, auto x, auto w) {
  const auto y = gs::scan<4>([=](symbol t, symbol s) {
    const symbol scaled = gs::einsum<"mn,->mn">(w, gs::cast<float>(t));
    return gs::einsum<"bm,mn->bn">(gs::relu(gs::einsum<"bm,mn->bn">(s, scaled)) * s, w) + s;
  }, x, Saved);
  return gs::gradients(gs::sum(y * y), std::array{w})[0];
};
template <gs::remat_policy Saved>
constexpr const gs::plan_view& saving = gs::program<two_layers<Saved>, mesh, in<"BM", P<"x", none>>, in<"MM">>::plan;
constexpr int rows_written(const gs::plan_view& plan) {
  int n = 0;
  for (const gs::node& s : plan.steps) n += gs::writes_row(s);
  return n;
}
constexpr int products(const gs::plan_view& plan) {
  int n = 0;
  for (const gs::node& s : plan.steps) n += s.kind == op::einsum && s.inputs == 2 && s.rule.in[0].size() == 2 && s.rule.in[1].size() == 2;
  return n;
}
using gs::remat_policy;

// The tensors that a step saves for a product and a sum. The body is a remat scope. The outermost of nested scopes decides. `everything` is
// no scope.
constexpr std::size_t kept(remat_policy around, remat_policy saved, remat_policy inside) {
  builder b = tracing::on(tracing::mesh);
  const gs::parameter_scope m(b);
  const symbol w = input(b, "AB"), x = input(b, "A");
  const gs::remat outer(m, around);
  gs::scan<3>(
      [&](symbol, symbol s) {
        const gs::remat inner(m, inside);
        return gs::einsum<"b,ab->a">(gs::einsum<"a,ab->b">(s, w), w) + s;
      },
      x, saved);
  return b.failed() ? 99 : b.scans.back().saved.size();
}
constexpr remat_policy all = remat_policy::everything, products_only = remat_policy::products, nothing = remat_policy::nothing;
static_assert(kept(all, all, all) == 3 && kept(all, products_only, all) == 2 && kept(all, nothing, all) == 0);
static_assert(kept(all, all, products_only) == 2 && kept(all, all, nothing) == 0);
static_assert(kept(all, nothing, products_only) == 0 && kept(all, products_only, nothing) == 2);
static_assert(kept(nothing, all, products_only) == 0 && kept(nothing, products_only, all) == 0);
static_assert(kept(products_only, nothing, all) == 2 && kept(products_only, all, nothing) == 2);

static_assert(products(saving<remat_policy::nothing>) == 7 && rows_written(saving<remat_policy::nothing>) == 1);
static_assert(products(saving<remat_policy::products>) == 6 && rows_written(saving<remat_policy::products>) == 2);
static_assert(products(saving<remat_policy::everything>) == 6 && rows_written(saving<remat_policy::everything>) == 3);
// A product in the gradient of w keeps its operand as a partial sum: devices sum once, after the loop.
static_assert(saving<remat_policy::everything>.collectives() == 1 && collectives_in_loops(saving<remat_policy::everything>) == 0);

// A second loop has the gradient, and repeats the forward products. Stacked inputs have an unknown extent.
inline constexpr auto over_rows = [](auto& m, auto xs, auto rate) {
  const auto w = m.param("w", "MM", gs::init::zeros());
  const auto y = gs::scan([=](symbol, symbol s, symbol x) { return gs::einsum<"bm,mn->bn">(s, w) + x; }, gs::sum<"tbm->bm">(xs), xs);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
constexpr const gs::plan_view& trained = gs::program<over_rows, mesh, in<"TBM", P<none, "x", none>>, in<"">>::plan;
static_assert(trained.count(op::loop_begin) == 2 && trained.count(op::loop_end) == 2 && trained.count(op::adam) == 1);

// Second derivatives, and gradients of while loops in the body, are refused.
static_assert(fails(fault::gradient_of_loop, "while_loop", [](builder& b, auto&) {
  const symbol x = input(b, "A");
  const symbol g = gs::gradients(gs::sum(gs::scan<2>([](symbol, symbol s) { return s * s; }, x)), std::array{x})[0];
  gs::gradients(gs::sum(g), std::array{x});
}));
static_assert(fails(fault::gradient_of_loop, "while_loop", [](builder& b, auto&) {
  const symbol x = input(b, "A"), n = input(b, "");
  const symbol y = gs::scan<2>([n](symbol, symbol s) { return gs::repeat(n, [](symbol u) { return u + u; }, s); }, x);
  gs::gradients(gs::sum(y), std::array{x});
}));

}  // namespace
