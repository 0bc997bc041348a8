// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/plan/plan_check.hpp>

#include "changed_plan.hpp"

using changed_plan::problem_after;

TEST_CASE("rows that do not fit together are errors that name the step") {
  CHECK(contains(problem_after("\"op\":\"einsum\"", "\"op\":\"map\""), "steps[0]: has no function of its operands"));
  CHECK(contains(problem_after("\"rule\":\"ab", "\"rule\":\"abc"), "steps[0]: has a rule with another number of dims than its tensors"));
  CHECK(contains(problem_after("\"function\":\"add\"", "\"function\":\"negation\""), "has no function of its operands"));
  CHECK(contains(problem_after("\"op\":\"einsum\"", "\"op\":\"all_reduce\""), "has not a result for each operand"));
  CHECK(contains(problem_after("\"op\":\"einsum\"", "\"op\":\"loop_end\""), "ends a loop that does not begin"));
  CHECK(contains(problem_after("\"op\":\"einsum\"", "\"op\":\"loop_begin\""), "steps: begin a loop that does not end"));
  CHECK(contains(problem_after("\"rule\":\"ab", "\"axes\":16,\"rule\":\"ab"), "has axes that the mesh does not have"));
  CHECK(contains(problem_after("\"rule\":\"ab", "\"moves\":1,\"rule\":\"ab"), "combines moves, and is no collective"));
  CHECK(contains(problem_after("\"rule\":\"ab", "\"window\":7,\"rule\":\"ab"), "reads through a window that there is not"));
  CHECK(contains(problem_after("{\"name\":\"MH\"", "{\"name\":\"MHK\""), "inputs[1]: is not named by the letters of its dims"));
}
