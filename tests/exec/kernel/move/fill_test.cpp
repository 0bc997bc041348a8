// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/fill.hpp>

#include "../support.hpp"

using namespace test;

TEST_CASE("fill: does not depend on the sharding") {
  const gshard::random_key key{5, 6, 7};
  check_independent_of_sharding<float>(
      [&](float* out, const ks::placement& p) { ks::fill_normal(out, p, 2.0, key); });
  check_independent_of_sharding<double>(
      [&](double* out, const ks::placement& p) { ks::fill_normal(out, p, 0.5, key); });
}

TEST_CASE("fill: the numbers are those of the stream") {
  const gshard::random_key key{1, 2, 3};
  std::vector<float> normal(1000);
  ks::fill_normal(normal.data(), ks::whole(2, {10, 100}), 1.0, key);
  bool same = true;
  for (std::size_t i = 0; i < 1000; ++i) same = same && normal[i] == ks::normal_block(key, i / 4)[i % 4];
  CHECK(same);
}

TEST_CASE("fill: moments of the normal distribution") {
  constexpr std::int64_t n = 1 << 17;
  std::vector<double> z(n);
  ks::fill_normal(z.data(), ks::whole(1, {n}), 3.0, {9, 0, 1});
  double moment[5] = {};
  for (double x : z)
    for (int k = 1, i = 0; i < 4; ++i, ++k) {
      double power = 1;
      for (int j = 0; j < k; ++j) power *= x / 3;
      moment[k] += power / n;
    }
  CHECK(moment[1] == doctest::Approx(0).epsilon(0.02));
  CHECK(moment[2] == doctest::Approx(1).epsilon(0.02));
  CHECK(moment[3] == doctest::Approx(0).epsilon(0.05));
  CHECK(moment[4] == doctest::Approx(3).epsilon(0.03));
}

TEST_CASE("fill: uniform numbers are those of the stream, whatever the sharding") {
  const gshard::random_key key{4, 5, 6};
  check_independent_of_sharding<double>([&](double* out, const ks::placement& p) { ks::fill_uniform(out, p, key); });
  std::vector<float> u(1000);
  ks::fill_uniform(u.data(), ks::whole(2, {10, 100}), key);
  bool same = true;
  for (std::size_t i = 0; i < 1000; ++i) same = same && u[i] == gshard::uniform01(key, i);
  CHECK(same);
}
