// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/assumed_extents.hpp>

#include <gshard/gshard.hpp>
#include <gshard/runtime.hpp>
#include <gshard/sim/report/describe.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;

// A large table stays where it is, and a small one is gathered.
inline constexpr auto lookup = [](auto& m, auto ids) { return gs::gather(m.param("table", "V@x,M", gs::init::zeros()), ids); };
using plain = gs::program<lookup, mesh, in<"B@x,", std::int32_t>>;
using for_large = gs::program<lookup, mesh, in<"B@x,", std::int32_t>, gs::assume<'V', 1000000>>;

const gs::assumed_extent& of(const std::vector<gs::assumed_extent>& all, const std::string& name) {
  for (const gs::assumed_extent& e : all)
    if (e.name == name) return e;
  FAIL("no extent " << name);
  return all.front();
}

}  // namespace

TEST_CASE("the extents that decide are marked, and an assumed one decides as a stated one") {
  const std::vector<gs::assumed_extent> all = gs::assumed_extents<plain>();
  CHECK(all.size() == 3);
  CHECK(of(all, "V").extent == 64);
  CHECK(of(all, "V").decides);
  CHECK(of(gs::assumed_extents<for_large>(), "V").extent == 1000000);
  using stated = gs::program<lookup, mesh, in<"B@x,", std::int32_t>, gs::extent<'V', 1000000>>;
  CHECK(gs::describe(for_large::plan) == gs::describe(stated::plan));
  CHECK(gs::describe(for_large::plan) != gs::describe(plain::plan));
  CHECK(gs::assumed_extents<stated>().size() == 2);
}

TEST_CASE("a program for an assumed extent runs at any") {
  const auto cluster = gs::simulate<mesh>(4);
  for (const std::int64_t rows : {3, 1000}) {
    gs::executable<for_large> run(cluster, {{'V', rows}, {'M', 2}, {'B', 4}});
    CHECK(gs::to_global(run(std::vector<std::int32_t>{0, 1, 2, 0})) == std::vector<float>(8, 0.0f));
  }
}

TEST_CASE("plans as text have the assumed extents") {
  CHECK(contains(gs::describe<plain>(), "\n  assumes "));
  CHECK(contains(gs::describe<plain>(), "V=64*"));
  const gs::runtime_program program(lookup, "x", {"i32[B]"}, {.compile = {.assumed_axes = {2}}});
  const std::string text = gs::describe(gs::assumed_extents(program.graph(), program.mesh(), program.options()));
  CHECK(contains(text, "x=2"));
  CHECK(gs::describe(std::vector<gs::assumed_extent>{}).empty());
}
