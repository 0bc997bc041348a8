// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/lent_value.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace gs = gshard;

TEST_CASE("lent values: their names") {
  CHECK(gs::detail::names_of({}) == "none");
  const std::vector<gs::detail::lent_value> lent{{"input 0", 0, false, {}}, {"output 1", 3, true, {}}};
  CHECK(gs::detail::names_of(lent) == "input 0, output 1");
}
