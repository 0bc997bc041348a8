// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#if __has_include(<xtensor/views/xview.hpp>)  // since xtensor 0.26
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xview.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

TEST_CASE("an xtensor expression over a shard is the shard's memory") {
  gs::tensor<float, P<"x", none, none>> t(gs::simulate<mesh>(2), {3, 2, 4});
  gs::for_each_local_shard(t, [](const gs::shard_view<float>& s) {
    auto e = gs::as_xtensor(s);
    CHECK(e.dimension() == 3);
    CHECK(e.shape()[0] == std::size_t(s.extent(0)));
    CHECK(e.shape()[2] == 4);
    CHECK(e.data() == s.data);
    e.fill(1);
    e(0, 1, 2) = 5;
  });
  gs::for_each_local_shard(std::as_const(t), [](const gs::shard_view<const float>& s) {
    const auto e = gs::as_xtensor(s);
    CHECK(e(0, 1, 2) == 5);
    CHECK(s.data[6] == 5);
  });
}

namespace {

template <class Spec, class Given>
std::vector<float> filled(const std::vector<std::int64_t>& extents, const Given& given) {
  std::vector<float> all;
  gs::for_each_local_shard(gs::from_global<float, Spec>(gs::simulate<mesh>(2), extents, given),
                           [&](const auto& s) { all.insert(all.end(), s.span().begin(), s.span().end()); });
  return all;
}

}  // namespace

TEST_CASE("tensors are filled from xtensor's arrays, whatever their order in memory") {
  using rows = P<"x", none>;
  const std::vector<float> expected{1, 2, 3, 4, 5, 6};
  const xt::xtensor<float, 2> by_row{{1, 2, 3}, {4, 5, 6}};
  const xt::xarray<float, xt::layout_type::column_major> by_column = by_row;
  CHECK(filled<rows>({2, 3}, by_row) == expected);
  CHECK(filled<rows>({2, 3}, xt::xarray<float>(by_row)) == expected);
  CHECK(filled<rows>({2, 3}, by_column) == expected);
  CHECK(filled<rows>({2, 3}, by_column + by_row - by_row) == expected);  // computed first
  CHECK(filled<rows>({3, 2}, xt::transpose(by_row)) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(filled<rows>({2, 2}, xt::view(by_row, xt::all(), xt::range(0, 3, 2))) == std::vector<float>{1, 3, 4, 6});
  CHECK(filled<rows>({2, 3}, xt::flip(by_column, 1)) == std::vector<float>{3, 2, 1, 6, 5, 4});
  CHECK(filled<rows>({2, 3}, xt::adapt(expected, std::vector<std::size_t>{2, 3})) == expected);
  CHECK(filled<P<"x">>({3}, xt::view(by_column, 1)) == std::vector<float>{4, 5, 6});
  CHECK_THROWS_WITH_AS(filled<rows>({3, 2}, by_row), "from_global: an array [2,3] for a tensor of [3,2]", gs::error);
  CHECK_THROWS_WITH_AS(filled<P<"x">>({6}, by_row), "from_global: an array [2,3] for a tensor of [6]", gs::error);
}
