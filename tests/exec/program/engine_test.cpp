// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/engine.hpp>
#include <gshard/kernel_headers.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/kernels.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

namespace {
inline constexpr auto relu_of = [](auto&, auto x) { return gs::relu(x); };
using positive = gs::program<relu_of, gs::mesh<gs::axis<"x">>, gs::in<"A", gs::P<"x">>>;
}  // namespace

TEST_CASE("an engine calls the hook of its owner, which may change between runs") {
  const auto on = gs::simulate<positive::mesh>(2);
  gs::executor run(positive::plan, gs::kernels_of<positive>, on, {{'A', 3}}, gs::parameter_store(on));
  CHECK(run.threads >= 1);
  int before = 0, after = 0;
  run.run({});
  run.hook = [&](const gs::node& n, bool begins) {
    CHECK(n.kind == gs::op::map);
    ++(begins ? before : after);
  };
  run.run({});
  run.hook = nullptr;
  run.run({});
  CHECK(before == 1);
  CHECK(after == 1);
  CHECK(run.runs() == 3);
}
