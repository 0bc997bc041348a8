// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/runner.hpp>
#include <gshard/kernel_headers.hpp>

#include "../bound_product.hpp"

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/binder.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/program/kernels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

namespace gs = gshard;

namespace {
inline constexpr auto relu_of = [](auto&, auto x) { return gs::relu(x); };
using positive = gs::program<relu_of, gs::mesh<gs::axis<"x">>, gs::in<"A", gs::P<"x">>>;
}  // namespace

TEST_CASE("a runner calls the hook of its executor, which may change between runs") {
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

TEST_CASE("a runner runs a bound program, and an error of one run is not left for the next") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2);
  const auto p = bound_product::unbound(on, gs::parameter_store(on));
  gs::detail::binder(*p, bound_product::sizes, {}, {});
  gs::detail::runner run(*p);
  const auto& x = p->value(p->plan.inputs[0].value);
  const auto& y = p->value(p->plan.outputs[0].value);
  for (int turn = 1; turn <= 3; ++turn) {
    for (std::size_t d = 0; d < 2; ++d) std::fill_n(x.as<float>(d), x.elements(d), float(turn));
    if (turn == 2) {
      CHECK_THROWS_WITH_AS(run.run({}, "no input", {}, {}), "no input", gs::error);
      continue;
    }
    run.run({}, {}, {}, {});
    const auto is_product = [&](float z) { return z == 12.0f * float(turn); };
    for (std::size_t d = 0; d < 2; ++d) CHECK(std::all_of(y.as<float>(d), y.as<float>(d) + 6, is_product));
  }
  CHECK(run.runs() == 3);
  CHECK(p->received[gs::op::all_reduce].calls >= 2);
  CHECK(run.traffic_in_run().bytes()[0] == 2 * 3 * 4);
  CHECK_FALSE(run.skipped());
}
