// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/order.hpp"

#include "requests.hpp"

using namespace requests;

TEST_CASE("plan: sorted, with where the elements stood") {
  CHECK(facts("sort --mesh x=2 --in 8@x,6").outputs.size() == 2);
  CHECK(kinds("sort --mesh x=2 --in 8@x,6") == "sort");
  for (const char* rest : {"", "--descending", "--dim 0", "--dim -2 --descending --out 7@y,5"})
    CHECK(right(std::string("sort --mesh x=3,y=2 --in 7@x,5@y ") + rest));
}

TEST_CASE("plan: the k best of a dim that is sharded are the best of every block's best") {
  const pl::plan_facts f = facts("top-k --mesh x=4 --in 4,1000@x --k 3");
  CHECK(kinds(f).starts_with("top_k"));
  CHECK(f.outputs.size() == 2);
  CHECK(pl::text_of(f.outputs[1].whole, f.mesh).starts_with("4"));
  for (const char* rest : {"--k 2", "--k 5", "--k 3 --dim 0 --smallest", "--k 1 --out 7,1@x", "--k 7 --dim 0 --out 7@(y,x),5"})
    CHECK(right(std::string("top-k --mesh x=3,y=2 --in 7@x,5@y ") + rest));
  CHECK(refusal_of("top-k --mesh x=2 --in 4,10 --k 11") == "--k 11: dim 1 has 10 elements");
  CHECK(refusal_of("top-k --mesh x=2 --in 4,10 --k 0").starts_with("--k 0: expected a number from 1"));
}

TEST_CASE("plan: running sums") {
  for (const char* rest : {"", "--dim 0", "--dim 0 --exclusive", "--reverse", "--dim 0 --reverse --exclusive --out 7,5@(x,y)"})
    CHECK(right(std::string("cumsum --mesh x=3,y=2 --in 7@x,5@y ") + rest));
  CHECK(right("cumsum --mesh x=3,y=2 --in 7,5@y+partial(x)"));
}

TEST_CASE("plan: rows of a table by index, and updates added to them") {
  CHECK(output("gather --mesh x=2 --in 100,64@x --ids 8,3") == "8,3,64@x");
  CHECK(output("gather --mesh x=2 --in 100,64@x --ids scalar --dim 1") == "100");
  for (const char* rest :
       {"--in 7@x,5@y --ids 4", "--in 7@x,5 --ids 4@y,3 --out 4@(y,x),3,5", "--in 5,7@(x,y) --dim -1 --ids 2,3@x", "--in 7@x --ids scalar"})
    CHECK(right(std::string("gather --mesh x=3,y=2 ") + rest));
  for (const char* rest : {"--in 7@x,5@y --ids 4 --updates 4,5@y", "--in 7,5 --ids 4@y,3 --updates 4@x,3,5 --out 7,5@x",
                           "--in 5,7@x --dim 1 --ids 9@y --updates 5,9@y", "--in 7+partial(x) --ids 4 --updates 4@x"})
    CHECK(right(std::string("scatter --mesh x=3,y=2 ") + rest));
  CHECK(refusal_of("scatter --mesh x=2 --in 7,5 --ids 4 --updates 5,4") ==
        "--updates 5,4: its extents must be [4,5], those of the tensor with the indices' in place of dim 0");
  CHECK(refusal_of("gather --mesh x=2 --in 7,5 --ids 4+partial(x)") == "--ids 4+partial(x): indices cannot be pending, leave the + out");
  CHECK(refusal_of("gather --mesh x=2 --in 1,1,1,1,1 --ids 1,1,1,1,1").find("more than 8 dims") != std::string::npos);
}
