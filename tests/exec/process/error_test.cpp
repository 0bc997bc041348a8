// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/error.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace gs = gshard;

// Copying an exception must not throw. No text converts to an error implicitly.
static_assert(std::is_base_of_v<std::runtime_error, gs::error>);
static_assert(std::is_nothrow_copy_constructible_v<gs::error> &&
              std::is_nothrow_copy_assignable_v<gs::error>);
static_assert(std::is_constructible_v<gs::error, std::string> &&
              std::is_constructible_v<gs::error, const char*>);
static_assert(!std::is_convertible_v<std::string, gs::error> && !std::is_default_constructible_v<gs::error>);

TEST_CASE("error: programs that do not know gshard see an ordinary exception with the whole text") {
  const std::string text = "einsum [a:2,b:3]: 'b' has two extents";
  CHECK_THROWS_WITH_AS(throw gs::error(text), text.c_str(), gs::error);
  CHECK_THROWS_WITH_AS(throw gs::error(text.c_str()), text.c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(throw gs::error(text), text.c_str(), std::exception);
}

TEST_CASE("error: a text with a NUL is not cut there") {
  using namespace std::string_literals;
  CHECK(gs::error("a\0b: cannot be opened\0"s).what() == "a\\0b: cannot be opened\\0"s);
  CHECK(gs::not_finite_error("\0"s, 1).what() == "\\0"s);
}

TEST_CASE("not_finite_error: is an error with a step, and processes pass it on as a value") {
  static_assert(std::is_base_of_v<gs::error, gs::not_finite_error>);
  const std::string text = "the loss is nan";
  const gs::process_error problem = gs::detail::problem_of([&] { throw gs::not_finite_error(text, 4000000000u); });
  CHECK(problem.kind == gs::process_error::kind_of::not_finite);
  CHECK(problem.text == text);
  try {
    problem.fail();
  } catch (const gs::not_finite_error& e) {
    CHECK(e.what() == text);
    CHECK(e.step == 4000000000u);
  }
}

TEST_CASE("process_error: a text, the exception of a function, or none") {
  using kind = gs::process_error::kind_of;
  CHECK(gs::process_error().empty());
  CHECK(gs::process_error("").empty());
  CHECK(gs::process_error(std::string("no disk")).kind == kind::error);
  CHECK_THROWS_WITH_AS(gs::process_error("no disk").fail(), "no disk", gs::error);
  CHECK(gs::detail::problem_of([] {}).empty());
  CHECK(gs::detail::problem_of([] { throw std::runtime_error("of others"); }).text == "of others");
  CHECK(gs::detail::problem_of([] { throw std::runtime_error(""); }).text == "an exception without a text");
  CHECK(gs::detail::problem_of([] { throw 3; }).kind == kind::error);
}

TEST_CASE("process_error: is the same on another process, whatever its text") {
  for (const std::string& text : {std::string("the loss is nan"), std::string("\x01not finite\0 1", 14), std::string(300, 'x')})
    for (const gs::process_error& sent :
         {gs::process_error(), gs::process_error(text), gs::process_error::not_finite(text, 4000000000u, std::uint64_t(1) << 40)}) {
      const std::string bytes = sent.to_bytes();
      const gs::process_error got = gs::process_error::from_bytes(bytes), shorter = gs::process_error::from_bytes(bytes.substr(0, 15));
      CHECK(got.kind == sent.kind);
      CHECK(got.text == sent.text);
      CHECK(got.step == sent.step);
      CHECK(got.place == sent.place);
      CHECK(shorter.kind == sent.kind);
      CHECK(shorter.place == sent.place);
      CHECK(shorter.text == sent.text.substr(0, 2));
      for (std::size_t size = 0; size < 13; ++size)
        CHECK_THROWS_AS(gs::process_error::from_bytes(bytes.substr(0, size)), gs::error);
    }
}

TEST_CASE("error: is told from the errors of others, and kept beyond the place where it was caught") {
  const auto caught = [](auto fail) {
    try {
      fail();
    } catch (const gs::error& e) {
      return std::string("gshard: ") + e.what();
    } catch (const std::runtime_error& e) {
      return std::string("other: ") + e.what();
    }
    return std::string();
  };
  CHECK(caught([] { throw gs::error("a"); }) == "gshard: a");
  CHECK(caught([] { throw std::runtime_error("b"); }) == "other: b");

  std::exception_ptr kept;
  try {
    throw gs::error("from a thread");
  } catch (...) {
    kept = std::current_exception();
  }
  CHECK(caught([&] { std::rethrow_exception(kept); }) == "gshard: from a thread");
}
