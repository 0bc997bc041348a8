// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/step_text.hpp>

#include <gshard/pass/program.hpp>
#include <gshard/trace/map.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

namespace {
constexpr int line = __LINE__ + 1;
inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
using program = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">>;
}  // namespace

TEST_CASE("a step in messages: its number, its kind and its source line") {
  CHECK(gs::detail::step_text(program::plan, 0) == "0 map at step_text_test.cpp:" + std::to_string(line));
}
