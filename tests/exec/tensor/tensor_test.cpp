// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

static_assert(gs::distributed_tensor<tensor<float, P<"x">>> &&
              gs::distributed_tensor<const tensor<int, P<>>&>);
static_assert(!gs::distributed_tensor<std::vector<float>>);
static_assert(tensor<float, P<none, partial<"x">>>::is_partial && !tensor<float, P<"x">>::is_partial);
static_assert(tensor<float, P<none, "x">>::static_rank == 2);

TEST_CASE("for_each_local_shard visits every element at its global index") {
  for (const std::vector<int>& e : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {2, 3}, {3, 2}}) {
    tensor<std::int32_t, P<"y", none, "x">> t(gs::simulate<mesh>(e), {5, 2, 3});
    CHECK(t.local_shards() == std::size_t(e[0] * e[1]));
    CHECK(t.size() == 30);
    gs::for_each_local_shard(t, [](const gs::shard_view<std::int32_t>& s) {
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < s.extent(0); ++i)
        for (std::int64_t j = 0; j < s.extent(1); ++j)
          for (std::int64_t k = 0; k < s.extent(2); ++k)
            s.data[at++] = std::int32_t(((i + s.offset(0)) * 2 + j + s.offset(1)) * 3 + k + s.offset(2));
    });
    std::vector<int> seen(30, 0);
    gs::for_each_local_shard(std::as_const(t), [&](const gs::shard_view<const std::int32_t>& s) {
      CHECK(s.span().size() == std::size_t(s.size()));
      for (const std::int32_t v : s.span()) ++seen[std::size_t(v)];
    });
    CHECK(seen == std::vector<int>(30, 1));
  }
}

TEST_CASE("from_global puts every part where it belongs") {
  std::vector<double> whole(7 * 5);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = double(i);
  const auto t = gs::from_global<double, P<axes<"x", "y">, none>>(gs::simulate<mesh>({2, 3}), {7, 5}, whole);
  std::size_t elements = 0;
  gs::for_each_local_shard(t, [&](const gs::shard_view<const double>& s) {
    elements += s.span().size();
    for (std::int64_t i = 0; i < s.size(); ++i) CHECK(s.data[i] == whole[std::size_t(s.offset(0) * 5 + i)]);
  });
  CHECK(elements == whole.size());
}

TEST_CASE("tensors say what is wrong with their extents, data and axes") {
  const auto on = gs::simulate<mesh>({1, 2});
  CHECK_THROWS_WITH_AS((tensor<float, P<"x">>(on, {4}, std::vector<float*>())),
                       "tensor: the memory of 0 shards for 2 local devices", gs::error);
  CHECK_THROWS_WITH_AS((tensor<float, P<"x", none>>(on, {3})), "tensor: 1 extents for a spec of 2 dims",
                       gs::error);
  CHECK_THROWS_WITH_AS((gs::from_global<float, P<"x", none>>(on, {3, 2}, std::vector<float>(5))),
                       "from_global: 5 elements for a tensor of 6", gs::error);
  CHECK_THROWS_WITH_AS((tensor<float, P<"z">>(on, {3})),
                       "tensor: its partition spec names an axis that the mesh does not have: \"z\"",
                       gs::error);
  CHECK_THROWS_WITH_AS((tensor<float, P<"x", "x">>(on, {3, 3})),
                       "tensor: its partition spec uses twice the axis \"x\"", gs::error);
  CHECK_THROWS_WITH_AS((tensor<float, P<"x">>(on, {-3})), "tensor: extent -3 of dim 0", gs::error);
  constexpr std::int64_t large = std::int64_t(1) << 32;
  CHECK_THROWS_WITH_AS((gs::from_global<float, P<"x", none>>(on, {large, large}, {})),
                       "tensor: 4294967296 x 4294967296 elements are more than can be counted", gs::error);
  CHECK_THROWS_WITH_AS((tensor<float, P<none>>(on, {large << 19})),
                       "there is no memory for 9007199254740992 bytes", gs::error);
}

TEST_CASE("the layout of a tensor in an order of the devices is on the mesh's axes, its shards on the devices of the order") {
  using spec = P<"x", gs::device_order<2, 0, 1>>;
  const tensor<float, spec> t(gs::simulate<gs::mesh<gs::axis<"x">>>(3), {6});
  CHECK(t.layout().order == 0);
  CHECK(t.layout()[0].size() == 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(t.local_shard(std::size_t(spec::named.order[i])).offset(0) == std::int64_t(2 * i));
}

TEST_CASE("tensors without elements") {
  const auto t = gs::from_global<float, P<"y", none>>(gs::simulate<mesh>({1, 2}), {0, 4}, {});
  CHECK(t.size() == 0);
  gs::for_each_local_shard(t, [](const gs::shard_view<const float>& s) { CHECK(s.span().empty()); });
}
