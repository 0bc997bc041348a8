// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/run_scope.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>

namespace gs = gshard;

TEST_CASE("run_scope: without other processes it passes results and exceptions on, and restores the handler of std::terminate") {
  const auto on = gs::on_one_device<gs::mesh<gs::axis<"x">>>();
  const std::terminate_handler before = std::get_terminate();
  {
    gs::run_scope outer(on);
    CHECK((std::get_terminate() != before));
    CHECK(outer.run([] { return 7; }) == 7);
    int x = 0;
    CHECK(&gs::run_scope(on).run([&]() -> int& { return x; }) == &x);
    CHECK_THROWS_WITH_AS(gs::run_scope(on).run([] { throw std::runtime_error("no disk"); }), "no disk", std::runtime_error);
    CHECK_THROWS_AS(gs::run_scope(on).run([] { throw 3; }), int);
    CHECK((std::get_terminate() != before));
    outer.fail("nobody is told");
  }
  CHECK((std::get_terminate() == before));
}
