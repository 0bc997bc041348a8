// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/collective_room.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace gs = gshard;

TEST_CASE("collective_room: has the largest buffer that a step demands, for each device") {
  gs::detail::collective_room room;
  room.demand(1, 100);
  REQUIRE(room.packed.size() == 2);
  CHECK(room.packed[0].size() == 0);
  CHECK(room.packed[1].size() == 100);
  const std::byte* const before = room.packed[1].data();
  room.demand(1, 60);
  CHECK(room.packed[1].data() == before);
  room.demand(0, 8);
  room.demand(1, 101);
  CHECK(room.packed[0].size() == 8);
  CHECK(room.packed[1].size() == 101);
}
