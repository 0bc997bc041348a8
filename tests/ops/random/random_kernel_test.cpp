// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/random/random_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/ops/random/dropout.hpp>

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("dropout scales what it keeps; it depends on the seed, the step, and the place in the program") {
  const run_graph::traced t = run_graph::trace({{"A"}}, [](const scope&, given x) {
    return symbols{gs::dropout(x[0], 0.25), gs::dropout(x[0], 0.25)};
  });
  const gs::dims dims{{'A', 4000}};
  const arrays ones{array(4000, 1.0)};
  const auto at = [&](std::uint64_t seed, std::uint32_t step) {
    run_graph::setting s = run_graph::serial(t, dims);
    s.context = {seed, step};
    return run_graph::run(t, s, ones);
  };
  const arrays y = at(1, 0);
  std::ptrdiff_t kept = 0;
  for (const double v : y[0]) {
    CHECK((v == 0 || v == doctest::Approx(4.0 / 3)));
    kept += v != 0;
  }
  CHECK(double(kept) / 4000 == doctest::Approx(0.75).epsilon(0.05));
  CHECK(y[0] != y[1]);
  CHECK(at(1, 0) == y);
  CHECK(at(1, 1)[0] != y[0]);
  CHECK(at(2, 0)[0] != y[0]);
}

TEST_CASE("uniform and normal numbers depend on the place in the program, and have their moments") {
  const arrays y = serial_run({}, {{'A', 4000}}, {}, [](const scope& m, given) {
    return symbols{gs::uniform<"A">(m), gs::normal<"A">(m), gs::uniform<"A">(m)};
  });
  double sum = 0, square = 0;
  for (const double v : y[0]) CHECK((v >= 0 && v < 1));
  for (const double v : y[0]) sum += v;
  for (const double v : y[1]) square += v * v;
  CHECK(sum / 4000 == doctest::Approx(0.5).epsilon(0.05));
  CHECK(square / 4000 == doctest::Approx(1).epsilon(0.1));
  CHECK(y[0] != y[2]);
}
