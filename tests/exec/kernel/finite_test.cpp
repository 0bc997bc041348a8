// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/finite.hpp>

#include <gshard/exec/kernel/element.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ks = gshard::kernel;

namespace {

template <class T>
void finds_every_place(T bad) {
  for (const std::int64_t n : {1, 2, 7, 16, 33, 100, 5000}) {
    std::vector<T> x(std::size_t(n), std::numeric_limits<T>::max());  // the largest finite numbers
    for (std::size_t i = 0; i < x.size(); i += 2) x[i] = std::numeric_limits<T>::lowest();
    CHECK(ks::all_finite(x.data(), n));
    CHECK(ks::first_not_finite(x.data(), n) == -1);
    for (std::int64_t i = 0; i < n; i += n > 100 ? 37 : 1) {
      const T before = x[std::size_t(i)];
      x[std::size_t(i)] = bad;
      CHECK(!ks::all_finite(x.data(), n));
      CHECK(ks::first_not_finite(x.data(), n) == i);
      if (i + 1 < n) {
        const T next = x[std::size_t(i) + 1];
        x[std::size_t(i) + 1] = bad;  // the first one is reported
        CHECK(ks::first_not_finite(x.data(), n) == i);
        x[std::size_t(i) + 1] = next;
      }
      x[std::size_t(i)] = before;
    }
  }
}

}  // namespace

TEST_CASE("finite: NaN and both infinities are found at every place") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    finds_every_place<float>(bad);
    finds_every_place<double>(double(bad));
  }
  CHECK(ks::first_not_finite<float>(nullptr, 0) == -1);
}

TEST_CASE("finite: numbers of half precision and complex numbers") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<gshard::half> half{gshard::half(1.0f), gshard::half(65504.0f), gshard::half(infinity)};
  CHECK(ks::first_not_finite(half.data(), 2) == -1);
  CHECK(ks::first_not_finite(half.data(), 3) == 2);
  const std::vector<std::complex<float>> z{{1, 2}, {0, infinity}, {infinity, 0}};
  CHECK(ks::first_not_finite(z.data(), 1) == -1);
  CHECK(ks::first_not_finite(z.data(), 3) == 1);
  CHECK(ks::first_not_finite(z.data() + 2, 1) == 0);
}

TEST_CASE("prefetch changes nothing, and may be given any address") {
  const std::vector<float> x(3, 1);
  ks::prefetch(x.data());
  ks::prefetch(x.data() + x.size());
  ks::prefetch(static_cast<const double*>(nullptr));
  CHECK(x == std::vector<float>(3, 1));
}

TEST_CASE("sum_of_squares") {
  std::vector<double> x(1001);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i) / 8 - 50, sum += x[i] * x[i];
  CHECK(ks::sum_of_squares(x.data(), std::int64_t(x.size())) == sum);  // exact
  CHECK(ks::sum_of_squares(x.data(), 0) == 0);
  x[7] = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(ks::sum_of_squares(x.data(), std::int64_t(x.size()))));
}
