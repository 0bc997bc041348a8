// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/checked_shard.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
using gs::in;

namespace {
constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "B", gs::init::zeros());
  const auto y = gs::einsum<"ab,b->a">(x, w);
  gs::adam{}.minimize(m, gs::sum(y * y), rate);
  return y;
};
using program = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB">, in<"">>;
}  // namespace

TEST_CASE("errors of an update name the parameter that it overwrites") {
  std::vector<std::string> names;
  for (const gs::node& n : program::plan.steps)
    if (gs::updates_parameters(n)) names.emplace_back(gs::detail::updated_name(n, program::plan));
  CHECK(names == std::vector<std::string>{"w"});
}
