// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/filled_rows.hpp>

#include <gshard/exec/kernel/gemm/contract.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace ks = gshard::kernel;

TEST_CASE("runs of filled rows cover every row that has a number, in order, and whole grains") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t rows = std::int64_t(gen() % 70), cols = std::int64_t(gen() % 5 + 1),
                       ld = cols + std::int64_t(gen() % 3), grain = std::int64_t(gen() % 9 + 1);
    std::vector<float> x(std::size_t(rows * ld), 7.0f);  // also outside the matrix
    std::vector<bool> filled(std::size_t(rows), false), told(std::size_t(rows), false);
    bool now = false;
    for (std::int64_t i = 0; i < rows; ++i) {
      if (gen() % 8 == 0) now = !now;
      filled[std::size_t(i)] = now;
      for (std::int64_t j = 0; j < cols; ++j) x[std::size_t(i * ld + j)] = now && j == cols - 1 ? 1.0f : 0.0f;
    }
    CHECK(ks::detail::ends_in_zeros(x.data(), rows, cols, ld) == (rows > 0 && !filled.back()));
    std::int64_t next = 0;
    ks::detail::for_each_filled(x.data(), rows, cols, ld, grain, [&](std::int64_t begin, std::int64_t end) {
      CHECK(begin >= next);
      CHECK(begin < end);
      CHECK(begin % grain == 0);
      CHECK((end % grain == 0 || end == rows));
      for (std::int64_t i = begin; i < end; ++i) told[std::size_t(i)] = true;
      next = end;
    });
    for (std::int64_t i = 0; i < rows; ++i) CHECK((told[std::size_t(i)] || !filled[std::size_t(i)]));
  }
}

namespace {

/// The first letters of the dims, in this order: expert, group, slot, model, hidden.
enum { expert, group, place, model, hidden };

ks::operand_dims dims(std::initializer_list<int> factors, const std::int64_t (&extent)[5]) {
  ks::operand_dims d{};
  for (const int f : factors) {
    d.factor[std::size_t(d.rank)] = f;
    d.extent[std::size_t(d.rank++)] = extent[f];
  }
  return d;
}

/// Buffers with empty slots, weights and gradients with some non-finite elements. Compares their products with sums over all indices.
void check_products(std::uint32_t seed, int not_finite) {
  CAPTURE(seed);
  CAPTURE(not_finite);
  std::mt19937 gen(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  const std::int64_t e[5]{3, std::int64_t(gen() % 3 + 1), std::int64_t(gen() % 60 + 20), 40, 56};
  const auto numbers = [&](std::int64_t n) {
    std::vector<double> v(static_cast<std::size_t>(n));
    for (double& x : v) x = draw(gen);
    return v;
  };
  const auto empty_places = [&](std::vector<double> v, std::int64_t cols,
                                const std::vector<std::int64_t>& filled) {
    for (std::size_t block = 0; block < filled.size(); ++block)
      for (std::int64_t c = filled[block]; c < e[place]; ++c)
        for (std::int64_t m = 0; m < cols; ++m)
          v[std::size_t((std::int64_t(block) * e[place] + c) * cols + m)] = 0;
    return v;
  };
  std::vector<std::int64_t> filled;
  for (std::int64_t i = 0; i < e[expert] * e[group]; ++i)
    filled.push_back(std::int64_t(gen() % 3 ? gen() % std::uint64_t(e[place] + 1) : 0));
  const auto spoil = [&](std::vector<double> v) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (int i = 0; i < not_finite && !v.empty(); ++i)
      v[gen() % v.size()] = gen() % 3 == 0 ? std::nan("") : gen() % 2 ? infinity : -infinity;
    return v;
  };
  const auto x = empty_places(numbers(e[expert] * e[group] * e[place] * e[model]), e[model], filled);
  const auto dy = empty_places(numbers(e[expert] * e[group] * e[place] * e[hidden]), e[hidden], filled);
  const auto w = spoil(numbers(e[expert] * e[model] * e[hidden]));
  const auto bad_x = spoil(x), bad_dy = spoil(dy);
  const auto check = [&](std::initializer_list<int> a, const std::vector<double>& av,
                         std::initializer_list<int> b, const std::vector<double>& bv,
                         std::initializer_list<int> out) {
    const ks::operand_dims od = dims(out, e);
    std::vector<double> y(std::size_t(ks::element_count(od.rank, od.extent)), std::nan(""));
    ks::contraction<double>(dims(a, e), dims(b, e), od).run(av.data(), bv.data(), y.data());
    // Index by index.
    double worst = 0;
    std::vector<double> expected(y.size(), 0.0);
    std::int64_t at[5];
    const auto offset = [&](std::initializer_list<int> factors) {
      std::int64_t o = 0;
      for (const int f : factors) o = o * e[f] + at[f];
      return std::size_t(o);
    };
    for (at[0] = 0; at[0] < e[0]; ++at[0])
      for (at[1] = 0; at[1] < e[1]; ++at[1])
        for (at[2] = 0; at[2] < e[2]; ++at[2])
          for (at[3] = 0; at[3] < e[3]; ++at[3])
            for (at[4] = 0; at[4] < e[4]; ++at[4]) expected[offset(out)] += av[offset(a)] * bv[offset(b)];
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (y[i] == expected[i] || (std::isnan(y[i]) && std::isnan(expected[i]))) continue;
      const double d = std::abs(y[i] - expected[i]);
      worst = d <= worst ? worst : std::isnan(d) ? 1 : d;
    }
    CHECK(worst < 1e-12);
  };
  check({expert, group, place, model}, x, {expert, model, hidden}, w, {expert, group, place, hidden});
  check({expert, group, place, hidden}, dy, {expert, model, hidden}, w, {expert, group, place, model});
  check({expert, group, place, model}, x, {expert, group, place, hidden}, bad_dy, {expert, model, hidden});
  check({expert, group, place, model}, bad_x, {expert, group, place, hidden}, dy, {expert, model, hidden});
}

}  // namespace

TEST_CASE("products of half-empty buffers are those of all rows, forward and in both gradients") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) check_products(seed, 0);
}

TEST_CASE("rows of zeros that meet NaN or infinity make NaN") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) check_products(seed, 1 + int(seed % 3));
}

TEST_CASE("rows that are not numbers are multiplied") {
  const std::int64_t n = 64;
  std::vector<float> a(std::size_t(n * n), 0.0f), b(a.size(), 1.0f), c(a.size(), 5.0f);
  a[std::size_t((n - 1) * n + 3)] = std::numeric_limits<float>::quiet_NaN();
  ks::operand_dims x{}, y{}, z{};
  x.rank = y.rank = z.rank = 2;
  x.factor = {0, 1}, y.factor = {1, 2}, z.factor = {0, 2};
  x.extent = y.extent = z.extent = {n, n};
  ks::contraction<float>(x, y, z).run(a.data(), b.data(), c.data());
  CHECK(std::isnan(c[std::size_t((n - 1) * n)]));
  CHECK(c[0] == 0.0f);
}
