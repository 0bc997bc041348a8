// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/random/dropout_kernel.hpp>

#include "../../exec/kernel/support.hpp"

using namespace test;

TEST_CASE("dropout: keeps and scales by the uniform number of the global index") {
  std::mt19937 gen(1);
  const gshard::random_key key{11, 2, 3};
  for (double rate : {0.0, 0.1, 0.5, 1.0}) {
    const auto x = random_values<float>(5000, gen);
    std::vector<float> y(x.size());
    ks::dropout(x.data(), y.data(), ks::whole(1, {5000}), rate, key);
    bool same = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool kept = gshard::uniform01(key, i) >= static_cast<float>(rate);
      same = same && y[i] == (kept ? x[i] * static_cast<float>(1 / (1 - rate)) : 0.0F);
    }
    CHECK(same);
  }
}

TEST_CASE("dropout: does not depend on the sharding") {
  const std::vector<double> ones(7 * 7 * 7 * 7, 1);
  check_independent_of_sharding<double>([&](double* out, const ks::placement& p) {
    ks::dropout(ones.data(), out, p, 0.4, {5, 6, 7});
  });
}
