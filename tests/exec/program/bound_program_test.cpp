// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/bound_program.hpp>

#include "../bound_product.hpp"

#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace gs = gshard;

static_assert(!std::is_copy_constructible_v<gs::detail::bound_program>);

TEST_CASE("bound program: the facts that all processes must share") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2);
  const auto p = bound_product::unbound(on, gs::parameter_store(on, 17), {{"input 0", 0, false, {}}});
  p->bound.bind(bound_product::sizes);
  const auto has = [&](const std::string& what, const std::string& value) {
    return std::ranges::any_of(gs::detail::facts_of(*p), [&](const gs::fact& f) { return f.what == what && f.value == value; });
  };
  CHECK(has("the call", "making a program"));
  CHECK(has("the seed of a program's parameters", "17"));
  CHECK(has("the inputs and outputs in the caller's memory", "input 0"));
  CHECK(has("the extent of dim 'M'", "6"));
  p->operation = "matmul";
  CHECK(has("the call", "matmul on tensors"));
  p->number = 5;
  CHECK(gs::detail::name_of_run(*p).value == "a run of the program made in call 5");
}

TEST_CASE("bound program: agreements count as calls of the cluster, and report a problem") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2);
  const auto p = bound_product::unbound(on, gs::parameter_store(on));
  p->bound.bind(bound_product::sizes);
  gs::detail::agree_on_program(*p, {}, {});
  CHECK(p->number == on.backend().calls());
  CHECK(gs::detail::agree_on_run(*p, {}, {}, {}, true));
  CHECK_FALSE(gs::detail::agree_on_run(*p, {}, {}, {}, false));
  CHECK(on.backend().calls() == p->number + 2);
  CHECK_THROWS_WITH_AS(gs::detail::agree_on_program(*p, {}, gs::detail::problem_of([] { throw gs::error("no memory"); })), "no memory",
                       gs::error);
}
