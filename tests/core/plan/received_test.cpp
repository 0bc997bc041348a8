// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases that would take the compiler minutes and gigabytes. The others are in tests/static/core/plan/received.cpp.
#include <gshard/core/plan/received.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <array>

namespace gs = gshard;

namespace {

// Only one device receives a shard.
inline constexpr auto one_pair = [](auto&, auto x) {
  return gs::per_shard<"x", gs::P<"x">>([](auto t) { return gs::collective_permute<"x", gs::device_pairs({{7, 50000}})>(t); },
                                        gs::annotate<gs::P<"x">>(x));
};
using pair = gs::program<one_pair, gs::mesh<gs::axis<"x">>, gs::in<"A", gs::P<"x">>>;

}  // namespace

TEST_CASE("received: a permutation of so many devices that not all are looked at") {
  for (const int devices : {60000, 131072}) {
    const std::array axes{devices};
    CHECK(pair::plan.bytes_received(pair::plan.bind({{'A', 3 * devices}}, axes)) == 3 * 4);
  }
}
