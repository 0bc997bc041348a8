// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shards of all devices, in the mesh's order of devices and in another one, and the devices with equal shards.
#include <gshard/exec/tensor/shard_table.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;
using gs::none;
using gs::P;

TEST_CASE("shard table: places as of tensors; of equal shards one is first, and one is aligned with each device") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({2, 3});
  const auto check = [&]<class Spec>(Spec) {
    const gs::tensor<float, Spec> t(on, {5, 4});
    const gs::detail::shard_table table(on, t.extents(), Spec::named, 4);
    REQUIRE(table.devices() == 6);
    for (int device = 0; device < 6; ++device) {
      CHECK(table[device].offset == t.local_shard(std::size_t(device)).at.offset);
      CHECK(table[device].extent == t.local_shard(std::size_t(device)).at.extent);
      int first = 0, aligned = 0;
      for (int other = 0; other < 6; ++other)
        if (table[other].offset == table[device].offset) {
          first += table.is_first(other);
          aligned += table.are_aligned(other, 5);
        }
      CHECK(first == 1);
      CHECK(aligned == 1);
    }
  };
  check(P<"x", none>{});
  check(P<none, "y">{});
  check(P<none, none>{});
  check(P<"y", "x">{});
  check(P<"x", none, gs::device_order<5, 4, 3, 2, 1, 0>>{});
}
