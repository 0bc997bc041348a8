// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/wait_deadlines.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace gs = gshard;

TEST_CASE("deadlines of waits: a warning comes before the end, which asks for a restart") {
  const gs::wait_deadlines usual;
  CHECK(usual.warn < usual.fail);
  CHECK(gs::wait_deadlines::restart_status == 75);  // EX_TEMPFAIL
  CHECK(usual == gs::wait_deadlines{.warn = 60, .fail = 600});
  CHECK_FALSE(usual == gs::wait_deadlines{.warn = 0});
}

TEST_CASE("wait_deadlines: the pause between two looks is never shorter or longer than it may be, whatever the deadlines") {
  const double infinite = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
  static_assert(gs::detail::watch_pause({.warn = 1e300, .fail = 1e300}) == 250);
  CHECK(gs::detail::watch_pause({}) == 250);
  CHECK(gs::detail::watch_pause({.warn = infinite, .fail = infinite}) == 250);
  CHECK(gs::detail::watch_pause({.warn = 1e-300, .fail = 600}) == 5);
  CHECK(gs::detail::watch_pause({.warn = 0.8, .fail = infinite}) == 100);
  CHECK(gs::detail::are_valid({.warn = 0, .fail = infinite}));
  for (const double wrong : {-1.0, -infinite, none}) {
    CHECK_FALSE(gs::detail::are_valid({.warn = wrong}));
    CHECK_FALSE(gs::detail::are_valid({.fail = wrong}));
  }
}
