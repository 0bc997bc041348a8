// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/float_environment.hpp>

#include <gshard/exec/backend/simulated.hpp>

#include "../backend/float_modes.hpp"

#include <doctest/doctest.h>

#include <cfenv>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::detail::float_environment;
using float_modes::mode;

TEST_CASE("float_environment: how a thread rounds, and whether it flushes") {
  const std::vector<std::pair<int, std::string>> roundings{
      {FE_TONEAREST, "rounding to nearest"}, {FE_UPWARD, "rounding upward"}, {FE_DOWNWARD, "rounding downward"}, {FE_TOWARDZERO, "rounding toward zero"}};
  for (const auto& [rounding, text] : roundings) {
    {
      const mode now(rounding);
      CHECK(float_environment::here().text() == text);
      CHECK((float_environment::here() == float_environment()) == (rounding == FE_TONEAREST));
    }
    if (!float_modes::can_flush) continue;
    {
      const mode now(rounding, float_modes::flush_results | float_modes::flush_operands);
      CHECK(float_environment::here().text() == text + ", subnormal results become 0, subnormal operands count as 0");
    }
    if (!float_modes::flushes_apart) continue;
    {
      const mode now(rounding, float_modes::flush_results);
      CHECK(float_environment::here().text() == text + ", subnormal results become 0");
    }
    const mode now(rounding, float_modes::flush_operands);
    CHECK(float_environment::here().text() == text + ", subnormal operands count as 0");
  }
  CHECK(float_environment::here() == float_environment());
}

TEST_CASE("float_environment: a thread has its own, and inherits that of its maker") {
  std::string upward;
  {
    const mode now(FE_UPWARD);
    std::thread([&] { upward = float_environment::here().text(); }).join();
  }
  CHECK(upward == "rounding upward");
  std::thread([&] { std::fesetround(FE_DOWNWARD); }).join();
  CHECK(float_environment::here() == float_environment());
}

TEST_CASE("float_environment: a backend knows the one in which it was made") {
  gs::simulated usual({2});
  CHECK(usual.changed_environment().empty());
  const mode now(FE_UPWARD);
  CHECK(usual.changed_environment() ==
        "the floating-point environment has changed since the cluster was made: it was rounding to nearest, it is rounding upward");
  gs::simulated upward({2});
  CHECK(upward.changed_environment().empty());
  std::string text = "unset";
  std::thread([&] {
    const mode there(FE_TONEAREST);
    text = upward.changed_environment();
  }).join();
  CHECK(text == "the floating-point environment has changed since the cluster was made: it was rounding upward, it is rounding to nearest");
}
