// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/vector.hpp>

#include "support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using namespace test;
using namespace ks::detail;

// Small whole numbers, whose sums are exact in any order.
template <class T>
std::vector<T> whole_numbers(std::int64_t n, std::mt19937& gen) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(pick(gen, -9, 9));
  return v;
}

// `op` applied to all lanes, one group after the other.
template <std::size_t Group, class T, class Op>
void check_across(const std::vector<T>& x, Op op) {
  std::vector<T> y(x.size());
  store<T>(across<T, Group>(load(x.data()), op), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    T expected = x[i / Group * Group];
    for (std::size_t j = 1; j < Group; ++j) expected = op(expected, x[i / Group * Group + j]);
    CHECK(y[i] == expected);
  }
  if constexpr (2 * Group <= static_cast<std::size_t>(lanes<T>)) check_across<2 * Group>(x, op);
}

}  // namespace

TEST_CASE_TEMPLATE("vector: across folds every group of lanes into each of them", T, float, double,
                   std::int32_t) {
  std::mt19937 gen(1);
  const auto x = whole_numbers<T>(lanes<T>, gen);
  check_across<1>(x, plus);
  check_across<1>(x, larger_number);
}

TEST_CASE_TEMPLATE("vector: sums, products and maxima of any length", T, float, double) {
  std::mt19937 gen(2);
  for (std::int64_t n = 0; n <= 9 * lanes<T>; ++n) {
    CAPTURE(n);
    const auto x = whole_numbers<T>(n, gen), y = whole_numbers<T>(n, gen);
    T total = 0, product = 0, most = -std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; i < x.size(); ++i) {
      total += x[i];
      product += x[i] * y[i];
      most = std::max(most, x[i]);
    }
    CHECK(sum(n, x.data()) == total);
    CHECK(dot(n, x.data(), y.data()) == product);
    CHECK(maximum(n, x.data()) == most);
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto with_nan = x;
      with_nan[i] = std::numeric_limits<T>::quiet_NaN();
      CHECK(std::isnan(maximum(n, with_nan.data())));
    }
  }
}

TEST_CASE_TEMPLATE("vector: a sum has the same bits at every alignment", T, float, double) {
  std::mt19937 gen(3);
  for (std::int64_t n : {1, 7, 64, 333}) {
    const auto x = random_values<T>(n, gen);
    for (std::size_t shift = 0; shift < static_cast<std::size_t>(lanes<T>); ++shift) {
      std::vector<T> moved(shift);
      moved.insert(moved.end(), x.begin(), x.end());
      CHECK(sum(n, moved.data() + shift) == sum(n, x.data()));
    }
  }
}

TEST_CASE_TEMPLATE("vector: the exponential of every lane that is not positive", T, float, double) {
  std::mt19937 gen(4);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto x = random_values<T>(lanes<T>, gen, -80, 0);
    std::vector<T> y(x.size());
    store<T>(falling_exponential<T>(load(x.data())), y.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(y[i] / std::exp(x[i]) - 1) <= (2 - x[i]) * std::numeric_limits<T>::epsilon());
  }
}

TEST_CASE_TEMPLATE("vector: the exponential of what is far below 0 is 0, NaN stays NaN", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity();
  for (const T x : {T(-800), T(-1e30), -inf}) CHECK(falling_exponential<T>(vector<T>{} + x)[0] == T(0));
  CHECK(falling_exponential<T>(vector<T>{})[0] == T(1));
  CHECK(std::isnan(falling_exponential<T>(vector<T>{} + std::numeric_limits<T>::quiet_NaN())[0]));
}

TEST_CASE_TEMPLATE("vector: the square root of every lane; some elements of an array", T, float, double) {
  std::mt19937 gen(5);
  const auto x = random_values<T>(lanes<T>, gen, 1, 80);
  std::vector<T> y(x.size());
  store<T>(vector_square_root<T>(load(x.data())), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(y[i] / std::sqrt(x[i]) - 1) <= std::numeric_limits<T>::epsilon());
  for (std::int64_t n = 0; n < lanes<T>; ++n) {
    std::vector<T> some(x.size(), T(-1));
    store_few<T>(load_few<T>(x.data(), n, T(7)) + T(0), some.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(some[i] == (std::int64_t(i) < n ? x[i] : T(-1)));
    CHECK(load_few<T>(x.data(), n, T(7))[std::size_t(lanes<T> - 1)] == T(7));
  }
}
