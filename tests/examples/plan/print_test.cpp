// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/print.hpp"

#include "requests.hpp"

using namespace requests;

TEST_CASE("plan: a plan as text") {
  CHECK(pl::to_text(facts(einsum("x=2,y=2", "BMK,BNK->BMN", {"4,24@x,100@y", "4@x,32,100@y"}, "4@x,24@y,32"))) ==
        "all_to_all over x      dim 1 -> dim 0  4,24@x,100@y -> 4@x,24,100@y                       "
        "local [4,12,50] -> [2,24,50]            receives 4.7 KiB (4800 bytes)  groups {0,2} {1,3}\n"
        "einsum                                 4@x,24,100@y 4@x,32,100@y -> 4@x,24,32+partial(y)  "
        "local [2,24,50] [2,32,50] -> [2,24,32]  computes 153600 flops\n"
        "reduce_scatter over y  sums -> dim 1   4@x,24,32+partial(y) -> 4@x,24@y,32                "
        "local [2,24,32] -> [2,12,32]            receives 3.0 KiB (3072 bytes)  groups {0,1} {2,3}\n"
        "output  4@x,24@y,32  local [2,12,32]\n"
        "total  3 steps  receives 7.7 KiB (7872 bytes) per device  computes 153600 flops per device\n");
}

TEST_CASE("plan: axes that move differently, and groups of many devices, as text") {
  CHECK(pl::to_text(facts(reshard("x=2,y=8,z=2", "16@(x,z),8", "16,8@x"))) ==
        "all_to_all over x,z  x dim 0 -> dim 1; z dim 0 -> copies  16@(x,z),8 -> 16,8@x  local [4,8] -> [16,4]  "
        "receives 192 bytes  8 groups of 4\n"
        "output  16,8@x  local [16,4]\n"
        "total  1 step  receives 192 bytes per device  computes 0 flops per device\n");
}

TEST_CASE("plan: no steps as text") {
  CHECK(pl::to_text(facts(reshard("x=2", "7@x", "7@x"))) ==
        "output  7@x  local [4]\ntotal  0 steps  receives 0 bytes per device  computes 0 flops per device\n");
}

TEST_CASE("plan: halos, and results of several tensors, as text") {
  CHECK(pl::to_text(facts("pad --mesh x=2,y=2 --in 8@x,6@y --low -1,0 --high 1,0")) ==
        "collective_permute over x  dim 0 halo  8@x,6@y -> 8@x,6@y  local [4,3] -> [4,3]  receives 12 bytes  groups {0,2} {1,3}\n"
        "pad                                    8@x,6@y -> 8@x,6@y  local [4,3] -> [4,3]\n"
        "output  8@x,6@y  local [4,3]\n"
        "total  2 steps  receives 12 bytes per device  computes 0 flops per device\n");
  CHECK(pl::to_text(facts("sort --mesh x=2 --in 4@x,6")) ==
        "sort  4@x,6 -> 4@x,6 4@x,6  local [2,6] -> [2,6] [2,6]  computes 12 flops\n"
        "output  4@x,6  local [2,6]\n"
        "output  4@x,6  local [2,6]\n"
        "total  1 step  receives 0 bytes per device  computes 12 flops per device\n");
}
