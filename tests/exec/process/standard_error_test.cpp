// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/standard_error.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <string>

TEST_CASE("standard error: the text arrives as it is, at once") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(ends[1], STDERR_FILENO) >= 0);
  gshard::detail::write_to_stderr("two\nlines\n");
  ::dup2(before, STDERR_FILENO);
  char text[64];
  const auto n = ::read(ends[0], text, sizeof text);
  for (const int fd : {before, ends[0], ends[1]}) ::close(fd);
  CHECK(std::string(text, n > 0 ? std::size_t(n) : 0) == "two\nlines\n");
}
