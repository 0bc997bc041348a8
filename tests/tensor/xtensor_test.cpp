// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

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
