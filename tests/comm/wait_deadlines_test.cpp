// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/wait_deadlines.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

TEST_CASE("deadlines of waits: a warning comes before the end, which asks for a restart") {
  const gs::wait_deadlines usual;
  CHECK(usual.warn < usual.fail);
  CHECK(gs::wait_deadlines::restart_status == 75);  // EX_TEMPFAIL
  CHECK(usual == gs::wait_deadlines{.warn = 60, .fail = 600});
  CHECK_FALSE(usual == gs::wait_deadlines{.warn = 0});
}
