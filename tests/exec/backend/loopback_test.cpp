// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/loopback.hpp>

#include "random_cases.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace gs = gshard;

TEST_CASE("loopback: collectives copy the one device's own block") {
  gs::loopback b(2);
  CHECK(gs::device_count(b.extents()) == 1);
  CHECK(std::vector(b.devices().begin(), b.devices().end()) == std::vector{0});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    for (std::uint32_t axes = 0; axes < 4; ++axes) {
      cases::exchange_case x({1, 1}, axes, seed);
      b.exchange(axes, cases::parts(x, b.devices()));
      CHECK(x.recv == x.expected);
      cases::gather_case g({1, 1}, axes, seed);
      b.all_gather(axes, cases::parts(g, b.devices()));
      CHECK(g.recv == g.expected);
    }
  }
  CHECK(b.received()[0] == gs::traffic{});
}

TEST_CASE("loopback: the process is the leader and agrees with itself") {
  gs::loopback b;
  CHECK(b.leader());
  CHECK_FALSE(b.begin(std::vector<gs::fact>{{"the call", "seventeen"}}));
  CHECK(b.begin({}, "", true));
  CHECK(b.calls() == 2);
  CHECK_THROWS_WITH_AS(b.agree({}, "a problem"), "a problem", gs::error);
  cases::bytes data{std::byte{1}, std::byte{2}};
  b.broadcast(data);
  CHECK(b.gather_to_leader(data) == std::vector<cases::bytes>{data});
}
