// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/fingerprint.hpp>

#include "run_graph.hpp"

#include <gshard/trace/einsum.hpp>

#include <doctest/doctest.h>

#include <span>

namespace gs = gshard;

TEST_CASE("plans that differ in anything have different fingerprints") {
  const auto traced = run_graph::trace({{"AB"}, {"BC"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    return gs::list<gs::symbol>{gs::einsum<"ab,bc->ac">(x[0], x[1])};
  });
  const gs::sharding whole = gs::sharding::replicated(2);
  gs::sharding rows = whole;
  rows[0].push_back(0);
  const run_graph::setting s{.mesh = {2}, .dims = {{'A', 4}, {'B', 4}, {'C', 4}}, .layouts = {rows, whole}};
  run_graph::setting other = s;
  other.layouts = {whole, rows};
  gs::plan_tables plan = run_graph::plan(traced, s);
  CHECK(gs::fingerprint_of(plan.view()) == gs::fingerprint_of(run_graph::plan(traced, s).view()));
  CHECK(gs::fingerprint_of(plan.view()) != gs::fingerprint_of(run_graph::plan(traced, other).view()));
  const auto before = gs::fingerprint_of(plan.view());
  plan.steps.back().attr.number[0] += 1;
  CHECK(gs::fingerprint_of(plan.view()) != before);
}
