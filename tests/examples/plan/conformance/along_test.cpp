// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.hpp"

// Results of sort and top-k are two tensors, values and indices. The traffic of the other partitioners is also counted for both.
using namespace conformance;

TEST_CASE("reduce: as XLA's SPMD partitioner") {
  check({
      {"XLA: to a scalar", "reduce --mesh x=2 --in 3@x,3 --out scalar", all_reduce(f32(), 2)},
      {"XLA: the kept dim is sharded", "reduce --mesh x=2 --in 4,8,8,32@x --dims 0,1,2 --out 32@x", nothing},
      {"XLA: both are sharded, partially replicated", "reduce --mesh x=2,y=2,z=2 --in 4@x,4@y --dims 0 --out 4@y", all_reduce(f32(2), 2)},
      {"XLA: a reduced dim's axis cuts the result", "reduce --mesh x=2 --in 4,8@x,8,32 --dims 0,1,2 --out 32@x", all_reduce(f32(32), 2)},
      {"XLA: argmax, the kept dim is sharded", "reduce --kind argmax --mesh x=2 --in 28@x,10 --dims 1 --out 28@x", nothing},
      {"XLA: argmax, both are sharded", "reduce --kind argmax --mesh x=2,y=4 --in 28@x,12@y --dims 1 --out 28@x",
       all_gather(f32(14, 4), 4) + all_gather(f32(14, 4), 4)},
      {"XLA: argmin, the reduced dim is sharded", "reduce --kind argmin --mesh x=2 --in 28,12@x --dims 1 --out 28",
       all_gather(f32(28, 2), 2) + all_gather(f32(28, 2), 2)},
  });
}

TEST_CASE("reduce: as Shardy's explicit reshards") {
  check({
      {"Shardy: the kept dim is sharded", "reduce --mesh x=4,y=2 --in 8@x,64,13 --dims 1 --out 8,13", all_gather(f32(8, 13), 4)},
      {"Shardy: the reduced dim is sharded", "reduce --mesh x=4,y=2 --in 8,64@x,512 --dims 1 --out 8,512", all_reduce(f32(8, 512), 4)},
      {"Shardy: two reduced dims are sharded", "reduce --mesh x=4,y=2 --in 8@y,64@x,4096 --dims 0,1 --out 4096", all_reduce(f32(4096), 8)},
      {"Shardy: two reduced dims are sharded over sub-axes", "reduce --mesh x=2,xx=2,y=2 --in 8@xx,64@(y,x),4096 --dims 0,1 --out 4096",
       all_reduce(f32(4096), 8)},
      {"Shardy: minimum", "reduce --kind min --mesh x=4,y=2 --in 8,64@x,512 --dims 1 --out 8,512", all_reduce(f32(8, 512), 4)},
      {"Shardy: maximum", "reduce --kind max --mesh x=4,y=2 --in 8,64@x,512 --dims 1 --out 8,512", all_reduce(f32(8, 512), 4)},
      {"Shardy: product", "reduce --kind prod --mesh x=4,y=2 --in 8,64@x,512 --dims 1 --out 8,512", all_reduce(f32(8, 512), 4)},
  });
}

TEST_CASE("reduce, softmax and layer-norm: as PyTorch's DTensor") {
  check({
      {"DTensor: sum of the cut dim", "reduce --mesh x=4 --in 12@x,8,8 --dims 0 --keep-partial", nothing, "8,8+partial(x)"},
      {"DTensor: sum of another dim", "reduce --mesh x=4 --in 12@x,8,8 --dims 1", nothing, "12@x,8"},
      {"DTensor: sum of all", "reduce --mesh x=4 --in 12@x,8,8 --keep-partial", nothing, "scalar+partial(x)"},
      {"DTensor: max of the cut dim", "reduce --kind max --mesh x=4 --in 12@x,8,8 --dims 0 --keep-partial", nothing, "8,8+max(x)"},
      {"DTensor: min of the cut dim", "reduce --kind min --mesh x=4 --in 12@x,8,8 --dims 0 --keep-partial", nothing, "8,8+min(x)"},
      {"DTensor: prod of the cut dim", "reduce --kind prod --mesh x=4 --in 12@x,8,8 --dims 0 --keep-partial", nothing, "8,8+prod(x)"},
      {"DTensor: max of all, made whole", "reduce --kind max --mesh x=2 --in 12@x,8,8 --out scalar", all_reduce(f32(), 2)},
      {"DTensor: mean of the cut dim, made whole", "reduce --kind mean --mesh x=4 --in 12@x,64,64 --dims 0 --out 64,64",
       all_reduce(f32(64, 64), 4)},
      {"DTensor: mean of another dim", "reduce --kind mean --mesh x=4 --in 12@x,8,8 --dims 2", nothing, "12@x,8"},
      {"DTensor: argmax, both dims are sharded", "reduce --kind argmax --mesh x=2,y=2 --in 8@x,8@y --dims 1 --out 8",
       all_gather(f32(4, 8), 2) + all_gather(f32(8), 2)},
      {"DTensor: argmin, the kept dim is sharded", "reduce --kind argmin --mesh x=2,y=2 --in 8@y,8 --dims 1 --out 8",
       all_gather(f32(8), 2)},
      {"DTensor: argmin, the other dim is sharded", "reduce --kind argmin --mesh x=2,y=2 --in 8,8@y --dims 1 --out 8",
       all_gather(f32(8, 8), 2)},
      {"DTensor: argmax of a partial sum", "reduce --kind argmax --mesh x=2,y=2 --in 8@y,8+partial(x) --dims 1 --out 8",
       all_reduce(f32(4, 8), 2) + all_gather(f32(8), 2)},
      {"DTensor: softmax along another dim", "softmax --mesh x=4 --in 8@x,12,16", nothing, "8@x,12,16"},
      {"DTensor: softmax along another dim, the middle one", "softmax --mesh x=4 --in 8,12@x,16", nothing, "8,12@x,16"},
      {"DTensor: softmax along the cut dim", "softmax --mesh x=4 --in 8,12,16@x --out 8,12,16", all_gather(f32(8, 12, 16), 4)},
      {"DTensor: layer norm, the batch is sharded", "layer-norm --mesh x=4 --in 20@x,5,12 --gamma 12 --beta 12", nothing, "20@x,5,12"},
      {"DTensor: layer norm, the sequence is sharded", "layer-norm --mesh x=4 --in 20,5@x,12 --gamma 12 --beta 12", nothing, "20,5@x,12"},
      {"DTensor: layer norm, the normalized dim is sharded", "layer-norm --mesh x=4 --in 20,5,12@x --gamma 12 --beta 12 --out 20,5,12",
       all_gather(f32(20, 5, 12), 4)},
  });
}

TEST_CASE("sort, top-k and cumsum: as XLA's SPMD partitioner and PyTorch's DTensor") {
  check({
      {"XLA: sorted along another dim", "sort --mesh x=2 --in 6,14@x,20 --dim 2 --out 6,14@x,20", nothing},
      {"XLA: top-k of the cut dim", "top-k --mesh x=2 --in 2,640@x --k 20 --out 2,20",
       all_gather(f32(2, 40), 2) + all_gather(f32(2, 40), 2)},
      {"XLA: top-k, the batch is sharded", "top-k --mesh x=8 --in 8@x,320 --k 2 --out 8@x,2", nothing},
      {"XLA: top-k, the batch is sharded, made whole", "top-k --mesh x=8 --in 8@x,320 --k 2 --out 8,2",
       all_gather(f32(8, 2), 8) + all_gather(f32(8, 2), 8)},
      {"XLA: top-k, both dims are sharded", "top-k --mesh x=4,y=2 --in 8@x,320@y --k 2 --out 8@x,2",
       all_gather(f32(2, 4), 2) + all_gather(f32(2, 4), 2)},
      {"XLA: top-k, both dims are sharded, made whole", "top-k --mesh x=4,y=2 --in 8@x,320@y --k 2 --out 8,2",
       all_gather(f32(2, 4), 2) + all_gather(f32(2, 4), 2) + all_gather(f32(8, 2), 4) + all_gather(f32(8, 2), 4)},
      {"XLA: top-k, no shard of the dim", "top-k --mesh x=2 --in 2@x,640 --k 20 --out 2,20",
       all_gather(f32(2, 20), 2) + all_gather(f32(2, 20), 2)},
      {"DTensor: top-k of the cut dim", "top-k --mesh x=4 --in 12@x,8,8 --k 3 --dim 0 --out 3,8,8", all_gather(f32(12, 8, 8), 4)},
      {"DTensor: top-k of another dim", "top-k --mesh x=4 --in 12,8@x,8 --k 3 --dim 0", nothing, "3,8@x,8"},
      {"DTensor: top-k, all whole", "top-k --mesh x=4 --in 12,8,8 --k 3 --dim 0", nothing, "3,8,8"},
      {"DTensor: running sums along the cut dim", "cumsum --mesh x=4 --in 3@x,5 --dim 0 --out 3,5", all_gather(f32(4, 5), 4)},
      {"DTensor: running sums along another dim", "cumsum --mesh x=4 --in 3@x,5 --dim 1", nothing, "3@x,5"},
  });
}

TEST_CASE("sort: as Shardy's explicit reshards") {
  check({
      {"Shardy: the sorted dim is sharded", "sort --mesh x=4,y=2 --in 4@x,32,8 --dim 0 --out 4,32,8", all_gather(f32(4, 32, 8), 4)},
      {"Shardy: the sorted dim is sharded, all others are of one", "sort --mesh x=4,y=2 --in 1,8@x,1 --dim 1 --out 1,8,1",
       all_gather(f32(8), 4)},
      {"Shardy: two dims are sharded, the result whole", "sort --mesh x=4,y=2 --in 4@x,32@y,8 --dim 0 --out 4,32,8",
       all_gather(f32(4, 16, 8), 4) + all_gather(f32(4, 32, 8), 2) + all_gather(f32(4, 32, 8), 2)},
      {"Shardy: another dim is sharded alike", "sort --mesh x=4,y=2 --in 4,32@y,8 --dim 0 --out 4,32@y,8", nothing},
      {"Shardy: the sorted dim is sharded before and after", "sort --mesh x=4,y=2 --in 4@x,32@y,8 --dim 0 --out 4@x,32@y,8",
       all_to_all(f32(1, 16, 8), 4) + all_to_all(f32(4, 4, 8), 4) + all_to_all(f32(4, 4, 8), 4)},
      {"Shardy: the sorted dim is sharded by other axes before and after",
       "sort --mesh x=4,y=2,z=4 --in 4@x,32@z,8 --dim 0 --out 4@y,32@z,8", all_gather(f32(4, 8, 8), 4)},
      {"Shardy: another dim is sharded by another axis", "sort --mesh x=4,y=2 --in 4,32@x,8 --dim 0 --out 4,32@y,8",
       permute(f32(4, 8, 8)) + all_gather(f32(4, 16, 8), 2) + permute(f32(4, 8, 8)) + all_gather(f32(4, 16, 8), 2)},
  });
}

TEST_CASE("gather: as XLA's SPMD partitioner, Shardy and PyTorch's DTensor") {
  check({
      {"XLA: all whole, the result cut", "gather --mesh x=2 --in 4,9 --ids 3 --out 3,9@x", nothing},
      {"XLA: along the rows", "gather --mesh x=2 --in 4,9@x --ids 3 --out 3,9@x", nothing},
      {"XLA: along the rows, partially replicated", "gather --mesh x=2,y=2 --in 4,9@x --ids 3 --out 3,9@x", nothing},
      {"XLA: the indices", "gather --mesh x=2,y=2 --in 7,8 --ids 4@x,6@y --out 4@x,6@y,8", nothing},
      {"XLA: the indices, partially replicated", "gather --mesh x=2,y=2,z=2 --in 7,8 --ids 4@x,6@y --out 4@x,6@y,8", nothing},
      {"XLA: the indices and the rows", "gather --mesh x=2,y=2 --in 7,12@y --ids 16@x --out 16@x,12@y", nothing},
      {"XLA: the table", "gather --mesh x=2 --in 17@x,9 --ids 2,3 --out 2,3,9", all_reduce(f32(2, 3, 9), 2)},
      {"XLA: the table, partially replicated", "gather --mesh x=2,y=2 --in 17@x,9 --ids 2,3 --out 2,3,9", all_reduce(f32(2, 3, 9), 2)},
      {"XLA: the table and the rows", "gather --mesh x=2,y=2 --in 8@x,6@y --ids 3,4 --out 3,4,6",
       all_reduce(f32(3, 4, 3), 2) + all_gather(f32(3, 4, 6), 2)},
      {"XLA: the rows, and the indices over another axis", "gather --mesh x=2,y=2 --in 8,6@x --ids 4@y,3 --out 4,3,6",
       all_gather(f32(2, 3, 6), 2) + all_gather(f32(4, 3, 6), 2)},
      {"XLA: the table, and the indices over another axis", "gather --mesh x=2,y=2 --in 8@x,6 --ids 4@y,3 --out 4,3,6",
       all_reduce(f32(2, 3, 6), 2) + all_gather(f32(4, 3, 6), 2)},
      {"Shardy: the table, the rows and the indices", "gather --mesh x=2,y=2,z=2 --in 8@x,6@y --ids 4@z --out 4@z,6@y",
       all_reduce(f32(2, 3), 2)},
      {"Shardy: a sum that stays pending", "gather --mesh x=2,y=4 --in 8@x,10 --ids 2 --out 2,10+partial(x)", nothing},
      {"DTensor: an embedding, by column", "gather --mesh x=4 --in 17,12@x --ids 5,4", nothing, "5,4,12@x"},
      {"DTensor: an embedding, by column, indices of four dims", "gather --mesh x=4 --in 23,16@x --ids 8,6,5,4", nothing, "8,6,5,4,16@x"},
      {"DTensor: an embedding, by row", "gather --mesh x=4 --in 16@x,22 --ids 5,12 --keep-partial", nothing, "5,12,22+partial(x)"},
      {"DTensor: an embedding, by row, made whole", "gather --mesh x=4 --in 12@x,20 --ids 8,8 --out 8,8,20", all_reduce(f32(8, 8, 20), 4)},
      {"DTensor: indices of a middle dim", "gather --mesh x=4 --in 16@x,32,16 --ids 4 --dim 1", nothing, "16@x,4,16"},
      {"DTensor: indices of a middle dim, which is sharded", "gather --mesh x=4 --in 12,8@x,16 --ids 4 --dim 1 --keep-partial", nothing,
       "12,4,16+partial(x)"},
      {"DTensor: all whole, cut indices", "gather --mesh x=4 --in 12,8,16 --ids 4@x --dim 1", nothing, "12,4@x,16"},
  });
}

TEST_CASE("scatter: as XLA's SPMD partitioner, Shardy and PyTorch's DTensor") {
  check({
      {"XLA: all whole, the result cut", "scatter --mesh x=2 --in 4,9 --ids 3 --updates 3,9 --out 4,9@x", nothing},
      {"XLA: along the rows", "scatter --mesh x=2 --in 4,9@x --ids 3 --updates 3,9@x --out 4,9@x", nothing},
      {"XLA: along the rows, partially replicated", "scatter --mesh x=2,y=2 --in 4,9@x --ids 3 --updates 3,9@x --out 4,9@x", nothing},
      {"XLA: along the rows, indices of two dims", "scatter --mesh x=2 --in 4,16@x --ids 8,6 --updates 8,6,16@x --out 4,16@x", nothing},
      {"XLA: the indices", "scatter --mesh x=2,y=2 --in 9,8 --ids 4@x,6@y --updates 4@x,6@y,8 --out 9,8",
       all_reduce(f32(9, 8), 2) + all_reduce(f32(9, 8), 2)},
      {"XLA: the indices, partially replicated", "scatter --mesh x=2,y=2,z=2 --in 9,8 --ids 4@x,6@y --updates 4@x,6@y,8 --out 9,8",
       all_reduce(f32(9, 8), 2) + all_reduce(f32(9, 8), 2)},
      {"XLA: the target", "scatter --mesh x=2 --in 17@x,9 --ids 2,3 --updates 2,3,9 --out 17@x,9", nothing},
      {"XLA: the target, partially replicated", "scatter --mesh x=2,y=2 --in 17@x,9 --ids 2,3 --updates 2,3,9 --out 17@x,9", nothing},
      {"XLA: the target and the rows, made whole", "scatter --mesh x=2,y=2 --in 8@x,6@y --ids 3,4 --updates 3,4,6 --out 8,6",
       all_gather(f32(8, 3), 2) + all_gather(f32(8, 6), 2)},
      {"XLA: the rows, and the indices over another axis", "scatter --mesh x=2,y=2 --in 8,6@x --ids 4@y,3 --updates 4,3,6 --out 8,6",
       all_reduce(f32(8, 3), 2) + all_gather(f32(8, 6), 2)},
      {"XLA: the target, and the indices over another axis", "scatter --mesh x=2,y=2 --in 8@x,6 --ids 4@y,3 --updates 4,3,6 --out 8,6",
       all_reduce(f32(4, 6), 2) + all_gather(f32(8, 6), 2)},
      {"Shardy: the indices", "scatter --mesh x=2,y=4 --in 9,8 --ids 4@x,6 --updates 4@x,6,8 --out 9,8", all_reduce(f32(9, 8), 2)},
      {"Shardy: the indices and the rows", "scatter --mesh x=2,y=2 --in 9,8@y --ids 4@x,6 --updates 4@x,6,8 --out 9,8@y",
       all_reduce(f32(9, 4), 2)},
      {"Shardy: the target in its middle dim", "scatter --mesh x=2,y=4 --in 9,8@x,5 --ids 4,6 --updates 9,4,6,5 --dim 1 --out 9,8@x,5",
       nothing},
      {"DTensor: all whole", "scatter --mesh x=4 --in 3,5 --ids 2 --updates 2,5", nothing, "3,5"},
      {"DTensor: rows, indices that occur twice", "scatter --mesh x=4 --in 4,8@x --ids 3 --updates 3,8@x", nothing, "4,8@x"},
      {"DTensor: pending target and updates", "scatter --mesh x=4 --in 4,8+partial(x) --ids 3 --updates 3,8+partial(x) --keep-partial",
       nothing, "4,8+partial(x)"},
  });
}
