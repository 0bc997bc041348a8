// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/runtime/runtime_plan.hpp>

#include <gshard/core/trace/map.hpp>
#include <gshard/runtime/runtime_program.hpp>

#include <doctest/doctest.h>

#include <utility>

namespace gs = gshard;

TEST_CASE("a plan lives as long as a copy of its handle") {
  gs::plan_view view{};
  const gs::runtime_plan kept = [&] {
    const gs::runtime_program program([](auto&, auto x) { return x * 2.0; }, "x", {"A@x,"});
    view = program.plan();
    return gs::runtime_plan(program);
  }();
  CHECK(kept.plan().steps.data() == view.steps.data());
  CHECK(kept.mesh().rank() == 1);
  CHECK(kept.inputs()[0].dims.letters.view() == "A");
  CHECK(kept.owner() != nullptr);
}
