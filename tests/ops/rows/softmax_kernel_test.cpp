// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/softmax_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <cmath>

using namespace test;

namespace {

template <class T>
void check_rows(std::int64_t rows, std::int64_t cols, std::mt19937& gen) {
  CAPTURE(rows);
  CAPTURE(cols);
  const auto x = random_values<T>(rows * cols, gen, -20, 20);
  std::vector<T> y(x.size() + 1, T(7)), in_place = x;
  ks::softmax(x.data(), y.data(), rows, cols);
  CHECK(y.back() == T(7));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(cols)) {
    double sum = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(cols); ++j)
      sum += std::exp(static_cast<double>(x[i + j]));
    for (std::size_t j = 0; j < static_cast<std::size_t>(cols); ++j) {
      const double expected = std::exp(static_cast<double>(x[i + j])) / sum;
      worst = std::max(worst, std::abs(static_cast<double>(y[i + j]) - expected) / (expected + 1e-30));
    }
  }
  CHECK(worst < static_cast<double>(std::numeric_limits<T>::epsilon()) *
                    (40 + static_cast<double>(cols)));  // x - max is rounded
  y.pop_back();
  ks::softmax(in_place.data(), in_place.data(), rows, cols);
  CHECK(in_place == y);
}

}  // namespace

TEST_CASE("softmax: rows of every length") {
  std::mt19937 gen(1);
  for (std::int64_t cols = 1; cols <= 70; ++cols)
    for (std::int64_t rows : {0, 1, 3, 37}) {
      check_rows<float>(rows, cols, gen);
      check_rows<double>(rows, cols, gen);
    }
  check_rows<float>(2, 1000, gen);
  check_rows<double>(2, 1000, gen);
}

TEST_CASE("softmax: large logits do not overflow, masked ones get nothing") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (std::int64_t cols : {4, 6, 8, 16, 20, 32}) {
    std::vector<float> x(static_cast<std::size_t>(cols), -inf);
    x[1] = 1e30F;
    x[2] = 1e30F;
    ks::softmax(x.data(), x.data(), 1, cols);
    for (std::size_t j = 0; j < x.size(); ++j) CHECK(x[j] == (j == 1 || j == 2 ? 0.5F : 0.0F));
  }
}

TEST_CASE("softmax_grad: finite differences") {
  std::mt19937 gen(2);
  for (std::int64_t cols : {1, 2, 5, 8, 16, 19, 33}) {
    CAPTURE(cols);
    const std::int64_t rows = 3;
    auto x = random_values(rows * cols, gen);
    const auto dy = random_values(rows * cols, gen);
    std::vector<double> y(x.size()), dx(x.size());
    ks::softmax(x.data(), y.data(), rows, cols);
    ks::softmax_grad(y.data(), dy.data(), dx.data(), rows, cols);
    check_gradient(dx, x, [&] {
      ks::softmax(x.data(), y.data(), rows, cols);
      return inner(y, dy);
    });
  }
}

TEST_CASE_TEMPLATE("softmax: NaN, infinity and rows of -infinity alone make the row NaN, and no other", T, float, double) {
  std::mt19937 gen(5);
  for (const std::int64_t cols : {1, 2, 4, 5, 7, 8, 16, 17, 33, 67})
    for_each_spoilt_row<T>(cols, gen, [&](const std::vector<T>& row) {
      std::vector<T> x = row;
      const auto other = random_values<T>(cols, gen, -5, 5);
      x.insert(x.end(), other.begin(), other.end());
      std::vector<double> expected;
      for (std::size_t first = 0; first < x.size(); first += row.size()) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (std::size_t j = 0; j < row.size(); ++j) top = std::isnan(x[first + j]) || x[first + j] > top ? double(x[first + j]) : top;
        for (std::size_t j = 0; j < row.size(); ++j) sum += std::exp(double(x[first + j]) - top);
        for (std::size_t j = 0; j < row.size(); ++j) expected.push_back(std::exp(double(x[first + j]) - top) / sum);
      }
      std::vector<T> y(x.size(), T(7));
      ks::softmax(x.data(), y.data(), 2, cols);
      CHECK(same_numbers(y, expected, 1e-5));
      // Its gradient: y (dy - <y, dy>).
      const auto dy = random_values<T>(2 * cols, gen);
      std::vector<double> dx;
      for (std::size_t first = 0; first < x.size(); first += row.size()) {
        double mean = 0;
        for (std::size_t j = 0; j < row.size(); ++j) mean += double(y[first + j]) * double(dy[first + j]);
        for (std::size_t j = 0; j < row.size(); ++j) dx.push_back(double(y[first + j]) * (double(dy[first + j]) - mean));
      }
      std::vector<T> found(x.size(), T(7));
      ks::softmax_grad(y.data(), dy.data(), found.data(), 2, cols);
      CHECK(same_numbers(found, dx, 1e-5));
    });
}
