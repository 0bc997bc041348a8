// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/parameter_access.hpp>

#include "parameter_access.hpp"

TEST_CASE("whole parameters in and out of a store") {
  for (int devices = 1; devices <= 6; ++devices) parameter_access::check(gshard::simulate<parameter_access::mesh>(devices));
}
