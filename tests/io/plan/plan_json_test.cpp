// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/plan/plan_json.hpp>

#include "changed_plan.hpp"

#include <string>

TEST_CASE("each row of a plan is an object of what it has") {
  const gshard::plan_functions functions;
  const gshard::plan_view& plan = changed_plan::program::plan;
  const gshard::detail::plan_json rows(plan, functions);
  CHECK(rows.axis(0).dump() == R"({"name":"data","extent":2})");
  CHECK(rows.axis(1).dump() == R"({"name":"expert"})");
  CHECK(rows.row(plan.dims[0]).dump() == R"({"letter":"B"})");
  CHECK(rows.row(plan.parameters[0]).dump() == R"({"name":"w","value":0,"init":{"kind":"zeros"}})");
  CHECK(rows.row(plan.inputs[1]).dump() == R"({"name":"MH","value":2})");
  const std::string step = rows.step(0).dump();
  CHECK(contains(step, R"({"op":"einsum","in":[1,2],"out":[3],"rule":"ab,bc->ac","at":"changed_plan.hpp:)"));
}
