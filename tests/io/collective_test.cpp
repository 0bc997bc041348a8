// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/collective.hpp>

#include <gshard/exec/backend/loopback.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>

#include <map>
#include <stdexcept>
#include <string>

namespace gs = gshard;

// Tests with several processes are in checkpoint_mpi_test.cpp.

TEST_CASE("on_leader: whatever is thrown becomes one kind of error, with its text") {
  gs::loopback on(1);
  int calls = 0;
  gs::detail::on_leader(on, [&] { ++calls; });
  CHECK(calls == 1);
  CHECK(complaint([&] { gs::detail::on_leader(on, [] { throw gs::error("mine"); }); }) == "mine");
  CHECK(complaint([&] { gs::detail::on_leader(on, [] { throw std::runtime_error("another's"); }); }) ==
        "another's");
  CHECK(complaint([&] { gs::detail::on_leader(on, [] { throw gs::error(""); }); }) == "an exception without a text");
}

TEST_CASE("on_leader of a cluster: every process gets the text that the leader makes") {
  const auto on = gs::on_one_device<gs::mesh<gs::axis<"x">>>();
  int calls = 0;
  gs::on_leader(on, [&] { ++calls; });
  CHECK(gs::on_leader(on, [&] { return std::to_string(++calls); }) == "2");
  CHECK(complaint([&] { (void)gs::on_leader(on, []() -> std::string { throw std::runtime_error("no vocabulary"); }); }) == "no vocabulary");
}

TEST_CASE("share: the leader keeps what it has") {
  gs::loopback on(1);
  std::string text("any\0thing", 9);
  gs::detail::share(on, text);
  CHECK(text == std::string("any\0thing", 9));
  std::map<std::string, std::string> table{{"", "empty"}, {"a", ""}, {"b", text}}, same = table;
  gs::detail::share(on, table);
  CHECK(table == same);
}
