// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/plan/plan_reader.hpp>

#include "changed_plan.hpp"

namespace gs = gshard;
using changed_plan::problem_after;

TEST_CASE("fields of another kind, unknown words and rows that are missing are errors that name the field") {
  CHECK(contains(complaint([] { gs::parse_plan("", "c.plan"); }), "plan file 'c.plan': is not JSON"));
  CHECK(contains(complaint([] { gs::parse_plan("[[[[[[[[]]]]]]]]", "c.plan"); }), "is nested too deep"));
  CHECK(contains(problem_after("gshard plan 1", "gshard plan 2"), "format: 'gshard plan 2' is not one of: gshard plan 1"));
  CHECK(contains(problem_after("\"name\":\"expert\"", "\"name\":\"data\""), "mesh[1].name: is the name of two axes"));
  CHECK(contains(problem_after("\"extent\":2", "\"extent\":0"), "mesh[0].extent: is not a whole number from 1 to"));
  CHECK(contains(problem_after("\"letter\":\"M\"", "\"letter\":\"B\""), "is the letter of two dims"));
  CHECK(contains(problem_after("\"op\":\"einsum\"", "\"op\":\"einsun\""), "is not one of:"));
  CHECK(contains(problem_after("\"in\":[", "\"in\":[99,"), "in[0]: is not a whole number from 0 to"));
  CHECK(contains(problem_after("\"factor\":-1.0", "\"factr\":-1.0"), "factr: is not known"));
  CHECK(contains(problem_after("\"factor\":-1.0", "\"factor\":\"many\""), "factor: is not a number"));
  CHECK(contains(problem_after("\"kind\":\"zeros\"", "\"kind\":\"ones\""), "parameters[0].init.kind: 'ones' is not one of"));
  CHECK(contains(problem_after("\"rule\":\"ab,bc->ac\"", "\"rule\":\"ab->ac\""), "rule: has not a part for each tensor"));
  CHECK(contains(problem_after("\"axes\":[[0]", "\"axes\":[[0,0]"), "is an axis that shards a dim already"));
}
