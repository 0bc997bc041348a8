// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/elementwise.hpp>

#include "serial_run.hpp"

#include <gshard/ops/random/dropout.hpp>
#include <gshard/trace/map.hpp>

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("scale by constants, powers of extents, and one over the extents that were summed") {
  const arrays y =
      serial_run({{"AB"}}, {{'A', 2}, {'B', 4}, {'D', 16}}, {{1, 2, 3, 4, 5, 6, 7, 8}}, [](const scope&, given x) {
        return symbols{-2.0 * x[0], gs::scale_by<"D">(x[0], -0.5), gs::mean<"AB->A">(x[0]), gs::mean(x[0])};
      });
  CHECK(y == arrays{{-2, -4, -6, -8, -10, -12, -14, -16},
                    {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2},
                    {2.5, 6.5},
                    {4.5}});
}

TEST_CASE("casts truncate and round as C++ does") {
  const arrays y = serial_run({{"A"}, {"A", gs::dtype::i32, 'A'}}, {{'A', 3}}, {{1.75, -1.75, 0.1}, {2, 0, 1}},
                       [](const scope&, given x) {
                         return symbols{gs::cast<std::int32_t>(x[0]), gs::cast<float>(x[0]),
                                        gs::cast<double>(x[1]), gs::cast<double>(gs::cast<float>(x[0]))};
                       });
  CHECK(y == arrays{{1, -1, 0}, {1.75, -1.75, double(0.1f)}, {2, 0, 1}, {1.75, -1.75, double(0.1f)}});
}

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
