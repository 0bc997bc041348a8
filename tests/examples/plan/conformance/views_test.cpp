// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.hpp"

using namespace conformance;

TEST_CASE("reshape: as XLA's SPMD partitioner") {
  check({
      {"XLA: the cut dim stays", "reshape --mesh x=2 --in 8@x,6,12 --out 8@x,6,3,4", nothing},
      {"XLA: another dim that stays is sharded", "reshape --mesh x=2 --in 8@x,6,12 --out 8,6@x,3,4", all_to_all(f32(4, 6, 12), 2)},
      {"XLA: a new dim is sharded", "reshape --mesh x=2 --in 8@x,6,12 --out 8,6,2,6@x", all_to_all(f32(4, 6, 2, 6), 2)},
      {"XLA: the cut dim stays, partially replicated", "reshape --mesh x=2,y=2 --in 8@x,6,12 --out 8@x,6,3,4", nothing},
      {"XLA: merged, blocks do not divide", "reshape --mesh x=2 --in 2,3,7@x,10 --out 3,2,1,14@x,5", permute(f32(3, 2, 1, 1, 5))},
      {"XLA: merged, blocks do not divide, partially replicated", "reshape --mesh x=2,y=2 --in 2,3,7@x,10 --out 3,2,1,14@x,5",
       permute(f32(3, 2, 1, 1, 5))},
      {"XLA: fewer rows than devices, gathered in part", "reshape --mesh x=2,y=4 --in 2@(x,y),12 --out 2@x,1,12",
       permute(f32(1, 12)) + permute(f32(1, 12)) + permute(f32(1, 12)) + all_gather(f32(4, 12), 4)},
  });
}

TEST_CASE("reshape: as Shardy's explicit reshards: dims merged") {
  check({
      {"Shardy: cut before, moved after", "reshape --mesh x=4,y=2 --in 16@x,2,4 --out 16,8@(y,x)", all_to_all(f32(4, 4), 4)},
      {"Shardy: the first dim, alike", "reshape --mesh x=4,y=2 --in 4@x,8 --out 32@x", nothing},
      {"Shardy: the first dim, on a smaller axis", "reshape --mesh x=4,y=2 --in 4@x,8 --out 32@y",
       permute(f32(8)) + all_gather(f32(16), 2)},
      {"Shardy: the first dim, longer than its axis", "reshape --mesh x=4,y=2 --in 4@y,8 --out 32@y", nothing},
      {"Shardy: the first dim, on a larger axis", "reshape --mesh x=4,y=2 --in 4@y,8 --out 32@x", permute(f32(1, 8))},
      {"Shardy: both dims", "reshape --mesh x=4,y=2 --in 4@x,8@y --out 32@(x,y)", nothing},
      {"Shardy: both dims, another order", "reshape --mesh x=2,xx=2,y=2 --in 4@(x,xx),8@y --out 32@(y,x,xx)", permute(f32(1, 4))},
      {"Shardy: both dims, the second is gathered", "reshape --mesh x=4,y=2 --in 4@x,8@y --out 32@x", all_gather(f32(8), 2)},
      {"Shardy: both dims, the first longer than its axis", "reshape --mesh x=2,xx=2,y=2 --in 4@y,8@(x,xx) --out 32@(y,x,xx)",
       permute(f32(2, 2)) + all_to_all(f32(2, 2), 2)},
      {"Shardy: both dims, the second is gathered, the first longer", "reshape --mesh x=4,y=2 --in 4@y,8@x --out 32@y",
       all_gather(f32(2, 8), 4)},
      {"Shardy: the second dim, the result whole", "reshape --mesh x=4,y=2 --in 4,8@x --out 32", all_gather(f32(4, 8), 4)},
      {"Shardy: the second dim, the result cut", "reshape --mesh x=4,y=2 --in 4,8@x --out 32@x", all_to_all(f32(4, 2), 4)},
      {"Shardy: sub-axes of both dims", "reshape --mesh x=2,xx=2,y=2 --in 2@x,8@(xx,y) --out 16@(x,xx,y)", nothing},
      {"Shardy: sub-axes of the result alone", "reshape --mesh x=2,xx=2,y=2 --in 2,8 --out 16@(x,xx,y)", nothing},
      {"Shardy: of three dims, the middle one", "reshape --mesh x=4,y=2 --in 2,2@y,4 --out 4,2,2@y", all_gather(f32(2, 2, 4), 2)},
      {"Shardy: a part of a dim goes to the next", "reshape --mesh x=4,y=2 --in 8,8@x --out 4@x,16", all_to_all(f32(8, 2), 4)},
  });
}

TEST_CASE("reshape: as Shardy's explicit reshards: dims split") {
  check({
      {"Shardy: to the first dim", "reshape --mesh x=4,y=2 --in 32@x --out 4@x,8", nothing},
      {"Shardy: to the first dim, longer than its axis", "reshape --mesh x=4,y=2 --in 32@y --out 4@y,8", nothing},
      {"Shardy: to both dims", "reshape --mesh x=4,y=2 --in 32@(x,y) --out 4@x,8@y", nothing},
      {"Shardy: to both dims, the first longer than its axis", "reshape --mesh x=2,xx=2,y=2 --in 32@(y,x,xx) --out 4@y,8@(x,xx)",
       all_to_all(f32(1, 4), 2) + permute(f32(2, 2))},
      {"Shardy: to the second dim, from whole", "reshape --mesh x=4,y=2 --in 32 --out 4,8@x", nothing},
      {"Shardy: sub-axes to both dims", "reshape --mesh x=2,xx=2,y=2 --in 16@(x,xx,y) --out 2@x,8@(xx,y)", nothing},
  });
}

TEST_CASE("reshape: as PyTorch's DTensor") {
  check({
      {"DTensor: flatten", "reshape --mesh x=2 --in 24@x,36 --to 864", nothing, "864@x"},
      {"DTensor: flatten three", "reshape --mesh x=2 --in 6@x,12,24 --to 72,24", nothing, "72@x,24"},
      {"DTensor: the dim that is not flattened", "reshape --mesh x=2 --in 6,12,24@x --to 72,24", nothing, "72,24@x"},
      {"DTensor: flatten between dims of one", "reshape --mesh x=2 --in 1,1,42@x,1,24,1 --to -1", nothing, "1008@x"},
      {"DTensor: unsqueeze", "reshape --mesh x=2 --in 42@x,24,36 --to 42,1,24,36", nothing, "42@x,1,24,36"},
      {"DTensor: unsqueeze before", "reshape --mesh x=2 --in 24,36@x --to 1,24,36", nothing, "1,24,36@x"},
      {"DTensor: other groups of all dims", "reshape --mesh x=2 --in 48@x,35,26 --to 24,4,35,13", nothing, "24@x,4,35,13"},
      {"DTensor: two axes on one dim", "reshape --mesh x=2,y=2 --in 24@(x,y),36 --to 864", nothing, "864@(x,y)"},
      {"DTensor: a dim split in three", "reshape --mesh x=2 --in 3,24@x --to 1,3,2,4,1,3,1", nothing, "1,3,2@x,4,1,3,1"},
      {"DTensor: a partial sum", "reshape --mesh x=2 --in 6,12+partial(x) --to 72 --keep-partial", nothing, "72+partial(x)"},
  });
}

TEST_CASE("transpose: as XLA's SPMD partitioner, Shardy and PyTorch's DTensor") {
  check({
      {"XLA: the cut dim keeps its axis", "transpose --mesh x=2 --perm 0,3,1,2 --in 8,10@x,10,4 --out 8,4,10@x,10", nothing},
      {"XLA: another dim gets the axis", "transpose --mesh x=2 --perm 0,3,1,2 --in 8,10@x,10,4 --out 8,4@x,10,10",
       all_to_all(f32(8, 5, 10, 4), 2)},
      {"XLA: the cut dim keeps its axis, partially replicated",
       "transpose --mesh x=2,y=2 --perm 0,3,1,2 --in 8,10@x,10,4 --out 8,4,10@x,10", nothing},
      {"XLA: another dim gets the axis, partially replicated", "transpose --mesh x=2,y=2 --perm 0,3,1,2 --in 8,10@x,10,4 --out 8,4@x,10,10",
       all_to_all(f32(8, 5, 10, 4), 2)},
      {"XLA: two dims", "transpose --mesh x=4,y=2 --perm 1,3,0,2 --in 8@x,10@y,10,4 --out 10@y,4,8@x,10", nothing},
      {"XLA: two dims, partially replicated", "transpose --mesh x=2,y=2,z=2 --perm 1,3,0,2 --in 8@x,10@y,10,4 --out 10@y,4,8@x,10",
       nothing},
      {"Shardy: axes go with their dims", "transpose --mesh x=2,y=3 --perm 1,0 --in 8@x,12@y --out 12@y,8@x", nothing},
      {"Shardy: axes stay in their places", "transpose --mesh x=2,y=3 --perm 1,0 --in 8@x,12@y --out 12@x,8@y",
       all_gather(f32(12, 4), 3) + all_to_all(f32(12, 4), 2)},
      {"DTensor: permute", "transpose --mesh x=2 --perm 2,0,1 --in 24@x,36,42", nothing, "42,24@x,36"},
      {"DTensor: permute, negative dims", "transpose --mesh x=2 --perm -1,-3,-2 --in 24,36,42@x", nothing, "42@x,24,36"},
      {"DTensor: transpose the first and the last", "transpose --mesh x=2 --perm 3,1,2,0 --in 24,60,42,60@x", nothing, "60@x,60,42,24"},
  });
}

TEST_CASE("map: as XLA's SPMD partitioner, Shardy and PyTorch's DTensor") {
  check({
      {"XLA: a cut and a whole operand", "map --mesh x=2 --in 5@x,3 --in 5,3 --out 5@x,3", nothing},
      {"XLA: a new dim is sharded", "map --mesh x=2 --in 4,3 --in 6,1,1 --out 6@x,4,3", nothing},
      {"XLA: an old dim is sharded", "map --mesh x=2 --in 4,3 --in 6,1,1 --out 6,4@x,3", nothing},
      {"XLA: an old and a new dim are sharded", "map --mesh x=2,y=2 --in 4,3 --in 6,1,1 --out 6@x,4@y,3", nothing},
      {"XLA: a dim of the operand and a new one", "map --mesh x=2,y=2,z=2 --in 4,3@y --in 6,1,1 --out 6@x,4,3@y", nothing},
      {"Shardy: the result alone", "map --mesh x=4,y=2,z=4 --in 4,32 --out 4@x,32", nothing},
      {"Shardy: the result on a smaller axis", "map --mesh x=4,y=2,z=4 --in 4@x,32 --out 4@y,32",
       permute(f32(1, 32)) + all_gather(f32(2, 32), 2)},
      {"Shardy: the result on a larger axis", "map --mesh x=4,y=2,z=4 --in 4@y,32 --out 4@x,32", permute(f32(1, 32))},
      {"Shardy: other dims", "map --mesh x=4,y=2,z=4 --in 4@x,32 --out 4,32@y", all_gather(f32(4, 16), 4)},
      {"Shardy: other dims, the result on a larger axis", "map --mesh x=4,y=2,z=4 --in 4@y,32 --out 4,32@x", all_gather(f32(4, 8), 2)},
      {"Shardy: a sum, one operand whole", "map --mesh x=4,y=2,z=4 --in 4@x,32 --in 4,32 --out 4@x,32", nothing},
      {"Shardy: a sum, the result on a smaller axis", "map --mesh x=4,y=2,z=4 --in 4@x,32 --in 4@x,32 --out 4@y,32",
       permute(f32(1, 32)) + all_gather(f32(2, 32), 2)},
      {"Shardy: a sum, the result on a larger axis", "map --mesh x=4,y=2,z=4 --in 4@y,32 --in 4@y,32 --out 4@x,32", permute(f32(1, 32))},
      {"Shardy: a sum, other dims", "map --mesh x=4,y=2,z=4 --in 4@x,32 --in 4@x,32 --out 4,32@y", all_gather(f32(4, 16), 4)},
      {"Shardy: a sum, the result whole", "map --mesh x=4,y=2,z=4 --in 4@x,32 --in 4@x,32 --out 4,32", all_gather(f32(4, 32), 4)},
      {"DTensor: broadcast to a new dim", "map --mesh x=2 --in 24@x,36 --in 42,1,1", nothing, "42,24@x,36"},
      {"DTensor: partial sums are added", "map --mesh x=4 --in 4,8+partial(x) --in 4,8+partial(x) --keep-partial", nothing,
       "4,8+partial(x)"},
  });
}
