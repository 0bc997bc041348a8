// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors from local blocks: the copied elements, and refused blocks.
#include "../../complaint.hpp"

#include <gshard/exec/tensor/local_blocks.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

namespace gs = gshard;
using gs::none;
using gs::P;
using one_axis = gs::mesh<gs::axis<"x">>;

TEST_CASE("local blocks: a block that is the shard of its device is not copied") {
  const auto on = gs::simulate<one_axis>(2);
  std::vector<double> a(12), b(8);
  std::iota(a.begin(), a.end(), 0.0);
  std::iota(b.begin(), b.end(), 12.0);
  const std::vector<gs::local_block<double>> blocks{{a.data(), {0, 0}, {3, 4}, {}, 0}, {b.data(), {3, 0}, {2, 4}, {}, 1}};
  auto t = gs::from_local_blocks<P<"x", none>>(on, {5, 4}, blocks);
  CHECK(t.local_shard(0).data == a.data());
  CHECK(t.local_shard(1).data == b.data());
  t.local_shard(1).data[0] = 100;
  CHECK(b[0] == 100);
  gs::to_local_blocks(t, blocks);
  CHECK(b[0] == 100);

  const std::vector<gs::local_block<const double>> constant{{a.data(), {0, 0}, {3, 4}, {}, 0}, {b.data(), {3, 0}, {2, 4}, {}, 1}};
  const auto copy = gs::from_local_blocks<P<"x", none>>(on, {5, 4}, constant);
  CHECK(copy.local_shard(0).data != a.data());
  CHECK(copy.local_shard(1).data[0] == 100);
}

using numbers = std::vector<std::int64_t>;

TEST_CASE("local blocks: what is refused") {
  const auto on = gs::simulate<one_axis>(2);
  std::vector<float> x(100);
  using block = gs::local_block<float>;
  const auto of = [&](const std::vector<block>& blocks) {
    return complaint([&] { static_cast<void>(gs::from_local_blocks<P<"x", none>>(on, {4, 4}, blocks)); });
  };
  CHECK(of({}) == "local blocks do not tile the array [4,4]: element [0,0] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 3}}}) == "local blocks do not tile the array [4,4]: element [0,3] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 3}}, {x.data(), {1, 2}, {3, 2}}}) ==
        "local blocks do not tile the array [4,4]: element [0,3] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 4}}, {x.data(), {1, 2}, {2, 2}, {}, 1}}) ==
        "local blocks do not tile the array [4,4]: element [1,2] is in block 0 of device 0 and in block 0 of device 1");
  CHECK(of({{x.data(), {0, 0}, {4, 5}}}) == "local block 0 at [0,0] with extents [4,5] is not inside the array [4,4]");
  CHECK(of({{x.data(), {-1, 0}, {4, 4}}}) == "local block 0 at [-1,0] with extents [4,4] is not inside the array [4,4]");
  CHECK(of({{x.data(), {0}, {4, 4}}}) == "local block 0: an offset of 1 dims, an extent of 2, for an array of 2");
  CHECK(of({{x.data(), {0, 0}, {2, 4}}, {nullptr, {2, 0}, {2, 4}}}) == "local block 1 has elements and no address");
  CHECK(of({{x.data(), {0, 0}, {4, 4}, {}, 2}}) == "local block 0 is on device 2 of a process with 2");

  using exchange_of = gs::local_blocks<float, P<"x", none>>;
  CHECK(complaint([&] { exchange_of(on, numbers(9, 1), {}); }) == "tensor: 9 extents for a spec of 2 dims");
  CHECK(complaint([&] { exchange_of(on, {4, -1}, {}); }) == "tensor: extent -1 of dim 1");
  CHECK(contains(complaint([&] { exchange_of(on, numbers(2, std::int64_t(1) << 40), {}); }), "elements are more than can be counted"));
  exchange_of exchange(on, {4, 4}, {{x.data(), {0, 0}, {4, 4}}});
  const gs::tensor<float, P<"x", none>> other(on, {4, 5}), foreign(gs::simulate<one_axis>(2), {4, 4});
  CHECK(complaint([&] { exchange.copy_from(other); }) ==
        "local blocks: the tensor has the extents [4,5], the array of the blocks [4,4]");
  CHECK(complaint([&] { exchange.copy_from(foreign); }) == "local blocks: the tensor belongs to another cluster");
}
