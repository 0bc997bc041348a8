// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/rows.hpp"

#include "requests.hpp"

using namespace requests;

TEST_CASE("plan: sums element by element, broadcast as numpy does") {
  CHECK(output("map --mesh x=2 --in 4@x,1 --in 6 --in 3,1,1") == "3,4@x,6");
  CHECK(kinds("map --mesh x=2 --in 4@x,6 --in 4@x,6") == "map");
  CHECK(kinds("map --mesh x=2 --in 4,6+partial(x) --in 4,6+partial(x) --keep-partial") == "map");
  for (const char* operands : {"--in 7@x,5@y --in 5", "--in 7@x,1 --in 1,5@x", "--in 7,5+partial(x) --in 7@x,5 --in 1@x",
                               "--in 7@x,5 --out 7,5@(y,x)", "--in scalar --in 3@x", "--in 2 --in 2@x --in 2 --in 2 --in 2@y --in 1"})
    CHECK(right(std::string("map --mesh x=3,y=2 ") + operands));
  CHECK(refusal_of("map --mesh x=2 --in 4,6 --in 4") ==
        "dim 0 of \"4\" meets extent 6 of another operand: let them be the same, or one of them 1 (dims are lined up from the last)");
  std::string seventeen = "map --mesh x=2";
  for (int i = 0; i < 17; ++i) seventeen += " --in 1";
  CHECK(refusal_of(seventeen) == "map takes at most 16 operands, not 17");
}

TEST_CASE("plan: the place of an extremum in short lines that are sharded is gathered with it, at once") {
  for (const char* kind : {"argmax", "argmin"}) {
    const std::string reduce = std::string("reduce --kind ") + kind;
    const pl::plan_facts f = facts(reduce + " --mesh x=2,y=4 --in 28@x,12@y --dims 1 --out 28@x");
    CHECK(kinds(f) == "top_k all_gather top_k reshape");
    CHECK(f.bytes == 14 * 3 * (4 + 4));
    CHECK(kinds(reduce + " --mesh x=4 --in 64,65536@x --dims 1") == "reduce all_reduce argmax all_reduce");
    for (const char* rest :
         {"x=2,y=2 --in 9@(x,y),3 --dims 0", "x=2,y=2 --in 3,9@(x,y),2 --dims 1", "x=3,y=2 --in 4@x,5@y --dims 1 --out 4",
          "x=4,y=2 --in 2,5@x,3@y --dims 1 --out 2@x,3", "x=5 --in 6,6@x --dims 1", "x=4 --in 40@x --dims 0"})
      CHECK(right(reduce + " --mesh " + rest));
  }
}

TEST_CASE("plan: reductions of every kind over dims that are sharded") {
  for (const char* kind : {"sum", "mean", "max", "min", "prod", "argmax", "argmin", "logsumexp"})
    for (const char* rest : {"--in 7@x,5@y --dims 0", "--in 7@x,5@y --dims -1 --out 7@y", "--in 7,5@(y,x)+partial(z) --dims 1",
                             "--in 7@(x,z),5 --dims 0 --keep-partial"})
      CHECK(right(std::string("reduce --kind ") + kind + " --mesh x=3,y=2,z=2 " + rest));
  for (const char* kind : {"sum", "mean", "max", "min", "prod", "logsumexp"})
    CHECK(right(std::string("reduce --kind ") + kind + " --mesh x=3,y=2 --in 7@x,5@y --dtype f64"));
  CHECK(kinds("reduce --kind max --mesh x=2 --in 8@x,600 --dims 0 --out 600@x") == "reduce reduce_scatter");
  CHECK(output("reduce --mesh x=2 --in 8@x,6") == "scalar");
  CHECK(facts("reduce --kind max --mesh x=2 --in 8@x,6 --dims 0").flops == 4 * 6);
  CHECK(refusal_of("reduce --kind argmax --mesh x=2 --in 8@x,6") == "--kind argmax is along one dim: say which with --dims");
  CHECK(refusal_of("reduce --kind median --mesh x=2 --in 8@x,6").starts_with("--kind \"median\": expected sum, mean,"));
}

TEST_CASE("plan: softmax and layer norm, whole and with lines that are sharded") {
  CHECK(kinds("softmax --mesh x=2 --in 8@x,6") == "softmax");
  CHECK(kinds("layer-norm --mesh x=2 --in 8@x,6") == "layer_norm");
  for (const char* rest :
       {"--in 7@x,5", "--in 7,5@x", "--in 7@y,5@x --out 7@x,5", "--in 5@x --dtype f64", "--in 2,7,5@(y,x)+partial(z) --dtype f64"})
    for (const char* what : {"softmax", "layer-norm"}) CHECK(right(std::string(what) + " --mesh x=3,y=2,z=2 " + rest));
  CHECK(right("layer-norm --mesh x=2,y=2 --in 7@x,5@y --gamma 5@x --beta 5+partial(y)"));
  CHECK(refusal_of("layer-norm --mesh x=2 --in 7,5 --gamma 4") == "--gamma 4: give it one dim of extent 5");
  CHECK(refusal_of("softmax --mesh x=2 --in scalar").starts_with("a softmax is along the last dim"));
}
