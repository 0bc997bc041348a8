// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/grouped_product_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace ks = gshard::kernel;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct grouped_case {
  ks::grouped_sizes n;
  std::vector<std::int32_t> count;  // [N,G,E]
  std::vector<int> expert;          // [N,G,R], -1: unused
};

grouped_case make_case(std::uint32_t seed) {
  std::mt19937 gen(seed);
  grouped_case c;
  c.n = {test::pick(gen, 1, 3), test::pick(gen, 0, 3), test::pick(gen, 0, 40),
         test::pick(gen, 1, 4), test::pick(gen, 1, 9), test::pick(gen, 1, 9)};
  for (std::int64_t block = 0; block < c.n.expert_groups * c.n.groups; ++block) {
    std::int64_t left = c.n.rows;
    for (std::int64_t e = 0; e < c.n.experts; ++e) {
      const std::int64_t rows = test::pick(gen, 0, 2) == 0 ? 0 : test::pick(gen, 0, left);
      c.count.push_back(std::int32_t(rows));
      c.expert.insert(c.expert.end(), at(rows), int(e));
      left -= rows;
    }
    c.expert.insert(c.expert.end(), at(left), -1);
  }
  return c;
}
template <class T>
std::vector<T> numbers(std::int64_t n, std::mt19937& gen) {
  const std::vector<double> v = test::random_values(n, gen);
  return {v.begin(), v.end()};
}
/// Unused rows are NaN: they must not be read.
template <class T>
void spoil_unused(std::vector<T>& x, const grouped_case& c, std::int64_t width) {
  for (std::size_t r = 0; r < c.expert.size(); ++r)
    if (c.expert[r] < 0) std::fill_n(x.begin() + std::int64_t(r) * width, width, std::numeric_limits<T>::quiet_NaN());
}
std::int64_t group_of(const grouped_case& c, std::size_t row) { return std::int64_t(row) / (c.n.groups * c.n.rows); }

template <class T>
void check(std::uint32_t seed, double tolerance) {
  CAPTURE(seed);
  const grouped_case c = make_case(seed);
  const std::int64_t in = c.n.in, out = c.n.out, rows = std::int64_t(c.expert.size()), experts = c.n.expert_groups * c.n.experts;
  std::mt19937 gen(seed);
  std::vector<T> x = numbers<T>(rows * in, gen), dy = numbers<T>(rows * out, gen);
  const std::vector<T> w = numbers<T>(experts * in * out, gen);
  spoil_unused(x, c, in);
  spoil_unused(dy, c, out);
  const auto weight = [&](std::size_t r) { return (group_of(c, r) * c.n.experts + c.expert[r]) * in * out; };

  std::vector<T> turned(w.size()), y(at(rows * out), 7), also(y), dw(w.size(), 7);
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t i = 0; i < in * out; ++i) turned[at(e * in * out + i % out * in + i / out)] = w[at(e * in * out + i)];
  ks::grouped_product<T>(x.data(), w.data(), false, c.count.data(), y.data(), c.n);
  ks::grouped_product<T>(x.data(), turned.data(), true, c.count.data(), also.data(), c.n);
  ks::grouped_weight_grad<T>(x.data(), dy.data(), c.count.data(), dw.data(), c.n);

  std::vector<double> expected(y.size(), 0), expected_dw(w.size(), 0);
  for (std::size_t r = 0; r < c.expert.size(); ++r)
    for (std::int64_t i = 0; i < in && c.expert[r] >= 0; ++i)
      for (std::int64_t j = 0; j < out; ++j) {
        const double v = x[r * at(in) + at(i)], d = dy[r * at(out) + at(j)];
        expected[r * at(out) + at(j)] += v * double(w[at(weight(r) + i * out + j)]);
        expected_dw[at(weight(r) + i * out + j)] += v * d;
      }
  CHECK(test::same_numbers(y, expected, tolerance));
  CHECK(test::same_numbers(also, expected, tolerance));
  CHECK(test::same_numbers(dw, expected_dw, tolerance));
}

}  // namespace

TEST_CASE("grouped_product and grouped_weight_grad: loops over rows, whatever the counts; unused rows are zero, and are not read") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    check<double>(seed, 1e-12);
    check<float>(seed, 1e-4);
  }
}

TEST_CASE("grouped_product: in bf16 it is the product of rounded factors") {
  const ks::grouped_sizes n{1, 1, 3, 2, 2, 1};
  const std::vector<std::int32_t> count{1, 2};
  const std::vector<float> x{1.001f, 2, 3, 1.0001f, 5, 6}, w{1, 1, 1, 1};
  std::vector<float> y(3), full(3);
  ks::grouped_product<float>(x.data(), w.data(), false, count.data(), y.data(), n, ks::precision::bf16);
  ks::grouped_product<float>(x.data(), w.data(), false, count.data(), full.data(), n);
  CHECK(y == std::vector<float>{3, 4, 11});
  CHECK(full == std::vector<float>{3.001f, 4.0001f, 11});
}

TEST_CASE("grouped_product: equal bits on any number of threads") {
  std::mt19937 gen(3);
  const ks::grouped_sizes n{2, 2, 300, 3, 64, 48};
  const std::vector<std::int32_t> count{100, 120, 60, 0, 300, 0, 10, 20, 30, 299, 0, 1};
  const auto x = numbers<float>(n.expert_groups * n.groups * n.rows * n.in, gen);
  const auto w = numbers<float>(n.expert_groups * n.experts * n.in * n.out, gen);
  const auto run = [&](int threads) {
    const ks::use_threads use(threads);
    std::vector<float> y(at(n.expert_groups * n.groups * n.rows * n.out)), dw(w.size());
    ks::grouped_product<float>(x.data(), w.data(), false, count.data(), y.data(), n);
    ks::grouped_weight_grad<float>(x.data(), y.data(), count.data(), dw.data(), n);
    y.insert(y.end(), dw.begin(), dw.end());
    return y;
  };
  const std::vector<float> one = run(1);
  for (const int threads : {2, 3, 4}) CHECK(run(threads) == one);
}
