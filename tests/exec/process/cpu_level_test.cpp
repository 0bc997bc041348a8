// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/process/cpu_level.hpp>
#include <gshard/exec/process/error.hpp>

#include <doctest/doctest.h>

#include <cstdlib>

namespace gs = gshard;

namespace {

/// Sets the environment variable during a test.
struct wanted_level {
  explicit wanted_level(const char* level) { ::setenv("GSHARD_CPU_LEVEL", level, 1); }
  ~wanted_level() { ::unsetenv("GSHARD_CPU_LEVEL"); }
};

}  // namespace

TEST_CASE("the environment lowers the level of the kernels, and does not raise it") {
  const gs::cpu_level here = gs::detail::this_cpu_level();
  {
    const wanted_level base("base");
    CHECK(gs::detail::this_cpu_level() == gs::cpu_level::base);
  }
  const wanted_level v4("v4");
  CHECK(gs::detail::this_cpu_level() == here);
}

static_assert(gs::name(gs::cpu_level::base) == "base" && gs::name(gs::cpu_level::x86_64_v4) == "x86-64-v4");

TEST_CASE("an unknown level is an error that names it") {
  const wanted_level unknown("avx2");
  CHECK_THROWS_WITH_AS(gs::detail::this_cpu_level(), "GSHARD_CPU_LEVEL is base, v3 or v4, not 'avx2'", gs::error);
}

TEST_CASE("a level without kernels of its own takes those of the next lower one") {
  const gs::kernel_table v3;
  gs::kernel_table base;
  CHECK(&base.at(gs::cpu_level::x86_64_v4) == &base);
  base.higher[0] = &v3;
  CHECK(&base.at(gs::cpu_level::base) == &base);
  CHECK(&base.at(gs::cpu_level::x86_64_v3) == &v3);
  CHECK(&base.at(gs::cpu_level::x86_64_v4) == &v3);
}
