// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/running_loops.hpp>

#include "../run_graph.hpp"

#include <gshard/core/trace/map.hpp>
#include <gshard/ops/loop/loop.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace gs = gshard;

TEST_CASE("the steps of a body run once per iteration, each time with another seed") {
  const run_graph::traced t = run_graph::trace({{""}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    const auto goes_on = [](gs::symbol y) { return gs::map<[](auto a) { return 3 - a; }>(y); };
    const auto grown = gs::while_loop(goes_on, [](gs::symbol y) { return gs::map<[](auto a) { return a + 1; }>(y); }, x[0]);
    return gs::list<gs::symbol>{grown};
  });
  const gs::plan_tables p = run_graph::plan(t, run_graph::serial(t, {}));
  const gs::plan_view& plan = p.view();
  gs::detail::running_loops loops(plan);
  for (const int iterations : {0, 1, 3}) {
    loops.begin_run();
    std::uint64_t seed = 7;
    int asked = 0, ends = 0;
    std::set<std::uint64_t> seeds;
    for (std::size_t i = 0; i < plan.steps.size(); i = loops.after(i, plan.steps[i], seed, [&](const gs::node&) {
           CHECK(loops.iterations() == std::uint64_t(asked));
           return asked++ < iterations;
         })) {
      ends += gs::traits(plan.steps[i].kind).nesting < 0;
      seeds.insert(seed);
    }
    CHECK(asked == iterations + 1);
    CHECK(ends == iterations);
    CHECK(seeds.size() == std::size_t(iterations) + 1);
    CHECK(seed == 7);
  }
}
