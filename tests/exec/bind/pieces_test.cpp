// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/pieces.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace gs = gshard;
using gs::in;

namespace {
constexpr auto model = [](auto&, auto x, auto row) {
  const auto square = x * x;
  return gs::einsum<"ab,b->a">(square + row, row);
};
using program = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB">, in<"B">>;
}  // namespace

TEST_CASE("steps whose operands all have the dims of the result are elementwise") {
  std::vector<bool> elementwise;
  for (const gs::node& n : program::plan.steps) elementwise.push_back(gs::detail::is_elementwise(n));
  CHECK(elementwise == std::vector<bool>{true, false, false});
}
