// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes and reads the plans of random programs.
#include "../../effort.hpp"
#include "../../exec/random_program.hpp"
#include "../../exec/random_program_seeds.hpp"
#include "../../exec/random_program_writer.hpp"
#include "functions_of_plan.hpp"

#include <gshard/io/plan/plan_file.hpp>
#include <gshard/sim/report/describe.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gs = gshard;

namespace {

bool same_lifetimes(const gs::plan_view& a, const gs::plan_view& b) {
  bool same = a.lifetimes.size() == b.lifetimes.size();
  for (std::size_t v = 0; same && v < a.lifetimes.size(); ++v) {
    const gs::lifetime &x = a.lifetimes[v], &y = b.lifetimes[v];
    same = x.root == y.root && x.first == y.first && x.last == y.last && x.persistent == y.persistent &&
           a.values[v].producer == b.values[v].producer;
  }
  return same;
}

}  // namespace

TEST_CASE("the plans of random programs are the same after they are written and read") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(300u, 2u));
  for (std::uint32_t seed = seeds.first; seed < seeds.end(); ++seed) {
    CAPTURE(seed);
    const random_program::recipe r = random_program::written(seed);
    const on_mesh::prepared p = on_mesh::prepare(r.on, random_program::inputs_of(r), random_program::model_of(r));
    const gs::plan_tables made = run_graph::plan(p.program, p.setting);
    const gs::plan_functions functions = functions_of(made.view());
    const std::string text = gs::plan_text(made.view(), functions);
    const gs::runtime_plan read = gs::parse_plan(text, "test", functions);
    REQUIRE(gs::plan_text(read.plan(), functions) == text);
    REQUIRE(gs::describe(read.plan()) == gs::describe(made.view()));
    REQUIRE(same_lifetimes(read.plan(), made.view()));
  }
}
