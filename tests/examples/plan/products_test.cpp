// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/products.hpp"

#include "requests.hpp"

#include <cstdint>

using namespace requests;

TEST_CASE("plan: a convolution whose spatial dims are sharded exchanges what its windows read") {
  const std::string conv = "conv BIXY,xyIO->BOXY --mesh x=2,y=2 --in 2,3,8@x,6@y --in 3,3,3,4";
  const pl::plan_facts f = facts(conv + " --pad 1");
  CHECK(kinds(f) == "collective_permute convolution");
  CHECK(pl::text_of(f.outputs[0].whole, f.mesh) == "2,4,8@x,6@y");
  CHECK(f.steps[0].out[0].local == std::vector<std::int64_t>{2, 3, 5, 4});
  CHECK(f.steps[0].moves.at(0).halo);
  CHECK(f.bytes == 2 * 3 * (5 * 4 - 4 * 3) * 4);
  CHECK(f.flops == 2 * (2 * 4 * 4 * 3) * (3 * 3 * 3));
  CHECK(output(conv + " --pad same") == "2,4,8@x,6@y");
  CHECK(output(conv + " --pad valid") == "2,4,6@x,4@y");
  CHECK(output(conv + " --pad same --stride 3,2") == "2,4,3@x,3@y");
  CHECK(output(conv + " --low 2 --high 0,1 --window-dilation 2,1 --base-dilation 1,3") == "2,4,6@x,17@y");
  for (const char* options : {"", " --pad same --stride 2", " --low -1,2 --high 2,-1", " --base-dilation 2 --window-dilation 2 --pad 2",
                              " --pad 1 --out 2@x,4@y,8,6", " --pad 1 --out 2,4@(y,x),8,6"})
    CHECK(right(conv + options));
  CHECK(right("conv BXI,xIO->BXO --mesh x=3 --in 2,10@x,2 --in 5,2,3 --pad same --stride 2"));
  CHECK(right("conv XYZI,xyzIO->XYZO --mesh x=3,y=2 --in 5@x,4@y,6,2 --in 2,3,1,2,3 --pad 1"));
  CHECK(kinds("conv BIXY,xyIO->BOXY --mesh x=2 --in 2,4@x,8,6 --in 3,3,4@x,4 --pad 1").starts_with("convolution"));
}

TEST_CASE("plan: a convolution that is refused") {
  const auto said = [](const std::string& rest) { return refusal_of("conv " + rest + " --mesh x=2"); };
  CHECK(said("BI,IO->BO --in 2,3 --in 3,4").starts_with("the equation \"BI,IO->BO\" has no window"));
  CHECK(said("BX->BX --in 2,3") == "a convolution has two operands: give the equation and --in for both");
  CHECK(said("BIXY,xyIO->BOXY --in 2,3,8,6 --in 3,3,4,4") == "index 'I' has extent 3 before and 4 in \"3,3,4,4\": give it one extent");
  CHECK(said("BXI,xIO->BXO --in 2,3,4 --in 5,4,4").starts_with("dim 1 of the result is empty"));
  CHECK(said("BXI,xIO->BXO --in 2,3,4 --in 3,4,4 --stride 0") == "--stride 0: expected a number from 1 to 1000000000");
  CHECK(said("BXI,xIO->BXO --in 2,3,4 --in 3,4,4 --pad 1,1").starts_with("--pad 1,1 has 2 numbers for 1 dim"));
  CHECK(said("BXI,xIO->BXO --in 2,3,4 --in 3,4,4 --pad twice").starts_with("malformed --pad \"twice\""));
}

TEST_CASE("plan: pools of all kinds, and what one number is for") {
  const std::string in = " --mesh x=3,y=2 --in 2,8@x,6@y,3 --window 1,3,2,1";
  CHECK(output("pool" + in) == "2,6@x,5@y,3");
  CHECK(output("pool" + in + " --stride 2") == "2,3@x,3@y,3");
  CHECK(output("pool" + in + " --stride 2,2,2,3") == "1,3@x,3@y,1");
  CHECK(output("pool --mesh x=2 --in 2,8@x,6,3 --window 3,2 --dims 1,2 --pad same --stride 2") == "2,4@x,3,3");
  for (const char* kind : {"max", "min", "sum", "mean"})
    for (const char* options : {"", " --stride 2 --pad same", " --low 0,1,-1,0 --high 0,0,2,0", " --out 2,6,5@x,3", " --window-dilation 2"})
      CHECK(right(std::string("pool --kind ") + kind + in + options));
  CHECK(kinds("pool --mesh x=2 --in 4@x,4 --window 1,1").empty());
  CHECK(facts("pool --kind sum --mesh x=2 --in 4@x,8 --window 1,3").flops == 2 * 6 * 3);
  CHECK(facts("pool --kind max --mesh x=2 --in 4@x,8 --window 1,3").flops == 2 * 6 * 3);
  CHECK(refusal_of("pool --kind avg --mesh x=2 --in 4 --window 2") == "--kind \"avg\": expected max, min, sum or mean");
  CHECK(refusal_of("pool --mesh x=2 --in 4 --window 5").starts_with("dim 0 of the result is empty"));
}
