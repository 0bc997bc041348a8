// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/check/check_finite_kernel.hpp>

#include "../../exec/with_gradients.hpp"
#include "../../exec/bind/checked_program.hpp"

#include <vector>

namespace gs = gshard;

TEST_CASE("check_finite: the first bad element is named, on any mesh") {
  for (const std::vector<int>& extents : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 4}}) {
    CAPTURE(extents[0]);
    checked_program::check_everywhere(gs::simulate<checked_program::mesh>(extents));
  }
}

TEST_CASE("check_finite: the same tensor and gradient, with any sharding") {
  run_graph::every_sharding(run_graph::trace({{"AB"}, {"AB"}},
                                             [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
                                               const gs::symbol y = gs::check_finite(run_graph::lay_out(x[0] * x[0]), "y");
                                               gs::list<gs::symbol> results = run_graph::with_gradients(y + 1.0, x, 1);
                                               results.push_back(gs::check_finite(gs::sum(y), "sum"));
                                               return results;
                                             }),
                            {.dims = {{{'A', 6}, {'B', 8}}, {{'A', 5}, {'B', 3}}}, .most = 200});
}

TEST_CASE("check_finite: an error of a loss that is not trained, and of complex numbers") {
  const auto f = [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    return gs::list<gs::symbol>{gs::cast(gs::real(gs::check_finite(gs::complex(x[0], x[0]), "z")), gs::dtype::f64)};
  };
  CHECK_THROWS_AS(
      run_graph::differences(run_graph::trace({{"A"}}, f),
                             {.dims = {{{'A', 6}}}, .prepare = [](run_graph::arrays& sources) { sources[0][4] = std::nan(""); }}),
      gs::not_finite_error);
}
