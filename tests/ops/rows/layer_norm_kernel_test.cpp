// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/layer_norm_kernel.hpp>

#include "../../exec/kernel/support.hpp"

using namespace test;

TEST_CASE("layer_norm: rows get mean 0 and variance 1") {
  std::mt19937 gen(1);
  for (std::int64_t cols : {2, 7, 16, 64, 129}) {
    CAPTURE(cols);
    const auto x = random_values<float>(5 * cols, gen, 3, 9);
    const std::vector<float> gamma(static_cast<std::size_t>(cols), 1), beta(gamma.size(), 0);
    std::vector<float> y(x.size());
    ks::layer_norm(x.data(), gamma.data(), beta.data(), y.data(), 5, cols, 1e-9F);
    for (std::size_t i = 0; i < y.size(); i += gamma.size()) {
      double sum = 0, square = 0;
      for (std::size_t j = 0; j < gamma.size(); ++j) {
        sum += static_cast<double>(y[i + j]);
        square += static_cast<double>(y[i + j]) * static_cast<double>(y[i + j]);
      }
      CHECK(sum / static_cast<double>(cols) == doctest::Approx(0).epsilon(1e-5));
      CHECK(square / static_cast<double>(cols) == doctest::Approx(1).epsilon(1e-5));
    }
  }
}

TEST_CASE("layer_norm: eps, gamma and beta") {
  const std::vector<double> x{1, 3}, gamma{2, 4}, beta{10, 20};
  std::vector<double> y(2);
  ks::layer_norm(x.data(), gamma.data(), beta.data(), y.data(), 1, 2, 3.0);  // variance + eps = 4
  CHECK(y == std::vector<double>{10 - 2 * 0.5, 20 + 4 * 0.5});
}

TEST_CASE("layer_norm_grad: finite differences") {
  std::mt19937 gen(2);
  for (std::int64_t rows : {1, 4})
    for (std::int64_t cols : {1, 2, 5, 16, 37}) {
      CAPTURE(rows);
      CAPTURE(cols);
      auto x = random_values(rows * cols, gen), gamma = random_values(cols, gen),
           beta = random_values(cols, gen);
      const auto dy = random_values(rows * cols, gen);
      const double eps = 0.01;
      std::vector<double> y(x.size()), dx(x.size(), 7), dgamma(gamma.size(), 7), dbeta(beta.size(), 7);
      ks::layer_norm_grad(x.data(), gamma.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(), rows,
                          cols, eps);
      const auto loss = [&] {
        ks::layer_norm(x.data(), gamma.data(), beta.data(), y.data(), rows, cols, eps);
        return inner(y, dy);
      };
      check_gradient(dx, x, loss);
      check_gradient(dgamma, gamma, loss);
      check_gradient(dbeta, beta, loss);
    }
}

TEST_CASE("layer_norm_grad: of many rows, what each gives alone, and the sums of that") {
  std::mt19937 gen(3);
  constexpr std::int64_t cols = 5;
  for (std::int64_t rows : {2, 63, 64, 127, 128, 130, 191, 193, 1025, 1100}) {
    CAPTURE(rows);
    const auto x = random_values(rows * cols, gen), gamma = random_values(cols, gen), dy = random_values(rows * cols, gen);
    std::vector<double> dx(x.size(), 7), dgamma(gamma.size(), 7), dbeta(dgamma), row(gamma.size()), of_gamma(row), of_beta(row),
        sum_gamma(gamma.size(), 0), sum_beta(sum_gamma);
    ks::layer_norm_grad(x.data(), gamma.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(), rows, cols, 0.01);
    for (std::int64_t i = 0; i < rows; ++i) {
      ks::layer_norm_grad(x.data() + i * cols, gamma.data(), dy.data() + i * cols, row.data(), of_gamma.data(), of_beta.data(), 1, cols,
                          0.01);
      CHECK(std::vector(dx.begin() + i * cols, dx.begin() + (i + 1) * cols) == row);
      for (std::size_t j = 0; j < row.size(); ++j) {
        sum_gamma[j] += of_gamma[j];
        sum_beta[j] += of_beta[j];
      }
    }
    for (std::size_t j = 0; j < row.size(); ++j) {
      CHECK(dgamma[j] == doctest::Approx(sum_gamma[j]));
      CHECK(dbeta[j] == doctest::Approx(sum_beta[j]));
    }
  }
}

TEST_CASE("layer_norm_grad: no rows give no gradient") {
  std::vector<float> gamma(3, 1), dgamma(3, 7), dbeta(3, 7);
  ks::layer_norm_grad<float>(nullptr, gamma.data(), nullptr, nullptr, dgamma.data(), dbeta.data(), 0, 3,
                             1e-5F);
  CHECK(dgamma == std::vector<float>(3, 0));
  CHECK(dbeta == std::vector<float>(3, 0));
}
