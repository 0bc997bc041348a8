// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/cross_entropy.hpp>

#include "support.hpp"

#include <cmath>

using namespace test;

namespace {

struct example {
  std::int64_t rows = 6, cols;
  double smoothing;
  std::vector<double> logits;
  std::vector<std::int32_t> labels;

  example(std::int64_t classes, double smooth, std::mt19937& gen)
      : cols(classes), smoothing(smooth), logits(random_values(rows * cols, gen, -5.0, 5.0)) {
    for (std::int64_t i = 0; i < rows; ++i)
      labels.push_back(static_cast<std::int32_t>(i == 2 ? -1 : pick(gen, 0, cols - 1)));
  }
};

}  // namespace

TEST_CASE("cross_entropy: minus the mean of log softmax under the smoothed target") {
  std::mt19937 gen(1);
  for (std::int64_t cols : {1, 2, 5, 16, 70, 500})
    for (double smoothing : {0.0, 0.1}) {
      CAPTURE(cols);
      const example e(cols, smoothing, gen);
      std::vector<double> loss(6);
      ks::cross_entropy(e.logits.data(), e.labels.data(), loss.data(), e.rows, cols, smoothing);
      for (std::size_t i = 0; i < 6; ++i) {
        double total = 0, expected = 0;
        const double* row = e.logits.data() + static_cast<std::int64_t>(i) * cols;
        for (std::int64_t j = 0; j < cols; ++j) total += std::exp(row[j]);
        for (std::int64_t j = 0; j < cols; ++j) {
          const double target =
              smoothing / static_cast<double>(cols) + (j == e.labels[i] ? 1 - smoothing : 0);
          expected -= target * (row[j] - std::log(total));
        }
        CHECK(loss[i] == doctest::Approx(e.labels[i] < 0 ? 0 : expected));
      }
    }
}

TEST_CASE("cross_entropy_grad: finite differences, zero for padding") {
  std::mt19937 gen(2);
  for (std::int64_t cols : {1, 5, 16, 35})
    for (double smoothing : {0.0, 0.1}) {
      CAPTURE(cols);
      example e(cols, smoothing, gen);
      const auto dloss = random_values(6, gen);
      std::vector<double> loss(6), d(e.logits.size(), 7);
      ks::cross_entropy_grad(e.logits.data(), e.labels.data(), dloss.data(), d.data(), e.rows, cols,
                             smoothing);
      check_gradient(d, e.logits, [&] {
        ks::cross_entropy(e.logits.data(), e.labels.data(), loss.data(), e.rows, cols, smoothing);
        return inner(loss, dloss);
      });
    }
}

TEST_CASE("cross_entropy: a label that is no class throws") {
  const std::vector<float> x(6);
  const std::vector<std::int32_t> labels{0, 3};
  std::vector<float> loss(2);
  CHECK_THROWS_WITH_AS(ks::cross_entropy(x.data(), labels.data(), loss.data(), 2, 3, 0.0F),
                       "cross_entropy: label 3 of row 1 is not one of 3 classes", gshard::error);
}
