// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/testing/all_shardings.hpp>

using gshard::testing::all_shardings;

// An axis shards one of the dims, or none. Two axes shard one dim in both orders. With partial sums, one more choice per axis.
static_assert(all_shardings(0, 1).size() == 1 && all_shardings(2, 1).size() == 3 && all_shardings(2, 2).size() == 11);
static_assert(all_shardings(2, 1, true).size() == 4 && all_shardings(2, 2, true).size() == 18);
