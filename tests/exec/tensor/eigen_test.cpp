// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/eigen.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

TEST_CASE("an Eigen matrix over a shard is the shard's memory") {
  gs::tensor<float, P<"x", none, none>> t(gs::simulate<mesh>(2), {3, 2, 4});
  gs::for_each_local_shard(t, [](const gs::shard_view<float>& s) {
    auto m = gs::as_eigen(s);
    CHECK(m.rows() == s.extent(0) * 2);
    CHECK(m.cols() == 4);
    CHECK(m.data() == s.data);
    m.setConstant(1);
    m(m.rows() - 1, 1) = 5;
  });
  gs::for_each_local_shard(std::as_const(t), [](const gs::shard_view<const float>& s) {
    const auto m = gs::as_eigen(s);
    static_assert(std::is_same_v<decltype(m.data()), const float*>);
    CHECK(m.sum() == float(s.size() + 4));
    CHECK(s.data[s.size() - 3] == 5);
  });
}

TEST_CASE("scalars and empty shards are matrices too") {
  gs::tensor<double, P<>> scalar(gs::simulate<mesh>(1), {});
  gs::as_eigen(scalar.local_shard(0))(0, 0) = 2;
  CHECK(scalar.item() == 2);
  gs::tensor<double, P<"x">> vector(gs::simulate<mesh>(3), {1});
  CHECK(gs::as_eigen(vector.local_shard(0)).cols() == 1);
  CHECK(gs::as_eigen(vector.local_shard(2)).size() == 0);
}

namespace {

template <class T>
std::vector<T> elements(const auto& t) {
  std::vector<T> all;
  gs::for_each_local_shard(t, [&](const auto& s) { all.insert(all.end(), s.span().begin(), s.span().end()); });
  return all;
}
template <class Spec, class Given>
std::vector<float> filled(const std::vector<std::int64_t>& extents, const Given& given) {
  return elements<float>(gs::from_global<float, Spec>(gs::simulate<mesh>(2), extents, given));
}

}  // namespace

TEST_CASE("tensors are filled from Eigen's matrices, whatever their order in memory") {
  using rows = P<"x", none>;
  const std::vector<float> expected{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Eigen::Matrix<float, 4, 3, Eigen::RowMajor> by_row;
  by_row << 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
  const Eigen::MatrixXf by_column = by_row;
  CHECK(filled<rows>({4, 3}, by_row) == expected);
  CHECK(filled<rows>({4, 3}, by_column) == expected);
  CHECK(filled<rows>({4, 3}, by_column.array()) == expected);
  CHECK(filled<P<"x", none, none>>({2, 2, 3}, by_column) == expected);
  CHECK(filled<rows>({4, 3}, by_column + by_column - by_row) == expected);  // computed first
  CHECK(filled<rows>({4, 3}, (by_column * Eigen::Matrix3f::Identity()).eval()) == expected);
  CHECK(filled<rows>({3, 4}, by_column.transpose()) == std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12});
  CHECK(filled<rows>({2, 2}, by_column.block(1, 1, 2, 2)) == std::vector<float>{5, 6, 8, 9});
  CHECK(filled<rows>({4, 3}, Eigen::Map<const Eigen::MatrixXf>(by_column.data(), 4, 3)) == expected);
  CHECK(filled<rows>({4, 3}, Eigen::Ref<const Eigen::MatrixXf>(by_column)) == expected);
  const Eigen::VectorXf column = by_column.col(1);
  CHECK(filled<P<"x">>({4}, column) == std::vector<float>{2, 5, 8, 11});
  CHECK(filled<P<"x">>({3}, by_column.row(1)) == std::vector<float>{4, 5, 6});
  CHECK(filled<rows>({4, 1}, column) == std::vector<float>{2, 5, 8, 11});
  CHECK_THROWS_WITH_AS(filled<rows>({3, 4}, by_column), "from_global: an array [4,3] for a tensor of [3,4]", gs::error);
  CHECK_THROWS_WITH_AS(filled<rows>({1, 4}, column), "from_global: an array [4,1] for a tensor of [1,4]", gs::error);
  CHECK_THROWS_WITH_AS(filled<P<"x">>({12}, by_row), "from_global: an array [4,3] for a tensor of [12]", gs::error);
}
