// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/element_text.hpp>

#include <Eigen/Core>  // half
#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <limits>

namespace gs = gshard;
using gs::detail::element_text, gs::detail::not_finite_text;

TEST_CASE("element_text: by the element type") {
  const float x = 0.1f;
  const std::int64_t n = -7;
  const bool yes = true;
  const std::complex<double> z(0.5, -3);
  const std::complex<float> y(1, 2);
  const gs::half h(1.5f);
  CHECK(element_text(gs::dtype::f32, &x) == "0.1");
  CHECK(element_text(gs::dtype::i64, &n) == "-7");
  CHECK(element_text(gs::dtype::boolean, &yes) == "true");
  CHECK(element_text(gs::dtype::c64, &y) == "1 + 2i");
  CHECK(element_text(gs::dtype::c128, &z) == "0.5 - 3i");
  CHECK(element_text(gs::dtype::f16, &h) == "1.5");
}

TEST_CASE("not_finite_text: a NaN has no sign, and complex numbers have two parts") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const double minus = -double(nan);
  const std::complex<float> z(1, infinity);
  CHECK(not_finite_text(gs::dtype::f64, &minus) == "nan");
  CHECK(not_finite_text(gs::dtype::f32, &infinity) == "inf");
  CHECK(not_finite_text(gs::dtype::c64, &z) == "(1,inf)");
}
