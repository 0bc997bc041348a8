// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../run_graph.hpp"

#include <gshard/all_operations.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/index/gather.hpp>

#include <algorithm>
#include <initializer_list>

namespace gs = gshard;
namespace op = gs::op;
using gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

gs::any_cluster simulate(const std::vector<int>& mesh) {
  return {run_graph::mesh_of_rank(mesh.size()), std::make_shared<gs::simulated>(mesh)};
}

gs::sharding layout(int rank, std::initializer_list<std::pair<int, int>> cuts, unsigned pending = 0) {
  gs::sharding s = gs::sharding::replicated(rank);
  for (const auto& [dim, axis] : cuts) s[dim].push_back(axis);
  s.partial = std::uint8_t(pending);
  return s;
}

}  // namespace

// Compares the bytes that are sent with the plan, for every kind of collective. Extents are multiples of all axes, so nothing is rounded.
TEST_CASE("devices send the bytes that the plan says") {
  const run_graph::traced t =
      run_graph::trace({{"AB"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(x[0])}; });
  std::array<int, gs::most_operations> kinds{};
  for (const std::vector<int>& mesh : run_graph::meshes) {
    const int axes = int(mesh.size());
    for (const gs::dims& dims :
         {gs::dims{{'A', 36}, {'B', 48}}, gs::dims{{'A', 12}, {'B', 12}}, gs::dims{{'A', 144}, {'B', 72}}})
      for (const gs::sharding& from : run_graph::all_layouts(2, axes, true))
        for (const gs::sharding& to : run_graph::all_layouts(2, axes)) {
          const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {from, to}};
          const gs::plan_tables p = run_graph::plan(t, s);
          const gs::any_cluster on = simulate(mesh);
          gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
          for (int calls = 1; calls <= 2; ++calls) {
            run.run({});
            bool same = true;
            for (const gs::op_ref kind : gs::all_operations)
              same = same &&
                     run.received(kind).calls == calls * (kind->collective ? p.view().count(kind) : 0) &&
                     run.received(kind).bytes == calls * p.view().bytes_received(kind, run.sizes());
            if (!same) FAIL_CHECK(run_graph::text_of(s));
          }
          for (const gs::node& n : p.steps) ++kinds[std::size_t(n.kind->id)];
        }
  }
  constexpr gs::op_ref listed[]{op::slice, op::all_gather, op::all_reduce, op::reduce_scatter, op::all_to_all};
  for (const gs::op_ref kind : listed)
    CHECK(kinds[std::size_t(kind->id)] > 0);
}

TEST_CASE("a device alone sends nothing") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) {
    return symbols{run_graph::lay_out(x[0]), gs::sum(x[0])};
  });
  const gs::dims dims{{'A', 5}, {'B', 7}};
  const gs::plan_tables p = run_graph::plan(
      t, {.mesh = {1, 1}, .dims = dims, .layouts = {layout(2, {{0, 0}, {1, 1}}), layout(2, {{1, 0}})}});
  const gs::any_cluster on = simulate({1, 1});
  gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  run.run({});
  CHECK(p.view().collectives() > 0);
  for (const gs::op_ref kind : gs::all_operations) CHECK(run.received(kind).bytes == 0);
}

TEST_CASE("the hook sees every step before and after it runs") {
  const run_graph::traced t = run_graph::trace(
      {{"AB"}}, [](const scope&, given x) { return symbols{gs::sum<"AB->B">(gs::relu(x[0]))}; });
  const gs::dims dims{{'A', 4}, {'B', 3}};
  const gs::plan_tables p = run_graph::plan(t, {.mesh = {2}, .dims = dims, .layouts = {layout(2, {{0, 0}})}});
  const gs::any_cluster on = simulate({2});
  gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  std::vector<std::pair<gs::op_ref, bool>> seen, expected;
  run.hook = [&](const gs::node& n, bool begins) { seen.emplace_back(n.kind, begins); };
  run.run({});
  for (const gs::node& n : p.steps) {
    expected.emplace_back(n.kind, true);
    expected.emplace_back(n.kind, false);
  }
  CHECK(seen == expected);
}

TEST_CASE("a parameter that is not written in place holds its new value after the step") {
  // w becomes x, and v becomes the old w.
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope& m, given x) {
    const symbol w = m.param("w", "AB", gs::init::zeros()), v = m.param("v", "AB", gs::init::zeros());
    const symbol old = 1.0 * w;
    m.update(w, 1.0 * x[0]);
    m.update(v, old);
    return symbols{};
  });
  for (const std::vector<int>& mesh : run_graph::meshes)
    for (const gs::sharding& l : run_graph::all_layouts(2, int(mesh.size()))) {
      const gs::dims dims{{'A', 3}, {'B', 2}};
      const run_graph::array x{1, 2, 3, 4, 5, 6}, w{7, 8, 9, 10, 11, 12}, v(6, 0.0);
      const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {gs::sharding::replicated(2), l, l}};
      CHECK(run_graph::run(t, s, {x, w, v}) == run_graph::arrays{x, w});
    }
}

TEST_CASE("variables are updated in their memory, and are read with their old values") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope& m, given x) {
    const symbol average = m.variable("average", "AB", gs::init::zeros()), sums = m.variable("sums", "B", gs::init::zeros());
    m.update(average, 0.75 * average + 0.25 * x[0]);
    m.update(sums, sums + gs::sum("AB->B", x[0]));
    return symbols{1.0 * sums};
  });
  for (const std::vector<int>& mesh : run_graph::meshes)
    for (const gs::sharding& l : run_graph::all_layouts(2, int(mesh.size()))) {
      const gs::dims dims{{'A', 3}, {'B', 2}};
      const run_graph::array x{4, 8, 12, 16, 20, 24}, average{8, 8, 0, 0, 4, 4}, sums{1, 2};
      const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {l, l, gs::sharding::unconstrained(1)}};
      CHECK(run_graph::run(t, s, {x, average, sums}) == run_graph::arrays{sums, {7, 8, 3, 4, 8, 9}, {37, 50}});
      const gs::plan_tables p = run_graph::plan(t, s);
      CHECK(p.lifetimes[std::size_t(p.parameters[0].updated)].root == p.parameters[0].value);
      CHECK(p.lifetimes[std::size_t(p.parameters[1].updated)].root != p.parameters[1].value);  // an output is the old value
    }
}

TEST_CASE("a run that fails changes no variable") {
  const run_graph::traced t = run_graph::trace({{"AC"}, {"B", gs::dtype::i32, 'A'}}, [](const scope& m, given x) {
    const symbol v = m.variable("v", "AC", gs::init::zeros());
    m.update(v, v + x[0]);
    return symbols{gs::gather(x[0], x[1])};
  });
  const gs::any_cluster on = simulate({2});
  gs::parameter_store store(on);
  const run_graph::setting s{.mesh = {2}, .dims = {{'A', 4}, {'B', 3}, {'C', 2}}, .layouts = {layout(2, {}), layout(1, {}), layout(2, {})}};
  const gs::plan_tables p = run_graph::plan(t, s);
  gs::executor run(p.view(), gs::all_kernels, on, s.dims, store);
  for (std::size_t d = 0; d < 2; ++d) {
    std::fill_n(run.input(0).as<double>(d), run.input(0).elements(d), 1.0);
    std::fill_n(run.input(1).as<std::int32_t>(d), run.input(1).elements(d), 9);
  }
  CHECK_THROWS_AS(run.run({}), gs::error);
  const double* const v = store.find("v")->value.as<double>(0);
  CHECK(std::all_of(v, v + store.find("v")->value.elements(0), [](double number) { return number == 0; }));
}

TEST_CASE("errors are thrown when the program is bound, or by the step that finds them") {
  const run_graph::traced t =
      run_graph::trace({{"AC"}, {"B", gs::dtype::i32, 'A'}},
                       [](const scope&, given x) { return symbols{gs::gather(x[0], x[1])}; });
  const run_graph::setting s{
      .mesh = {2}, .dims = {{'A', 4}, {'B', 3}, {'C', 2}}, .layouts = {layout(2, {}), layout(1, {})}};
  const gs::plan_tables p = run_graph::plan(t, s);
  const gs::any_cluster on = simulate({2});
  gs::parameter_store store(on);
  CHECK_THROWS_WITH_AS(gs::executor(p.view(), gs::all_kernels, on, gs::dims{{'A', 4}, {'C', 2}}, store),
                       "program: dim 'B' is given no extent", gs::error);
  const auto refuses = [&](const gs::dims& sizes, const char* why) {
    CHECK_THROWS_WITH_AS(gs::executor(p.view(), gs::all_kernels, on, sizes, store), why, gs::error);
  };
  refuses({{'A', -4}, {'B', 3}, {'C', 2}}, "program: dim 'A' is given the extent -4");
  refuses({{'A', 4}, {'B', 3}, {'C', 2}, {'A', 5}}, "program: dim 'A' is given two extents");
  refuses({{'A', std::int64_t(1) << 40}, {'B', 3}, {'C', std::int64_t(1) << 40}},
          "program: the input AC has 1099511627776 x 1099511627776 elements, more than can be counted");
  const gs::any_cluster other(gs::mesh<gs::axis<"z">>::shape,
                              std::make_shared<gs::simulated>(std::vector{2}));
  CHECK_THROWS_WITH_AS(gs::executor(p.view(), gs::all_kernels, other, s.dims, gs::parameter_store(other)),
                       "program: the cluster has no mesh axis called \"x\"", gs::error);
  CHECK_THROWS_WITH_AS(run_graph::run(t, s, {run_graph::array(8, 0.0), {0, 4, 1}}),
                       doctest::Contains("id 4 at position 1 is outside a table of 4 rows"), gs::error);
}

TEST_CASE("memory is used again: a chain of steps needs no more than three tensors") {
  const run_graph::traced t = run_graph::trace({{"A"}}, [](const scope&, given x) {
    symbol y = x[0];
    for (int i = 0; i < 30; ++i) y = gs::relu(y);
    return symbols{y};
  });
  const gs::dims dims{{'A', 1000}};
  const gs::plan_tables p = run_graph::plan(t, run_graph::serial(t, dims));
  const gs::any_cluster on = simulate({1});
  const gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  CHECK(run.arena_bytes() <= 3 * 8064);
}
