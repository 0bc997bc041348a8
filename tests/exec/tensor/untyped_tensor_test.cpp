// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/untyped_tensor.hpp>

#include <gshard/exec/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

TEST_CASE("untyped_tensor: a tensor of any type has extents, sharding and bytes as values") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">>>(3);
  std::vector<double> whole(7 * 2);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = double(i);
  const auto typed = gs::from_global<double, P<"x", none>>(on, {7, 2}, whole);
  const gs::untyped_tensor& t = typed;
  CHECK(t.type() == gs::dtype::f64);
  CHECK(t.size() == 14);
  CHECK(t.layout()[0].size() == 1);
  CHECK(t.layout()[1].empty());
  REQUIRE(t.local_shards() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(t.place(i).offset[0] == std::int64_t(3 * i));
    CHECK(t.place(i).extent[0] == (i < 2 ? 3 : 1));
    CHECK(*reinterpret_cast<const double*>(t.shard(i)) == double(6 * i));
    CHECK(t.shard(i) == reinterpret_cast<const std::byte*>(typed.local_shard(i).data));
  }
}

TEST_CASE("untyped_tensor: a moved tensor keeps its shards, and the old one is empty") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">>>(2);
  gs::tensor<float, P<"x">> from(on, {4});
  const std::byte* const first = from.shard(0);
  const gs::tensor<float, P<"x">> to = std::move(from);
  CHECK(to.shard(0) == first);
  CHECK_THROWS_WITH_AS((void)from.cluster().backend(), "cluster: a tensor or cluster is used after it was moved from", gs::error);
}
