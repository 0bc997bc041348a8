// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/adam_kernel.hpp>

#include "../exec/kernel/support.hpp"

#include <cmath>
#include <limits>

using namespace test;

namespace {

template <class T>
void check_steps(double weight_decay) {
  std::mt19937 gen(1);
  const std::int64_t n = 101;
  auto p = random_values<T>(n, gen);
  std::vector<T> m(p.size()), v(p.size());
  std::vector<double> expected(p.begin(), p.end()), em(p.size()), ev(p.size());
  for (std::int64_t step = 1; step <= 5; ++step) {
    auto g = random_values<T>(n, gen);
    g[0] = 0;  // a parameter that is never used changes only by the decay
    ks::adam(p.data(), g.data(), m.data(), v.data(), n, 0.01, 0.9, 0.98, 1e-9, weight_decay, step);
    for (std::size_t i = 0; i < p.size(); ++i) {
      em[i] = 0.9 * em[i] + 0.1 * static_cast<double>(g[i]);
      ev[i] = 0.98 * ev[i] + 0.02 * static_cast<double>(g[i]) * static_cast<double>(g[i]);
      const double mean = em[i] / (1 - std::pow(0.9, step)), square = ev[i] / (1 - std::pow(0.98, step));
      expected[i] -= 0.01 * (mean / (std::sqrt(square) + 1e-9) + weight_decay * expected[i]);
      CHECK(static_cast<double>(p[i]) == doctest::Approx(expected[i]).epsilon(sizeof(T) == 4 ? 1e-5 : 1e-12));
    }
  }
}

}  // namespace

TEST_CASE("adam: tells whether all parameters and moments are finite, wherever they are") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {1, 3, 16, 45}) {
    for (std::int64_t i = 0; i < n; ++i)
      for (const float bad : {std::nanf(""), infinity, -infinity, 1e30f}) {  // the square of the last overflows
        std::vector<float> p(std::size_t(n), 1.0f), g(p), m(p.size()), v(p.size());
        const auto step = [&] { return ks::adam(p.data(), g.data(), m.data(), v.data(), n, 0.01, 0.9, 0.98, 1e-9, 0.0, 1); };
        CHECK(step());
        g[std::size_t(i)] = bad;
        CHECK(!step());
        g[std::size_t(i)] = 1;
        v.assign(p.size(), 0);
        m.assign(p.size(), 0);
        p.assign(p.size(), 1);
        p[std::size_t(i)] = bad == 1e30f ? infinity : bad;
        CHECK(!step());
      }
  }
}

TEST_CASE("adam: the formulas, step by step") {
  check_steps<float>(0);
  check_steps<float>(0.1);
  check_steps<double>(0);
  check_steps<double>(0.1);
}
