// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/map_kernel.hpp>

#include "../bind/serial_run.hpp"

#include <gshard/core/trace/einsum.hpp>

#include <cstdint>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
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
