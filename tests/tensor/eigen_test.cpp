// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/tensor/eigen.hpp>

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
