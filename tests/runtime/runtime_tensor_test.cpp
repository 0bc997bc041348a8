// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/runtime/runtime_tensor.hpp>

#include <gshard/eager/reshard.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace gs = gshard;
using gs::P, gs::tensor;

TEST_CASE("a run-time tensor has the shards of the typed one") {
  const auto cluster = gs::simulate("x=2,y=2", 4);
  gs::runtime_tensor t(cluster, "f32[B@x,M@y]", {3, 5});
  const tensor<float, P<"B@x,M@y">> same(cluster, {3, 5});
  REQUIRE(t.local_shards() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(t.place(i).extent == same.place(i).extent);
    CHECK(t.place(i).offset == same.place(i).offset);
    CHECK(t.local_shard<float>(i).size() == same.local_shard(i).size());
  }
  CHECK(t.text() == "f32[3@x,5@y]");
  CHECK(gs::runtime_tensor(cluster, "i64[]", {}).text() == "i64[]");
  CHECK(gs::runtime_tensor(cluster, "f64[B]+y", {2}).text() == "f64[2]+y");
}

TEST_CASE("a typed view uses the same memory") {
  const auto cluster = gs::simulate("x", 3);
  gs::runtime_tensor t(cluster, "f32[B@x,M]", {4, 2});
  auto typed = t.as<tensor<float, P<"B@x,M">>>();
  float next = 0;
  gs::for_each_local_shard(typed, [&](auto shard) {
    for (float& element : shard.span()) element = next++;
  });
  CHECK(t.local_shard<float>(1).data[0] == 4);
  CHECK(gs::to_global(typed) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("views of another type or sharding") {
  const auto cluster = gs::simulate("x=2,y=2", 4);
  gs::runtime_tensor t(cluster, "f32[B@x,M]", {4, 2});
  CHECK(complaint([&] { t.local_shard<double>(0); }) == "tensor: the elements of f32[4@x,2] are float, not double");
  CHECK(contains(complaint([&] { t.as<tensor<std::int32_t, P<"B@x,M">>>(); }), "are float, not"));
  CHECK(complaint([&] { t.as<tensor<float, P<"B@y,M">>>(); }) == "tensor: f32[4@x,2] is used as f32[4@y,2]");
  CHECK(complaint([&] { t.as<tensor<float, P<"B@x,">>>(); }) == "tensor: f32[4@x,2] is used as a tensor of 1 dims");
  CHECK(contains(complaint([&] { gs::runtime_tensor(cluster, "f32[B@z,]", {4}); }), "names an axis that the mesh does not have"));
  CHECK(contains(complaint([&] { gs::runtime_tensor(cluster, "f32[B@x,]", {4, 2}); }), "2 extents for a spec of 1 dims"));
}
