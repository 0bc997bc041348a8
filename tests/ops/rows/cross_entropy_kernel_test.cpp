// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/cross_entropy_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

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

TEST_CASE("block_cross_entropy: blocks of classes add up to the loss, and their gradients to its gradient") {
  std::mt19937 gen(3);
  for (std::int64_t cols : {1, 5, 16, 70})
    for (double smoothing : {0.0, 0.1})
      for (std::int64_t width : {1, 3, 16}) {
        CAPTURE(cols);
        CAPTURE(width);
        const example e(cols, smoothing, gen);
        const auto dloss = random_values(e.rows, gen);
        std::vector<double> whole(6), d(e.logits.size());
        ks::cross_entropy(e.logits.data(), e.labels.data(), whole.data(), e.rows, cols, smoothing);
        ks::cross_entropy_grad(e.logits.data(), e.labels.data(), dloss.data(), d.data(), e.rows, cols, smoothing);
        std::vector<double> total(6), target(6), log_sum(6), own_target(6);
        const auto for_each_block = [&](auto f) {
          for (std::int64_t block = 0; block * width < cols + width; ++block) {  // the last is empty
            const std::int64_t first = std::min(block * width, cols), here = std::min(width, cols - first);
            std::vector<double> x;
            for (std::int64_t i = 0; i < e.rows; ++i)
              for (std::int64_t j = 0; j < here; ++j) x.push_back(e.logits[std::size_t(i * cols + first + j)]);
            f(x, ks::class_range{first, here, cols}, block);
          }
        };
        for_each_block([&](const std::vector<double>& x, const ks::class_range& classes, std::int64_t block) {
          ks::block_cross_entropy(x.data(), e.labels.data(), log_sum.data(), own_target.data(), e.rows, classes, smoothing, block);
          for (std::size_t i = 0; i < 6; ++i) {
            total[i] += std::exp(log_sum[i]);
            target[i] += own_target[i];
          }
        });
        for (std::size_t i = 0; i < 6; ++i) {
          log_sum[i] = std::log(total[i]);
          CHECK(log_sum[i] - target[i] == doctest::Approx(whole[i]));
        }
        for_each_block([&](std::vector<double> x, const ks::class_range& classes, std::int64_t) {
          ks::cross_entropy_grad(x.data(), e.labels.data(), dloss.data(), log_sum.data(), x.data(), e.rows, classes, smoothing);
          for (std::int64_t i = 0; i < e.rows; ++i)
            for (std::int64_t j = 0; j < classes.here; ++j)
              CHECK(x[std::size_t(i * classes.here + j)] == doctest::Approx(d[std::size_t(i * cols + classes.first + j)]));
        });
      }
}

TEST_CASE("block_cross_entropy: a label that is no class throws on every device") {
  const std::vector<float> x(4);
  const std::vector<std::int32_t> labels{0, 6};
  std::vector<float> log_sum(2), target(2);
  for (std::int64_t first : {0, 2, 4})
    CHECK_THROWS_WITH_AS(
        ks::block_cross_entropy(x.data(), labels.data(), log_sum.data(), target.data(), 2, {first, 2, 6}, 0.0F, first / 2),
        "cross_entropy: label 6 of row 1 is not one of 6 classes", gshard::error);
}

TEST_CASE("cross_entropy: a label that is no class throws") {
  const std::vector<float> x(6);
  const std::vector<std::int32_t> labels{0, 3};
  std::vector<float> loss(2);
  CHECK_THROWS_WITH_AS(ks::cross_entropy(x.data(), labels.data(), loss.data(), 2, 3, 0.0F),
                       "cross_entropy: label 3 of row 1 is not one of 3 classes", gshard::error);
}

TEST_CASE_TEMPLATE("cross_entropy: rows with NaN and infinity", T, float, double) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::mt19937 gen(3);
  for (const std::int64_t cols : {1, 3, 8, 16, 17, 40, 133, 150})
    for_each_spoilt_row<T>(cols, gen, [&](const std::vector<T>& x) {
      double top = -infinity, sum = 0;
      for (const T v : x) top = std::isnan(v) || v > top ? double(v) : top;
      for (const T v : x) sum += std::exp(double(v) - top);
      const double log_sum = std::isfinite(top) ? top + std::log(sum) : top;
      const auto label = static_cast<std::int32_t>(pick(gen, 0, cols - 1));
      T loss = 7;
      ks::cross_entropy(x.data(), &label, &loss, 1, cols, T(0));
      CHECK(same_numbers(std::vector{loss}, std::vector{log_sum - double(x[static_cast<std::size_t>(label)])}, 1e-5));
      const T dloss = T(0.5);
      std::vector<T> d(x.size(), T(7));
      ks::cross_entropy_grad(x.data(), &label, &dloss, d.data(), 1, cols, T(0));
      std::vector<double> expected;
      for (std::size_t j = 0; j < x.size(); ++j)
        expected.push_back(0.5 * (std::exp(double(x[j]) - log_sum) - (std::int32_t(j) == label ? 1 : 0)));
      CHECK(same_numbers(d, expected, 1e-5));
      // With smoothing, the target includes all logits.
      ks::cross_entropy(x.data(), &label, &loss, 1, cols, T(0.1));
      double mean = 0;
      for (const T v : x) mean += double(v) / double(cols);
      CHECK(same_numbers(std::vector{loss}, std::vector{log_sum - 0.9 * double(x[static_cast<std::size_t>(label)]) - 0.1 * mean}, 1e-4));
      // A row that is left out has loss 0.
      const std::int32_t none = -1;
      ks::cross_entropy(x.data(), &none, &loss, 1, cols, T(0.1));
      ks::cross_entropy_grad(x.data(), &none, &dloss, d.data(), 1, cols, T(0.1));
      CHECK(loss == T(0));
      CHECK(d == std::vector<T>(x.size(), T(0)));
    });
}
