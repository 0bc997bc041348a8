// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/step_text.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

namespace {
constexpr int line = __LINE__ + 1;
inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
using program = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">>;
inline constexpr auto named_model = [](auto& m, auto x) {
  const gs::named_scope named(m, "activation");
  return gs::relu(x);
};
using named_program = gs::program<named_model, gs::mesh<gs::axis<"x">>, gs::in<"A">>;
}  // namespace

TEST_CASE("a step in messages: its number, its kind, its source line and the scope around it") {
  CHECK(gs::detail::step_text(program::plan, 0) == "0 map at step_text_test.cpp:" + std::to_string(line));
  CHECK(gs::detail::step_text(named_program::plan, 0) ==
        "0 map at step_text_test.cpp:" + std::to_string(line + 4) + " in \"activation\"");
}
