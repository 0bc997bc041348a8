// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/finite_checks.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::detail::finite_checks;

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Rows 2 and 3 and columns 4 to 6 of a matrix.
const gs::kernel::placement block = [] {
  gs::kernel::placement p{};
  p.rank = 2;
  p.offset[0] = 2;
  p.offset[1] = 4;
  p.extent[0] = 2;
  p.extent[1] = 3;
  return p;
}();
}  // namespace

TEST_CASE("finite checks: the text has the global index, the number, the step and the device") {
  finite_checks checks;
  checks.begin(9);
  CHECK(!checks.found());
  CHECK(checks.problem().empty());
  const std::vector<float> x{0, 0, 0, 0, 0, -infinity};
  checks.report("the gradient of \"w\"", gs::dtype::f32, &x[5], block, 5, 3);
  CHECK(checks.problem().text == "the gradient of \"w\": element [3,6] is -inf, in step 9 on device 3");
  checks.begin(10);
  CHECK(!checks.found());
  const double nan = -std::nan("");
  checks.report("the loss", gs::dtype::f64, &nan, gs::kernel::placement{}, 0, 0);
  CHECK(checks.problem().text == "the loss is nan, in step 10 on device 0");
}

TEST_CASE("finite checks: of several findings the first in the program counts, whatever the order of threads") {
  const std::vector<float> x(6, infinity);
  finite_checks checks;
  checks.begin(1);
  const auto report = [&](std::size_t place, int device, std::int64_t element) {
    checks.place = place;
    checks.report("x", gs::dtype::f32, &x[std::size_t(element)], block, element, device);
    return checks.problem().text;
  };
  CHECK(report(7, 2, 4) == "x: element [3,5] is inf, in step 1 on device 2");
  CHECK(report(7, 2, 5) == "x: element [3,5] is inf, in step 1 on device 2");
  CHECK(report(7, 2, 1) == "x: element [2,5] is inf, in step 1 on device 2");
  CHECK(report(7, 1, 5) == "x: element [3,6] is inf, in step 1 on device 1");
  CHECK(report(8, 0, 0) == "x: element [3,6] is inf, in step 1 on device 1");
  CHECK(report(3, 5, 0) == "x: element [2,4] is inf, in step 1 on device 5");
  CHECK(checks.problem().place == 3);
}
