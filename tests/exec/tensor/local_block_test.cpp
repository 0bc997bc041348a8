// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks from arrays of Eigen and from mdspans.
#include "../../complaint.hpp"
#include "span_of_matrix.hpp"

#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

namespace gs = gshard;

TEST_CASE("local block: matrices and maps of Eigen, in their memory order") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">>>(2);
  Eigen::MatrixXd left = Eigen::MatrixXd::Random(4, 3);  // column-major
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> right = Eigen::MatrixXd::Random(4, 2);
  const auto t =
      gs::from_local_blocks<gs::P<"x", gs::none>>(on, {4, 5}, {gs::local_block(left, {0, 0}), gs::local_block(right, {0, 3}, 1)});
  CHECK(t.local_shard(0).data[1 * 5 + 2] == left(1, 2));
  CHECK(t.local_shard(1).data[1 * 5 + 4] == right(3, 1));
  Eigen::MatrixXd whole(4, 5);
  gs::to_local_blocks(t, {gs::local_block(whole, {0, 0})});
  CHECK(whole.leftCols(3) == left);
  CHECK(whole.rightCols(2) == right);
  Eigen::VectorXd v = Eigen::VectorXd::Random(3);
  const gs::local_block of_vector(v, {0});
  CHECK(of_vector.extent == std::vector<std::int64_t>{3});
  const Eigen::MatrixXd& constant = left;
  static_assert(std::is_same_v<decltype(gs::local_block(constant, {0, 0})), gs::local_block<const double>>);
  CHECK(complaint([&] { gs::local_block(left, {0, 0, 0}); }) == "local_block: an array of 2 dims, and an offset of 3");
}

TEST_CASE("local block: an mdspan, const or not") {
  std::vector<float> memory(12);
  span_of_matrix<float> view{memory.data(), 3, 4};
  const gs::local_block block(view, {5, 6});
  static_assert(std::is_same_v<decltype(block), const gs::local_block<float>>);
  CHECK(block.data == memory.data());
  CHECK(block.extent == std::vector<std::int64_t>{3, 4});
  CHECK(block.stride == std::vector<std::int64_t>{4, 1});
  const span_of_matrix<const float> fixed{memory.data(), 3, 4};
  static_assert(std::is_same_v<decltype(gs::local_block(fixed, {5, 6})), gs::local_block<const float>>);
}
