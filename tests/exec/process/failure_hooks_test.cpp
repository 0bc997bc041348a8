// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/failure_hooks.hpp>

#include <gshard/exec/process/error.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace gs = gshard;

TEST_CASE("failure hooks: a not_finite_error that is thrown is told before, with its step; other errors are not") {
  static std::string told;
  gs::detail::failure_hooks& hooks = gs::detail::failure_hooks::get();
  const auto before =
      hooks.not_finite.exchange([](const std::string& text, std::uint32_t step) { told += std::to_string(step) + " " + text; });
  CHECK_THROWS_AS(gs::process_error::not_finite("the loss is NaN", 7, 3).fail(), gs::not_finite_error);
  CHECK(told == "7 the loss is NaN");
  CHECK_THROWS_WITH_AS(gs::process_error("no disk").fail(), "no disk", gs::error);
  CHECK(told == "7 the loss is NaN");
  hooks.not_finite = nullptr;
  CHECK_THROWS_AS(gs::process_error::not_finite("again", 8, 0).fail(), gs::not_finite_error);
  CHECK(told == "7 the loss is NaN");
  hooks.not_finite = before;
  const auto no_abort = hooks.abort.exchange(nullptr);
  gs::detail::failure_hooks::tell_abort("nobody hears it");
  hooks.abort = no_abort;
}
