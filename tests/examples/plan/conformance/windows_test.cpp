// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.hpp"

// Their halos are a permutation per side, with the bytes of the exchanged rows.
using namespace conformance;

TEST_CASE("pad: as XLA's SPMD partitioner") {
  check({
      {"XLA: another dim is padded", "pad --mesh x=2 --in 12,9,33@x --low 0,1,0 --high 0,2,0 --out 12,12,33@x", nothing},
      {"XLA: another dim is padded, the operand whole", "pad --mesh x=2 --in 12,9,33 --low 0,1,0 --high 0,2,0 --out 12,12,33@x", nothing},
      {"XLA: behind the cut dim", "pad --mesh x=2 --in 6,33@x --low 0,0 --high 0,2 --out 6,35@x", permute(f32(6, 1))},
      {"XLA: interior padding", "pad --mesh x=2 --in 9@x --low 2 --high 1 --interior 2 --out 28@x", permute(f32(1))},
      {"XLA: interior padding, partially replicated", "pad --mesh x=2,y=2 --in 11,9@x --low 2,2 --high 4,1 --interior 1,2 --out 27,28@x",
       permute(f32(11, 1))},
      {"XLA: a shift to the right", "pad --mesh x=4 --in 8@x,5 --low 1,0 --high -1,0 --value 2 --out 8@x,5", permute(f32(1, 5))},
      {"XLA: a shift to the right by a block", "pad --mesh x=4 --in 8@x,5 --low 2,0 --high -2,0 --out 8@x,5", permute(f32(2, 5))},
  });
}

TEST_CASE("pad: as Shardy's explicit reshards") {
  check({
      {"Shardy: a dim that is not padded, on another axis",
       "pad --mesh x=4,y=2,z=4 --in 12,14,16@x --low 1,-1,0 --high 1,-1,0 --out 14,12,16@y",
       permute(f32(14, 12, 4)) + all_gather(f32(14, 12, 8), 2)},
      {"Shardy: a padded dim is gathered", "pad --mesh x=4,y=2,z=4 --in 12@z,14,16@x --low 1,-1,0 --high 1,-1,0 --out 14,12,16@x",
       all_gather(f32(12, 14, 4), 4)},
      {"Shardy: a padded dim is gathered, the other on another axis",
       "pad --mesh x=4,y=2,z=4 --in 12@z,14,16@x --low 1,-1,0 --high 1,-1,0 --out 14,12,16@y",
       permute(f32(3, 14, 4)) + all_gather(f32(12, 14, 4), 4) + all_gather(f32(12, 14, 8), 2)},
      {"Shardy: a padded dim is sharded in the result",
       "pad --mesh x=4,y=2,z=4 --in 12,14,16@x --low 1,-1,0 --high 1,-1,0 --out 14@z,12,16@y",
       permute(f32(4, 12, 4)) + all_gather(f32(4, 12, 8), 2)},
      {"Shardy: cut in two padded dims, the operand is larger",
       "pad --mesh x=2,y=2,t=2 --in 12@y,14,16@x --low 1,-1,0 --high 1,-1,0 --out 14,12@y,16@t",
       permute(f32(7, 12, 8)) + all_to_all(f32(7, 12, 8), 2)},
      {"Shardy: cut in two padded dims, the result is larger",
       "pad --mesh x=2,y=2,t=2 --in 12@y,14,16@x --low 1,1,0 --high 1,1,0 --out 14,16@y,16@t",
       permute(f32(6, 14, 8)) + all_to_all(f32(6, 14, 8), 2)},
      {"Shardy: one padded dim on two axes", "pad --mesh x=4,y=2,p=3 --in 12@x,14,16@y --low 1,-1,0 --high 1,-1,0 --out 14@p,12,16@y",
       permute(f32(2, 12, 8)) + all_gather(f32(16, 12, 8), 4)},
  });
}

TEST_CASE("slice: as XLA's SPMD partitioner") {
  check({
      {"XLA: another dim", "slice --mesh x=2 --in 12,14,33@x --start 0,2,0 --stop 12,13,33 --out 12,11,33@x", nothing},
      {"XLA: the cut dim", "slice --mesh x=2 --in 8,7,33@x --start 2,0,5 --stop 8,7,32 --stride 2,1,1 --out 3,7,27@x",
       permute(f32(8, 7, 2))},
      {"XLA: the last block", "slice --mesh x=4 --in 4@x,5 --start 3,0 --stop 4,5 --out 1@x,5", permute(f32(1, 5))},
      {"XLA: another dim, partially replicated", "slice --mesh x=2,y=2 --in 12,14,33@x --start 0,2,0 --stop 12,13,33 --out 12,11,33@x",
       nothing},
      {"XLA: the cut dim, partially replicated",
       "slice --mesh x=2,y=2 --in 8,7,33@x --start 2,0,5 --stop 8,7,32 --stride 2,1,1 --out 3,7,27@x", permute(f32(8, 7, 2))},
      {"XLA: the first elements stay where they are", "slice --mesh x=2 --in 3,16@x --start 0,15 --stop 3,16 --out 3,1@x",
       permute(f32(3, 1))},
  });
}

TEST_CASE("slice: as Shardy's explicit reshards and PyTorch's DTensor") {
  check({
      {"Shardy: the result whole", "slice --mesh x=4,y=2 --in 32@x,4,8 --start 0,1,4 --stop 32,2,8 --stride 1,1,2 --out 32,1,2",
       all_gather(f32(32, 1, 2), 4)},
      {"Shardy: a dim that is whole, on another axis",
       "slice --mesh x=4,y=2,z=4 --in 8,16,32@x --start 2,0,0 --stop 4,16,32 --stride 1,4,1 --out 2,4,32@y",
       permute(f32(2, 4, 8)) + all_gather(f32(2, 4, 16), 2)},
      {"Shardy: a sliced dim is gathered",
       "slice --mesh x=4,y=2,z=4 --in 8@z,16,32@x --start 2,0,0 --stop 4,16,32 --stride 1,4,1 --out 2,4,32@y",
       permute(f32(2, 16, 8)) + all_gather(f32(8, 16, 8), 4) + all_gather(f32(8, 16, 16), 2)},
      {"Shardy: a sliced dim is sharded in the result",
       "slice --mesh x=4,y=2,z=4 --in 8,16,32@x --start 2,0,0 --stop 6,16,32 --stride 1,4,1 --out 4@z,4,32@y",
       permute(f32(1, 4, 8)) + all_gather(f32(1, 4, 16), 2)},
      {"Shardy: cut in two sliced dims",
       "slice --mesh x=4,y=2,z=4 --in 32@z,16,32@x --start 8,0,0 --stop 12,16,32 --stride 1,4,1 --out "
       "4,4@z,32@y",
       permute(f32(1, 4, 8)) + all_to_all(f32(1, 4, 8), 4) + permute(f32(4, 1, 8)) + all_gather(f32(4, 1, 16), 2)},
      {"Shardy: cut in two sliced dims, the result has more",
       "slice --mesh x=4,y=2,z=4 --in 64@(x,y),36,24@z --start 0,0,0 --stop 64,32,16 --out 64@(x,z),32@y,16",
       permute(f32(8, 32, 4)) + all_to_all(f32(8, 32, 4), 2) + all_to_all(f32(16, 16, 4), 4)},
      {"Shardy: cut alike before and after",
       "slice --mesh y=2,z=4 --in 32@z,16,32@y --start 8,0,0 --stop 24,16,32 --stride 1,4,1 --out "
       "16@z,4,32@y",
       permute(f32(4, 16, 16))},
      {"DTensor: half of the cut dim", "slice --mesh x=4 --in 8,16@x --start 0,8 --stop 8,16", all_gather(f32(8, 16), 4), "8,8@x"},
      {"DTensor: half of the cut dim, made whole", "slice --mesh x=4 --in 8,16@x --start 0,8 --stop 8,16 --out 8,8",
       all_gather(f32(8, 16), 4)},
      {"DTensor: all of the cut dim", "slice --mesh x=4 --in 8,16@x --start 0,0 --stop 8,16 --out 8,16@x", nothing},
      {"DTensor: half of another dim", "slice --mesh x=4 --in 8,16@x --start 4,0 --stop 8,16 --out 4,16@x", nothing},
  });
}

TEST_CASE("concat: as XLA's SPMD partitioner and Shardy's explicit reshards") {
  check({
      {"XLA: along another dim", "concat --mesh x=2 --dim 1 --in 14@x,25 --in 14@x,11 --out 14@x,36", nothing},
      {"XLA: along the cut dim", "concat --mesh x=2 --dim 1 --in 14,25@x --in 14,11@x --out 14,36@x", all_gather(f32(14, 38), 2)},
      {"XLA: along one of two cut dims", "concat --mesh x=2,y=2 --dim 1 --in 14@x,25@y --in 14@x,11@y --out 14@x,36@y",
       all_gather(f32(7, 38), 2)},
      {"Shardy: one operand", "concat --mesh x=4,y=2 --dim 1 --in 4,8,16 --out 4@x,8,16", nothing},
      {"Shardy: another dim on two axes", "concat --mesh x=4,y=2 --dim 1 --in 4@x,8,16 --in 4@y,12,16 --out 4,20,16",
       permute(f32(1, 8, 16)) + all_gather(f32(2, 8, 16), 2) + all_gather(f32(4, 20, 16), 2)},
      {"Shardy: the dim is sharded in all", "concat --mesh x=4,y=2 --dim 1 --in 8@x,8@y,16 --in 8,12@y,16 --out 8@x,20@y,16",
       all_to_all(f32(2, 4, 16), 2) + all_to_all(f32(2, 6, 16), 2) + all_to_all(f32(1, 20, 16), 2)},
      {"Shardy: the axis of another dim cuts the result", "concat --mesh x=4,y=2 --dim 1 --in 8@x,32 --in 8@x,48 --out 8,80@(x,y)",
       all_to_all(f32(1, 80), 8)},
      {"Shardy: both dims are sharded in all", "concat --mesh x=4,y=2 --dim 1 --in 4@x,32@y,16 --in 4@x,48@y,16 --out 4@x,80@y,16",
       all_gather(f32(1, 80, 16), 2)},
      {"Shardy: every operand cut otherwise", "concat --mesh x=4,y=2 --dim 1 --in 4@x,32,16 --in 4,48@y,16 --out 4,80@x,16",
       all_to_all(f32(1, 32, 16), 4) + permute(f32(4, 12, 16)) + all_gather(f32(4, 80, 16), 4)},
      {"Shardy: the dim on two axes", "concat --mesh x=4,y=2 --dim 1 --in 4,32@y,16 --in 4@y,48@x,16 --out 4,80@y,16",
       all_gather(f32(2, 48, 16), 4) + all_to_all(f32(2, 48, 16), 2) + all_gather(f32(4, 80, 16), 2)},
  });
}

TEST_CASE("roll and reverse: as XLA's SPMD partitioner") {
  check({
      {"XLA: slices that rotate", "roll --mesh x=4 --in 12@x,5 --dims 0 --shift 2 --out 12@x,5", permute(f32(2, 5))},
      {"XLA: slices that rotate by a block, the last is empty", "roll --mesh x=4 --in 6@x,5 --dims 0 --shift 2 --out 6@x,5",
       permute(f32(2, 5))},
      {"XLA: slices that rotate, blocks do not divide", "roll --mesh x=4 --in 10@x,5 --dims 0 --shift 6 --out 10@x,5",
       permute(f32(3, 5)) + permute(f32(1, 5)) + permute(f32(2, 5))},
      {"XLA: rotated along another dim", "roll --mesh x=4 --in 12@x,5 --dims 1 --shift -2 --out 12@x,5", nothing},
      {"XLA: reversed along another dim", "reverse --mesh x=2 --in 3@x,5 --dims 1 --out 3@x,5", nothing},
      {"XLA: reversed, shards swap", "reverse --mesh x=2 --in 8@x,3 --dims 0 --out 8@x,3", permute(f32(4, 3))},
      {"XLA: reversed, blocks do not divide", "reverse --mesh x=2 --in 7@x,3 --dims 0 --out 7@x,3",
       permute(f32(4, 3)) + permute(f32(1, 3))},
  });
}

TEST_CASE("reverse: as Shardy's explicit reshards") {
  check({
      {"Shardy: another dim on a larger axis", "reverse --mesh x=4,y=2 --in 8@y,6,8,2 --dims 1,3 --out 8@x,6,8,2",
       permute(f32(2, 6, 8, 2))},
      {"Shardy: another dim on a smaller axis", "reverse --mesh x=4,y=2 --in 8@x,6,8,2 --dims 1,3 --out 8@y,6,8,2",
       permute(f32(2, 6, 8, 2)) + all_gather(f32(4, 6, 8, 2), 2)},
      {"Shardy: a reversed dim moves to another", "reverse --mesh x=4,y=2,z=2,zz=2 --in 8@y,8@(z,zz),8,2 --dims 1,3 --out 8@x,8,8@z,2",
       permute(f32(2, 2, 8, 2)) + all_gather(f32(2, 4, 8, 2), 2) + all_to_all(f32(2, 4, 8, 2), 2)},
      {"Shardy: two reversed dims are gathered", "reverse --mesh x=2,xx=2,z=2,zz=2 --in 8@x,8@z,8,2@zz --dims 1,3 --out 8@xx,8,8,2",
       permute(f32(4, 4, 8, 1)) + all_gather(f32(4, 8, 8, 1), 2) + all_gather(f32(4, 8, 8, 2), 2)},
      {"Shardy: a dim moves to a reversed one", "reverse --mesh x=4,y=2,z=2,zz=2 --in 8@y,8,8@z,2 --dims 1,3 --out 8@x,8@(z,zz),8,2",
       permute(f32(2, 4, 4, 2)) + all_to_all(f32(2, 4, 4, 2), 2)},
      {"Shardy: one reversed dim before, another after", "reverse --mesh x=4,y=2,z=2,zz=2 --in 8@y,8@z,8,2 --dims 1,3 --out 8@x,8,8,2@zz",
       permute(f32(2, 4, 8, 1)) + all_gather(f32(2, 8, 8, 1), 2)},
  });
}

TEST_CASE("pool: as XLA's SPMD partitioner and Shardy's explicit reshards") {
  check({
      {"XLA: the operand whole", "pool --kind sum --mesh x=2 --in 6,2 --window 3,1 --stride 2,1 --low 1,0 --out 3@x,2", nothing},
      {"XLA: no halo before", "pool --kind sum --mesh x=2 --in 6@x,2 --window 3,1 --stride 2,1 --high 1,0 --out 3@x,2", permute(f32(2, 2))},
      {"XLA: a halo beyond the neighbor", "pool --kind sum --mesh x=5 --in 9@x,2 --window 4,1 --stride 2,1 --low 3,0 --out 5@x,2",
       permute(f32(1, 2)) + permute(f32(2, 2))},
      {"XLA: unequal halos of one side", "pool --kind sum --mesh x=3 --in 9@x,2 --window 3,1 --stride 2,1 --pad 1,0 --out 5@x,2",
       permute(f32(2, 2))},
      {"XLA: halos of both sides", "pool --kind sum --mesh x=2 --in 4@x,2 --window 5,1 --stride 3,1 --pad 2,0 --out 2@x,2",
       permute(f32(1, 2)) + permute(f32(1, 2))},
      {"XLA: halos of two dims",
       "pool --kind sum --mesh x=2,y=2 --in 4@x,4@y,2,2 --window 5,5,1,1 --stride 3,3,1,1 --pad 2,2,0,0 "
       "--out 2@x,2@y,2,2",
       permute(f32(1, 2, 2, 2)) + permute(f32(1, 2, 2, 2)) + permute(f32(5, 1, 2, 2)) + permute(f32(5, 1, 2, 2))},
      {"XLA: base dilation",
       "pool --kind sum --mesh x=4 --in 3,5@x,5,4 --window 1,5,5,1 --pad 0,4,4,0 --base-dilation 1,3,3,1 "
       "--out 3,17@x,17,4",
       permute(f32(3, 2, 5, 4))},
      {"Shardy: windows that do not overlap",
       "pool --mesh x=4 --in 48@x,12,3 --window 3,1,3 --stride 3,1,3 --low 0,2,0 --high 0,-2,0 --out "
       "16@x,12,1",
       nothing},
      {"Shardy: windows that do not overlap, the operand whole",
       "pool --mesh x=4 --in 48,12,3 --window 3,1,3 --stride 3,1,3 --out 16@x,12,1", nothing},
  });
}

TEST_CASE("conv: as XLA's SPMD partitioner") {
  check({
      {"XLA: a spatial dim", "conv BXYI,xyIO->BXYO --mesh x=2 --in 4,16@x,16,3 --in 7,7,3,8 --stride 2 --pad 3 --out 4,8@x,8,8",
       permute(f32(4, 3, 16, 3)) + permute(f32(4, 2, 16, 3))},
      {"XLA: from the batch to a spatial dim",
       "conv BXYI,xyIO->BXYO --mesh x=2 --in 4@x,16,16,3 --in 7,7,3,8 --stride 2 --pad 3 --out 4,8@x,8,8",
       all_to_all(f32(2, 16, 16, 3), 2) + permute(f32(4, 3, 16, 3)) + permute(f32(4, 2, 16, 3))},
      {"XLA: dims in another order", "conv XYIB,xyIO->BXYO --mesh x=2 --in 16@x,16,3,4 --in 7,7,3,8 --stride 2 --pad 3 --out 4,8@x,8,8",
       permute(f32(3, 16, 3, 4)) + permute(f32(2, 16, 3, 4))},
      {"XLA: base dilation, all start alike",
       "conv BXYI,xyIO->BXYO --mesh x=2 --in 4,7@x,7,6 --in 3,3,6,6 --stride 4 --pad 1 --base-dilation 2 "
       "--out 4,4@x,4,6",
       nothing},
      {"XLA: base dilation, stride 1",
       "conv BXYI,xyIO->BXYO --mesh x=2 --in 4,7@x,7,6 --in 3,3,6,6 --low 1 --high 2 --base-dilation 2 --out "
       "4,14@x,14,6",
       permute(f32(4, 1, 7, 6))},
      {"XLA: a dim of both, and a spatial dim",
       "conv GXYBI,GxyOI->GXYBO --mesh x=2,y=2 --in 4@x,12@y,12,3,5 --in 4@x,6@y,6,2,5 --out 4@x,7@y,7,3,2",
       all_gather(f32(2, 6, 6, 2, 5), 2) + permute(f32(2, 2, 12, 3, 5)) + permute(f32(2, 3, 12, 3, 5))},
      {"XLA: the batch", "conv XBI,IOx->XBO --mesh x=2 --in 8,16@x,12 --in 12,8,1 --out 8,16@x,8", nothing},
      {"XLA: taps and operand", "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,8@x,8,6 --in 4,8@x,8,5 --out 1,1,6,5",
       all_reduce(f32(1, 1, 6, 5), 2)},
      {"XLA: the operand's spatial dim, the taps' batch", "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,8@x,8,6 --in 4@x,8,8,5 --out 1,1,6,5",
       all_to_all(f32(4, 4, 8, 6), 2) + all_reduce(f32(1, 1, 6, 5), 2)},
      {"XLA: the operand's spatial dim, the taps' batch, dilated",
       "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,8@x,8,6 --in 4@x,4,4,5 --high -1 --window-dilation 2 --out "
       "1,1,6,5",
       all_to_all(f32(2, 4, 4, 5), 2) + all_reduce(f32(1, 1, 6, 5), 2)},
      {"XLA: taps and operand, padded", "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,8@x,8,6 --in 4,8@x,8,5 --pad 1 --out 3,3,6,5",
       permute(f32(4, 1, 8, 5)) + permute(f32(4, 1, 8, 5)) + all_reduce(f32(3, 3, 6, 5), 2)},
      {"XLA: taps and operand, dilated",
       "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,16@x,16,3 --in 4,8@x,8,5 --low 3 --high 2 --window-dilation 2 "
       "--out 7,7,3,5",
       permute(f32(4, 2, 8, 5)) + permute(f32(4, 2, 8, 5)) + all_reduce(f32(7, 7, 3, 5), 2)},
      {"XLA: taps and operand, dilated, negative padding",
       "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,8@x,8,6 --in 4,4@x,4,5 --high -1 --window-dilation 2 --out "
       "1,1,6,5",
       all_reduce(f32(1, 1, 6, 5), 2)},
      {"XLA: taps and operand, dilated, blocks do not divide",
       "conv BXYI,BxyO->XYIO --mesh x=2 --in 4,6@x,6,6 --in 4,3@x,3,5 --low 1 --window-dilation 2 --out "
       "3,3,6,5",
       permute(f32(4, 1, 3, 5)) + all_reduce(f32(3, 3, 6, 5), 2)},
      {"XLA: taps and operand on four devices, dilated, blocks do not divide",
       "conv BXYI,BxyO->XYIO --mesh x=4 --in 4,20@x,20,3 --in 4,10@x,10,5 --high -1 --window-dilation 2 "
       "--out 1,1,3,5",
       permute(f32(4, 2, 20, 3)) + all_reduce(f32(1, 1, 3, 5), 4)},
  });
}

TEST_CASE("conv: as Shardy and PyTorch's DTensor") {
  check({
      {"Shardy: the batch",
       "conv BXYI,xyIO->BXYO --mesh x=2,y=4 --in 4@x,16,16,3 --in 3,3,3,8 --stride 2 --low 0 --high 1 --out "
       "4@x,8,8,8",
       nothing},
      {"Shardy: the batch, the result whole",
       "conv BXYI,xyIO->BXYO --mesh x=4,y=2 --in 4@x,16,16,3 --in 3,3,3,8 --stride 2 --low 0 --high 1 --out "
       "4,8,8,8",
       all_gather(f32(4, 8, 8, 8), 4)},
      {"Shardy: features of the result",
       "conv BXYI,xyIO->BXYO --mesh x=2,y=4 --in 4,16,16,3 --in 3,3,3,8@x --stride 2 --low 0 --high 1 --out "
       "4,8,8,8@x",
       nothing},
      {"Shardy: groups of features",
       "conv BXYGI,xyIGO->BXYGO --mesh x=2,y=4 --in 4,16,16,2@x,3 --in 3,3,3,2@x,8 --stride 2 --low 0 --high "
       "1 --out 4,8,8,2@x,8",
       nothing},
      {"Shardy: summed features", "conv BXYI,xyIO->BXYO --mesh x=2,y=2 --in 2,8,8,4@x --in 2,2,4@x,6 --stride 2 --out 2,4,4,6",
       all_reduce(f32(2, 4, 4, 6), 2)},
      {"Shardy: summed features and taps", "conv BXYI,xyIO->BXYO --mesh x=2,y=2 --in 2,8,8,4@y --in 2@x,2,4@y,12 --stride 2 --out 2,4,4,12",
       all_reduce(f32(2, 4, 4, 12), 4)},
      {"DTensor: windows that do not overlap", "conv BIXY,OIxy->BOXY --mesh x=2 --in 3,3,16,32@x --in 8,3,4,4 --stride 4 --out 3,8,4,8@x",
       nothing},
      {"DTensor: depthwise", "conv BGXY,Gxy->BGXY --mesh x=2 --in 2,8,16,32@x --in 8,7,7 --pad 3 --out 2,8,16,32@x",
       permute(f32(2, 8, 16, 3)) + permute(f32(2, 8, 16, 3))},
      {"DTensor: all whole, one dim", "conv BIX,OIx->BOX --mesh x=2 --in 1,6,8 --in 6,6,3 --pad 1", nothing, "1,6,8"},
      {"DTensor: all whole, three dims", "conv BIXYZ,OIxyz->BOXYZ --mesh x=2 --in 1,6,4,4,4 --in 6,6,3,3,3 --pad 1", nothing, "1,6,4,4,4"},
  });
}
