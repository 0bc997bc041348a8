// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops with a run-time trip count, in all shardings of their carried values, compared with plain loops on one device.
#include "run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/roll.hpp>

#include <cmath>
#include <set>
#include <tuple>

namespace gs = gshard;
using gs::sqrt, gs::tanh;
using gs::symbol;
using run_graph::array, run_graph::arrays, run_graph::serially, run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> loop_sizes{{{'A', 6}, {'B', 12}}, {{'A', 5}, {'B', 7}}, {{'A', 1}, {'B', 2}}};

/// The outputs of one run on one device.

/// x after `count` iterations of Newton's iteration for the square root of a.
symbol newton(symbol a, symbol count) {
  return gs::repeat(count, [a](symbol y) { return 0.5 * (y + a / y); }, a);
}

/// The eigenvector of the largest eigenvalue of w, starting from x, and the number of iterations until convergence.
std::array<symbol, 3> power_iteration(symbol w, symbol x, symbol tolerance) {
  const auto goes_on = [tolerance](symbol, symbol change, symbol) { return gs::less(tolerance, change); };
  const auto turn = [w](symbol v, symbol, symbol turns) {
    const symbol y = gs::einsum<"ab,b->a">(w, v);
    const symbol next = gs::map<[](auto a, auto square) { return a / sqrt(square); }>(y, gs::sum(y * y)), change = next - v;
    return std::tuple(next, gs::sum(change * change), gs::map<[](auto n) { return n + 1; }>(turns));
  };
  const symbol much = gs::map<[](auto t) { return t + 1; }>(tolerance);
  return gs::while_loop(goes_on, turn, x, much, tolerance - tolerance);
}

}  // namespace

TEST_CASE("a loop is a plain loop") {
  const auto t = trace({{"A"}, {""}}, [](const scope&, given x) { return symbols{newton(x[0], x[1])}; });
  for (const double count : {-1.0, 0.0, 1.0, 4.0, 4.5}) {
    const array a{2, 3, 5.5, 0.25, 9};
    array y = a;
    for (int i = 0; i < count; ++i)
      for (std::size_t k = 0; k < y.size(); ++k) y[k] = 0.5 * (y[k] + a[k] / y[k]);
    CHECK(serially(t, {{'A', 5}}, {a, {count}})[0] == y);
  }
}

TEST_CASE("a count may be an integer") {
  const auto t = trace({{"A"}, {"", gs::dtype::i32}}, [](const scope&, given x) {
    return symbols{gs::repeat(x[1], [](symbol y) { return y + y; }, x[0])};
  });
  for (const int count : {0, 1, 5})
    CHECK(serially(t, {{'A', 2}}, {{1, 3}, {double(count)}})[0] == array{std::ldexp(1.0, count), std::ldexp(3.0, count)});
}

TEST_CASE("a loop ends when its condition is false") {
  const auto t = trace({{"AA"}, {"A"}, {""}}, [](const scope&, given x) {
    const auto [v, change, turns] = power_iteration(x[0], x[1], x[2]);
    return symbols{v, change, turns};
  });
  const array w{4, 1, 0, 1, 3, 1, 0, 1, 2};
  array v{1, 1, 1};
  double change = 2;
  int turns = 0;
  for (; 1e-12 < change; ++turns) {
    array y(3, 0.0);
    double square = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 3; ++k) y[i] += w[3 * i + k] * v[k];
      square += y[i] * y[i];
    }
    change = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      y[i] /= std::sqrt(square);
      change += (y[i] - v[i]) * (y[i] - v[i]);
    }
    v = y;
  }
  CHECK(turns > 5);
  const arrays found = serially(t, {{'A', 3}}, {w, {1, 1, 1}, {1e-12}});
  CHECK(found[2] == array{double(turns)});
  for (std::size_t i = 0; i < 3; ++i) CHECK(found[0][i] == doctest::Approx(v[i]));
  // No iteration: the result is the initial value.
  CHECK(serially(t, {{'A', 3}}, {w, {5, 6, 7}, {INFINITY}})[0] == array{5, 6, 7});
}

TEST_CASE("Newton's iteration, in every layout") {
  for (const double count : {0, 1, 5}) {
    const auto t = trace({{"AB"}, {""}}, [](const scope&, given x) { return symbols{lay_out(newton(x[0], x[1]))}; });
    every_sharding(t, {.dims = loop_sizes, .tolerance = 1e-14, .prepare = [count](arrays& x) {
                         for (double& a : x[0]) a = 1 + std::abs(a);
                         x[1] = {count};
                       }});
  }
}

TEST_CASE("power iteration, in every layout") {
  const auto t = trace({{"AA"}, {"A"}, {""}}, [](const scope&, given x) {
    const auto [v, change, turns] = power_iteration(x[0], lay_out(x[1]), x[2]);
    return symbols{lay_out(v), turns};
  });
  const auto prepare = [](arrays& x) {
    const auto n = x[1].size();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k) x[0][n * i + k] = i == k ? 2.0 + double(i) : 0.25;
    x[1].assign(n, 1.0);
    x[2] = {1e-10};
  };
  every_sharding(t, {.dims = loop_sizes, .tolerance = 1e-9, .most = 400, .prepare = prepare});
  // The matrix is sent block by block in every iteration.
  every_sharding(
      t,
      {.dims = loop_sizes, .tolerance = 1e-9, .most = 200, .options = {.known = {}, .uneven = true, .loop_bytes = 0}, .prepare = prepare});
}

TEST_CASE("carried values that are exchanged, and sums that are partial at the end of an iteration") {
  const auto t = trace({{"A"}, {"A"}, {"AB"}, {""}}, [](const scope&, given x) {
    const auto [a, b, c] = gs::repeat(
        x[3],
        [&](symbol u, symbol v, symbol sum) {
          return std::array{lay_out(v), u, gs::map<[](auto s, auto p) { return s / 2 + p; }>(sum, gs::sum<"ab->a">(x[2])) + u};
        },
        x[0], x[1], x[0]);
    return symbols{a, b, c};
  });
  for (const double count : {0, 3, 4})
    every_sharding(t, {.dims = loop_sizes, .pending_sources = true, .most = 300, .prepare = [count](arrays& x) { x[3] = {count}; }});
}

TEST_CASE("loops in loops") {
  const auto t = trace({{"AB"}, {"B"}, {""}, {""}}, [](const scope&, given x) {
    const auto turn = [&](symbol outer, symbol inner_turns) {
      // The inner loop needs w, which no iteration changes, and the sum, which the outer loop changes.
      const symbol total = gs::einsum<"ab->b">(outer);
      const symbol inner = gs::repeat(
          inner_turns, [&](symbol s) { return lay_out(0.5 * s + gs::einsum<"ab,b->ab">(s, x[1]) + total); }, outer);
      return std::tuple(gs::map<[](auto v) { return v / 4; }>(inner), gs::map<[](auto n) { return n - 1; }>(inner_turns));
    };
    const auto [y, left] = gs::repeat(x[2], turn, x[0], x[3]);
    return symbols{lay_out(y), left, gs::einsum<"ab,b->a">(y, x[1])};
  });
  for (const auto& [outer, inner] : {std::pair{0, 3}, {1, 0}, {3, 2}})
    every_sharding(t, {.dims = loop_sizes, .tolerance = 1e-13, .most = 300, .prepare = [o = outer, i = inner](arrays& x) {
                         x[2] = {double(o)};
                         x[3] = {double(i)};
                       }});
}

TEST_CASE("any operation in a body") {
  const auto t = trace({{"AB"}, {"B"}, {"AB", gs::dtype::i32, 'A'}, {""}}, [](const scope&, given x) {
    const auto turn = [&](symbol s, symbol ids, symbol most) {
      const symbol rows = gs::softmax(gs::layer_norm(s, x[1], x[1]));
      const symbol rolled = gs::cumsum(gs::roll(rows, 1, 1), 0);
      const symbol seen = gs::logsumexp<"ab->">(rolled);
      return std::tuple(rolled + gs::cast(ids, gs::dtype::f64), gs::roll(ids, 0, 1),
                        gs::map<[](auto a, auto b) { return a < b ? b : a; }>(most, seen));
    };
    const auto [s, ids, most] = gs::repeat(x[3], turn, x[0], x[2], x[3]);
    return symbols{lay_out(s), ids, most};
  });
  every_sharding(t, {.dims = loop_sizes, .tolerance = 1e-11, .most = 200, .prepare = [](arrays& x) { x[3] = {3}; }});
}

TEST_CASE("every iteration draws its own random numbers, the same in every sharding") {
  const auto t = trace({{"AB"}, {""}}, [](const scope&, given x) {
    return symbols{lay_out(gs::repeat(
        x[1], [](symbol s) { return s + s + gs::dropout(gs::map<[](auto v) { return v - v + 1; }>(s), 0.5); }, x[0]))};
  });
  every_sharding(t, {.dims = loop_sizes, .most = 200, .prepare = [](arrays& x) { x[1] = {4}; }});
  // A mask per iteration, as bits of a number: equal masks would make all numbers equal to 0 or 2 * 15.
  const arrays found = serially(t, {{'A', 8}, {'B', 8}}, {array(64, 0.0), {4}});
  std::set<double> masks(found[0].begin(), found[0].end());
  CHECK(masks.size() > 8);
}

TEST_CASE("every iteration of nested loops draws its own random numbers") {
  // An iteration adds its dropout mask times a power of two: the bits of a sum are the masks of the iterations.
  constexpr int turns = 3;
  run_graph::traced t = trace({{"A"}, {"A"}, {""}, {""}}, [](const scope&, given x) {
    const auto inner = [&](symbol sum, symbol power) {
      return std::array{sum + gs::dropout(x[1], 0.5) * power, power + power};
    };
    return symbols{gs::repeat(x[2], [&](symbol sum, symbol power) { return gs::repeat(x[2], inner, sum, power); }, x[0], x[3])[0]};
  });
  const gs::dims dims{{'A', 32}};
  const run_graph::array found =
      run_graph::run(t, run_graph::serial(t, dims), {run_graph::array(32, 0), run_graph::array(32, 0.5), {turns}, {1}})[0];
  std::set<std::uint64_t> masks;
  for (int k = 0; k < turns * turns; ++k) {
    std::uint64_t mask = 0;
    for (const double v : found) mask = 2 * mask + ((std::uint64_t(v) >> k) & 1);
    masks.insert(mask);
  }
  CHECK(masks.size() == std::size_t(turns * turns));
}

TEST_CASE("loop-invariant tensors are resharded once, before the loop") {
  const auto t = trace({{"AB"}, {"AB"}, {""}}, [](const scope&, given x) {
    return symbols{gs::repeat(x[2], [&](symbol s) { return 0.5 * s + x[1]; }, x[0])};
  });
  run_graph::setting s{.mesh = {2}, .dims = {{'A', 4}, {'B', 6}}, .layouts = {}};
  for (int i = 0; i < 3; ++i) s.layouts.push_back(gs::sharding::replicated(t.graph.at(t.free[std::size_t(i)]).rank()));
  s.layouts[0][0].push_back(0);
  s.layouts[1][1].push_back(0);
  const gs::plan_tables p = run_graph::plan(t, s);
  std::size_t begin = 0, end = 0, moves = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    if (p.steps[i].kind == gs::op::loop_begin) begin = i;
    if (p.steps[i].kind == gs::op::loop_end) end = i;
    if (!gs::traits(p.steps[i].kind).collective) continue;
    ++moves;
    CHECK(begin == 0);
    const gs::lifetime& l = p.lifetimes[std::size_t(p.steps[i].output())];
    CHECK(l.first == int(i));
    CHECK(p.values[std::size_t(p.steps[i].output())].producer == int(i));
  }
  CHECK(moves == 1);
  CHECK(end > begin);
  for (std::size_t i = 0; i < begin; ++i)
    if (gs::traits(p.steps[i].kind).collective) CHECK(p.lifetimes[std::size_t(p.steps[i].output())].last == int(end));
}

TEST_CASE("a loop receives the bytes of all iterations") {
  const auto t = trace({{"AB"}, {""}}, [](const scope&, given x) {
    return symbols{gs::repeat(x[1], [](symbol s) { return s + gs::map<[](auto a, auto b) { return a - a + b; }>(s, gs::sum(s)); }, x[0])};
  });
  run_graph::setting s{.mesh = {4}, .dims = {{'A', 8}, {'B', 4}}, .layouts = {gs::sharding::replicated(2), gs::sharding::replicated(0)}};
  s.layouts[0][0].push_back(0);
  const gs::plan_tables p = run_graph::plan(t, s);
  const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(p.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  const std::int64_t once = p.view().bytes_received(e.sizes());
  CHECK(once > 0);
  int began = 0;
  e.hook = [&](const gs::node& step, bool before) { began += before && step.kind == gs::op::loop_begin; };
  for (const int turns : {0, 1, 3}) {
    const std::int64_t before = e.received(gs::op::all_reduce).bytes, calls = e.received(gs::op::all_reduce).calls;
    run_graph::scatter(on, e.input(0), array(32, 1.0));
    run_graph::scatter(on, e.input(1), {double(turns)});
    e.run({.seed = 1, .step = 0});
    CHECK(e.received(gs::op::all_reduce).bytes - before == turns * once);
    CHECK(e.received(gs::op::all_reduce).calls - calls == turns);
  }
  CHECK(began == 3);
}

TEST_CASE("copies of a condition that differ are told, and later runs are as before") {
  const auto t = trace({{"A"}, {""}}, [](const scope&, given x) { return symbols{newton(x[0], x[1])}; });
  const run_graph::setting s{.mesh = {3}, .dims = {{'A', 2}}, .layouts = {gs::sharding::replicated(1), gs::sharding::replicated(0)}};
  const gs::plan_tables p = run_graph::plan(t, s);
  const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(p.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  for (int again = 0; again < 2; ++again) {
    run_graph::scatter(on, e.input(0), {4, 4});
    run_graph::scatter(on, e.input(1), {1});
    CHECK_NOTHROW(e.run({}));
    CHECK(run_graph::collect(on, e.output(0)) == array{2.5, 2.5});
    run_graph::scatter(on, e.input(1), {1});
    e.input(1).as<double>(2)[0] = 5;
    CHECK_THROWS_WITH_AS(e.run({}), "while_loop: devices hold different copies of the condition", gs::error);
  }
}
