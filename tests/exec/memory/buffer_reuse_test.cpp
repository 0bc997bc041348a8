// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/memory/buffer_reuse.hpp>

#include "../run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::symbol;
using scope = gs::parameter_scope;
using given = std::span<const symbol>;
using symbols = gs::list<symbol>;

namespace {

/// A plan on some simulated devices, and the buffers that its steps may reuse.
struct shared {
  gs::any_cluster on;
  gs::plan_tables plan;
  gs::plan_view view;
  gs::executor run;
  gs::detail::bound_plan bound;
  gs::list<gs::async_interval> schedule;
  gs::detail::buffer_reuse sharing;

  shared(const run_graph::traced& t, const gs::dims& dims, std::vector<int> mesh, std::vector<gs::sharding> layouts)
      : on{run_graph::mesh_of_rank(mesh.size()), std::make_shared<gs::simulated>(mesh)},
        plan(run_graph::plan(t, {.mesh = mesh, .dims = dims, .layouts = layouts})),
        view(plan.view()),
        run(view, gs::all_kernels, on, dims, gs::parameter_store(on)),
        bound(bind(dims)),
        schedule(gs::async_schedule(view, bound.sizes)),
        sharing(bound, schedule) {}

  gs::detail::bound_plan bind(const gs::dims& dims) const {
    gs::detail::bound_plan all(view, on);
    all.bind(dims);
    return all;
  }
  /// The only step of a kind.
  std::size_t step(gs::op_ref kind) const {
    std::size_t at = plan.steps.size();
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      if (plan.steps[i].kind == kind) at = i;
    REQUIRE(at < plan.steps.size());
    return at;
  }
  bool writes_over(std::size_t step, int operand) const {
    const gs::node& n = plan.steps[step];
    return run.value(n.output()).data == run.value(n.input(operand)).data;
  }
};

gs::sharding whole(int rank) { return gs::sharding::replicated(rank); }

}  // namespace

TEST_CASE("a result is written over an operand that nobody reads any more") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) { return symbols{gs::softmax(gs::relu(x[0]))}; });
  const shared s(t, {{'A', 8}, {'B', 6}}, {1}, {whole(2)});
  CHECK(s.writes_over(s.step(op::map), 0));
  CHECK(s.writes_over(s.step(op::softmax), 0));
  CHECK(s.run.arena_bytes() == 8 * 6 * 8);  // one buffer
}

TEST_CASE("an operand that is needed later, or an output, stays") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) {
    const symbol y = gs::softmax(x[0]);
    return symbols{y, gs::softmax(y) + x[0]};
  });
  const shared s(t, {{'A', 8}, {'B', 6}}, {1}, {whole(2)});
  for (std::size_t i = 0; i < s.plan.steps.size(); ++i)
    if (s.plan.steps[i].kind == op::softmax) CHECK(!s.writes_over(i, 0));
}

TEST_CASE("broadcast operands are not written over") {
  const run_graph::traced t = run_graph::trace(
      {{"AB"}, {"B"}}, [](const scope&, given x) { return symbols{gs::map<[](auto a, auto b) { return a - b; }>(x[1], x[0])}; });
  const shared s(t, {{'A', 1}, {'B', 6}}, {1}, {whole(2), whole(1)});
  CHECK(!s.writes_over(s.step(op::map), 0));
  CHECK(s.writes_over(s.step(op::map), 1));
}

TEST_CASE("products of experts run expert by expert, with what is done between them, forward and back") {
  const run_graph::traced t = run_graph::trace({{"ECM"}, {"EMF"}, {"EFM"}}, [](const scope&, given x) {
    const symbol y = gs::einsum<"ECF,EFM->ECM">(gs::relu(gs::einsum<"ECM,EMF->ECF">(x[0], x[1])), x[2]);
    symbols results{y};
    for (const symbol& g : gs::gradients(gs::sum(y * y), std::array{x[0], x[1], x[2]})) results.push_back(g);
    return results;
  });
  const auto groups = [&](std::vector<int> mesh, std::vector<gs::sharding> layouts, std::int64_t experts) {
    const shared s(t, {{'E', experts}, {'C', 6}, {'M', 4}, {'F', 5}}, mesh, layouts);
    int products = 0;
    for (std::size_t i = 0; i < s.plan.steps.size(); i = s.sharing.group_end(i, 0)) {
      int here = 0;
      for (std::size_t j = i; j < s.sharing.group_end(i, 0); ++j) here += s.plan.steps[j].kind == op::einsum && s.plan.steps[j].inputs == 2;
      products = std::max(products, here);
      if (here > 1) CHECK(s.sharing.pieces(i, 0) == experts / mesh[0]);
    }
    return products;
  };
  CHECK(groups({1}, {whole(3), whole(3), whole(3)}, 6) == 4);
  gs::sharding experts = whole(3);
  experts[0].push_back(0);
  CHECK(groups({2}, {experts, experts, experts}, 6) == 4);
}

TEST_CASE("a product whose result does not begin with a batch runs alone") {
  const run_graph::traced t = run_graph::trace(
      {{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{gs::relu(gs::einsum<"AB,BC->AC">(x[0], x[1]))}; });
  const shared s(t, {{'A', 6}, {'B', 6}, {'C', 6}}, {1}, {whole(2), whole(2)});
  CHECK(s.sharing.group_end(0, 0) == 1);
  CHECK(s.writes_over(1, 0));
}

TEST_CASE("x - x w is not written over x, which the product still reads") {
  const run_graph::traced t = run_graph::trace({{"GAB"}, {"GBB"}}, [](const scope&, given x) {
    const symbol y = gs::einsum<"GAB,GBC->GAC">(x[0], x[1]);
    return symbols{gs::map<[](auto a, auto b) { return a - b; }>(x[0], y)};
  });
  const shared s(t, {{'G', 3}, {'A', 4}, {'B', 5}}, {1}, {whole(3), whole(3)});
  const std::size_t last = s.step(op::map);
  CHECK(s.sharing.group_end(0, 0) == last + 1);
  CHECK(!s.writes_over(last, 0));
  CHECK(s.writes_over(last, 1));
}

TEST_CASE("moves in groups of one device are no steps, sums are completed in place") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(1.0 * x[0])}; });
  gs::sharding rows = whole(2), cols = whole(2);
  rows[0].push_back(0);
  cols[1].push_back(0);
  for (const int devices : {1, 2}) {
    CAPTURE(devices);
    const shared s(t, {{'A', 4}, {'B', 6}}, {devices}, {rows, cols});
    const std::size_t move = s.step(op::all_to_all);
    CHECK(s.sharing.stays(s.plan.steps[move]) == (devices == 1));
    CHECK(s.writes_over(move, 0) == (devices == 1));
  }
  const run_graph::traced sums =
      run_graph::trace({{"AB"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(gs::sum<"AB->B">(x[0]))}; });
  const shared s(sums, {{'A', 4}, {'B', 6}}, {2}, {rows, whole(1)});
  CHECK(s.writes_over(s.step(op::all_reduce), 0));
}

TEST_CASE("what runs together on a device does not depend on the other devices of its process") {
  const run_graph::traced t = run_graph::trace({{"GAB"}, {"GBC"}}, [](const scope&, given x) {
    return symbols{gs::relu(gs::einsum<"GAB,GBC->GAC">(x[0], x[1]))};
  });
  gs::sharding batch = whole(3);
  batch[0].push_back(0);
  const shared s(t, {{'G', 3}, {'A', 4}, {'B', 5}, {'C', 2}}, {2}, {batch, batch});
  const std::size_t product = s.step(op::einsum);
  CHECK(s.sharing.group_end(product, 0) == product + 2);  // two products
  CHECK(s.sharing.group_end(product, 1) == product + 1);  // one product
}
