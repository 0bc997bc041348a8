// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/op/eager.hpp>

#include <gshard/op/einsum.hpp>
#include <gshard/op/reshard.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::axes, gs::none, gs::P;

// An operation is planned on a mesh of the axes that its specs name, each once, whatever else the cluster
// has.
using three_axes = gs::detail::mesh_of<P<axes<"b", "a">, none>, P<none, "a">, P<"c">>;
static_assert(three_axes::shape.rank() == 3 && three_axes::shape.name(0) == "b" &&
              three_axes::shape.name(1) == "a" && three_axes::shape.name(2) == "c");
static_assert(gs::detail::mesh_of<P<none, none>>::shape.rank() == 0);
static_assert(gs::detail::letters_of_factors<gs::detail::counting(3, 1)>().view() == "BCD");

TEST_CASE("letters are bound to extents, each to one") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"a">>>(2);
  const gs::tensor<float, P<none, none>> s(on, {2, 3}), t(on, {3, 5}), u(on, {4, 5});
  const gs::dims d = gs::detail::bind_letters("op", std::array<std::string_view, 2>{"AB", "BC"}, s, t);
  CHECK(d.find('A') == 2);
  CHECK(d.find('B') == 3);
  CHECK(d.find('C') == 5);
  CHECK_THROWS_WITH_AS(gs::detail::bind_letters("op", std::array<std::string_view, 2>{"AB", "BC"}, s, u),
                       "op: dim 0 of operand 1 has extent 4, an earlier operand has 3 there", gs::error);
}

TEST_CASE("axes are found by name, in whatever order the cluster has them, among others") {
  std::vector<float> a(6 * 4), b(4 * 6);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i % 5), b[i] = float(i % 7);
  const auto product_on = [&](const auto& cluster) {
    const auto x = gs::from_global<float, P<"x", "y">>(cluster, {6, 4}, a);
    const auto y = gs::from_global<float, P<"y", none>>(cluster, {4, 6}, b);
    return gs::to_global(gs::einsum<"AB,BC->AC">(x, y));
  };
  const std::vector<float> expected = product_on(gs::on_one_device<gs::mesh<gs::axis<"x">, gs::axis<"y">>>());
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({2, 3})) == expected);
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"y">, gs::axis<"x">>>({2, 3})) == expected);
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"y">, gs::axis<"other">, gs::axis<"x">>>({2, 3, 2})) ==
        expected);
}
