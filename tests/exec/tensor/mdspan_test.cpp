// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An mdspan as complete data of a tensor.
#include "span_of_matrix.hpp"

#include <gshard/exec/tensor/mdspan.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

namespace gs = gshard;

TEST_CASE("mdspan: from_global reads it") {
  std::vector<double> memory(12);
  std::iota(memory.begin(), memory.end(), 0.0);
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">>>(2);
  const auto t = gs::from_global<double, gs::P<gs::none, "x">>(on, {3, 4}, span_of_matrix<const double>{memory.data(), 3, 4});
  CHECK(t.local_shard(1).data[2 * 2 + 1] == 11);
}

namespace {
/// Like std::linalg::scaled: its elements are computed.
struct scaled_matrix : span_of_matrix<double> {
  using reference = double;
};
}  // namespace

TEST_CASE("mdspan: a view whose elements are not those in memory is none") {
  static_assert(gs::detail::multidimensional_span<span_of_matrix<double>>);
  static_assert(!gs::detail::multidimensional_span<scaled_matrix>);
}
