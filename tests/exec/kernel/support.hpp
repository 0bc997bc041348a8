// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernel/view.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace test {

namespace ks = gshard::kernel;

inline std::int64_t pick(std::mt19937& gen, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(gen);
}

template <class T = double>
std::vector<T> random_values(std::int64_t n, std::mt19937& gen, T low = -1, T high = 1) {
  std::vector<T> v(static_cast<std::size_t>(n));
  std::uniform_real_distribution<T> uniform(low, high);
  for (T& e : v) e = uniform(gen);
  return v;
}

inline double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Compares `found` with the central differences of loss() with respect to the elements of x.
template <class Loss>
void check_gradient(const std::vector<double>& found, std::vector<double>& x, Loss loss) {
  REQUIRE(found.size() == x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i], step = 1e-5;
    x[i] = before + step;
    const double up = loss();
    x[i] = before - step;
    const double down = loss();
    x[i] = before;
    CHECK(found[i] == doctest::Approx((up - down) / (2 * step)).epsilon(1e-6));
  }
}

/// Calls f(index, linear) for every index of a row-major block.
template <class F>
void for_each_index(int rank, const ks::index_array& extent, F f) {
  const ks::index_array stride = ks::row_major_strides(rank, extent);
  for (std::int64_t linear = 0; linear < ks::element_count(rank, extent); ++linear) {
    ks::index_array index{};
    for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d)
      index[d] = linear / stride[d] % extent[d];
    f(index, linear);
  }
}

inline std::int64_t offset_of(int rank, const ks::index_array& index, const ks::index_array& stride) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) at += index[d] * stride[d];
  return at;
}

/// A random shard, maybe empty, of a random small tensor.
inline ks::placement random_placement(std::mt19937& gen) {
  ks::placement p;
  p.rank = static_cast<int>(pick(gen, 0, 4));
  for (std::size_t d = 0; d < static_cast<std::size_t>(p.rank); ++d) {
    p.global[d] = pick(gen, 1, 7);
    p.offset[d] = pick(gen, 0, 1) == 0 ? 0 : pick(gen, 0, p.global[d]);
    p.extent[d] =
        p.offset[d] == 0 && pick(gen, 0, 1) == 0 ? p.global[d] : pick(gen, 0, p.global[d] - p.offset[d]);
  }
  return p;
}

/// Checks that a kernel writes the same values into a shard as into that part of the whole tensor. kernel(out, placement).
template <class T, class Kernel>
void check_independent_of_sharding(Kernel kernel) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const ks::placement part = random_placement(gen);
    std::vector<T> all(static_cast<std::size_t>(ks::element_count(part.rank, part.global)));
    std::vector<T> some(static_cast<std::size_t>(ks::element_count(part.rank, part.extent)));
    kernel(all.data(), ks::whole(part.rank, part.global));
    kernel(some.data(), part);
    const auto stride = ks::row_major_strides(part.rank, part.global);
    const std::int64_t first = offset_of(part.rank, part.offset, stride);
    bool same = true;
    for_each_index(part.rank, part.extent, [&](const ks::index_array& index, std::int64_t linear) {
      same = same && some[static_cast<std::size_t>(linear)] ==
                         all[static_cast<std::size_t>(first + offset_of(part.rank, index, stride))];
    });
    CHECK(same);
  }
}

/// True if two arrays have the same numbers up to `tolerance`, relative to the second, the same infinities, and NaN in the same elements.
template <class T, class Expected>
bool same_numbers(const std::vector<T>& found, const std::vector<Expected>& expected, double tolerance = 0) {
  bool same = found.size() == expected.size();
  for (std::size_t i = 0; same && i < found.size(); ++i) {
    const double x = double(found[i]), y = double(expected[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    same = std::isfinite(y) && std::abs(x - y) <= tolerance * (1 + std::abs(y));
  }
  return same;
}

/// Calls f(row) for rows of `cols` random numbers. At every position they have NaN, infinity or both signs of it, alone or with another one
/// elsewhere. Also for a row of only such numbers, and for a row without them.
template <class T, class F>
void for_each_spoilt_row(std::int64_t cols, std::mt19937& gen, F f) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto row = random_values<T>(cols, gen, -5, 5);
  f(row);
  for (const T bad : {nan, infinity, -infinity}) {
    f(std::vector<T>(row.size(), bad));
    for (std::size_t at = 0; at < row.size(); ++at)
      for (const T other : {T(1), nan, infinity, -infinity}) {
        std::vector<T> x = row;
        x[gen() % x.size()] = other;
        x[at] = bad;
        f(x);
      }
  }
}

}  // namespace test
