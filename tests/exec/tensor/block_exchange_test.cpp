// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random decompositions of arrays become tensors, and tensors become blocks again, on simulated devices.
#include "random_blocks.hpp"

TEST_CASE("local blocks: random decompositions, any sharding; a device receives what it lacks") {
  using mesh = gshard::mesh<gshard::axis<"x">, gshard::axis<"y">>;
  std::uint32_t seed = 0;
  for (const auto& extents : {std::vector{1, 1}, {2, 1}, {1, 3}, {2, 2}, {5, 1}, {3, 2}, {7, 1}, {4, 2}})
    for (int i = 0; i < 18; ++i) random_blocks::check_all(gshard::simulate<mesh>(extents), ++seed);  // 1008 decompositions
}
