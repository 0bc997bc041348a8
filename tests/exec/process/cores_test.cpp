// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/cores.hpp>

#include <doctest/doctest.h>

#include <numeric>

TEST_CASE("cores_of_process: at least the one that it runs on") {
  const gshard::core_flags cores = gshard::cores_of_process();
  CHECK(std::accumulate(cores.begin(), cores.end(), 0) >= 1);
  for (const int flag : cores) CHECK((flag == 0 || flag == 1));
}
