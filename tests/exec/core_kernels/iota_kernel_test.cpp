// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/iota_kernel.hpp>

#include "../kernel/support.hpp"

using namespace test;

TEST_CASE("iota: the global index along one dim") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const ks::placement p = random_placement(gen);
    for (int dim = 0; dim < p.rank; ++dim) {
      std::vector<std::int32_t> out(static_cast<std::size_t>(ks::element_count(p.rank, p.extent))), expected;
      for_each_index(p.rank, p.extent, [&](const ks::index_array& index, std::int64_t) {
        const auto d = static_cast<std::size_t>(dim);
        expected.push_back(static_cast<std::int32_t>(index[d] + p.offset[d]));
      });
      ks::iota(out.data(), p, dim);
      CHECK(out == expected);
    }
  }
}
