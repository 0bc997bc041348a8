// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/facts.hpp"

#include "requests.hpp"

using namespace requests;

TEST_CASE("plan: bytes are those that the simulated devices receive, uneven extents included") {
  for (const char* line :
       {"reshard --mesh x=4 --from 7@x,3 --to 7,3@x", "reshard --mesh x=3,y=2 --from 5@(x,y),7 --to 5@y,7@x",
        "reshard --mesh x=3,y=2 --from 5,7+partial(x) --to 5@y,7", "reshard --mesh x=3 --from 5,700+partial(x) --to 5,700",
        "reshard --mesh x=3 --from 5,701+partial(x) --to 5@x,701", "reshard --mesh x=4 --from 5@x --to 5",
        "roll --mesh x=4 --in 7@x,3 --dims 0 --shift 2", "conv XI,xIO->XO --mesh x=4 --in 9@x,2 --in 4,2,2 --pad same",
        "concat --mesh x=3 --dim 1 --in 14,25@x --in 14,11@x --out 14,36@x", "top-k --mesh x=4 --in 3,801@x --k 5 --out 3,5",
        "scatter --mesh x=4 --in 4,8+partial(x) --ids 3 --updates 3,8+partial(x)",
        "einsum AK,KC->AC --mesh x=4,y=2 --in 15@x,61@y --in 61@x,31@y --out 15@y,31@x",
        "einsum AB,BC->AC --mesh x=4 --in 5@x,7 --in 7@x,3 --loop-above 0",
        "einsum AB,BC->AC --mesh x=4 --in 5,7@x --in 7@x,3 --out 5@x,3 --loop-above 0"})
    CHECK(right(line));
}

TEST_CASE("plan: bytes are exact with very many devices, too") {
  CHECK(facts("reshard --mesh x=257 --from 514@x --to 514").bytes == (514 - 2) * 4);
  CHECK(facts("reshard --mesh x=1000 --from 1501@x --to 1501").bytes == 1501 * 4);  // 2 rows each, and none from device 751 on
  CHECK(facts("reshard --mesh x=1000000,y=1000 --from 3@x,5@y --to 3@x,5").bytes == 5 * 4);
}
