// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/new_dims.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using every_spec::check, every_spec::operand;
using gs::none, gs::P, gs::tensor;

namespace {
template <class... Specs>
void check_all(auto make) {
  const std::vector<double> expected = gs::to_global(make.template operator()<P<none, none>>(gs::on_one_device<every_spec::mesh>()));
  for (const std::vector<int>& e : every_spec::meshes) {
    const auto on = gs::simulate<every_spec::mesh>(e);
    for (int again = 0; again < 2; ++again)
      CHECK(((gs::to_global(make.template operator()<Specs>(on)) == expected) && ...));
  }
}
}  // namespace

TEST_CASE("random numbers depend on the seed and the index, not on the sharding or on earlier calls") {
  const auto sample = [](std::uint64_t seed) {
    return [seed]<class Spec>(const auto& on) { return gs::uniform<double, Spec>(on, {5, 7}, seed); };
  };
  check_all<P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">>(sample(3));
  check_all<P<"x", none>, P<"y", "x">>([]<class Spec>(const auto& on) { return gs::normal<double, Spec>(on, {5, 7}, 3); });
  const auto on = gs::on_one_device<every_spec::mesh>();
  const std::vector<double> a = gs::to_global(sample(3).operator()<P<none, none>>(on));
  const std::vector<double> b = gs::to_global(sample(4).operator()<P<none, none>>(on));
  CHECK(a != b);
  for (const double v : a) CHECK((v >= 0 && v < 1));
  CHECK_THROWS_WITH_AS((gs::uniform<float, P<"x">>(on, {5, 7}, 3)), "uniform: 2 extents for a spec of 1 dims", gs::error);
  CHECK_THROWS_AS((gs::uniform<float, P<"z">>(on, {5}, 3)), gs::error);
}

TEST_CASE("iota along either dim") {
  const auto on = gs::simulate<every_spec::mesh>({2, 3});
  CHECK(gs::to_global(gs::iota<P<"x", "y">>(on, {3, 2})) == std::vector<std::int32_t>{0, 0, 1, 1, 2, 2});
  CHECK(gs::to_global(gs::iota<P<"x", "y">, 1>(on, {3, 2})) == std::vector<std::int32_t>{0, 1, 0, 1, 0, 1});
}

TEST_CASE("one_hot of a number of classes that is known at run time") {
  const operand<std::int32_t, P<none>, P<"x">> ids{{4}, {2, 0, -1, 3}};
  for (const std::int64_t classes : {3, 5}) {
    std::vector<float> expected(std::size_t(4 * classes));
    for (std::size_t i = 0; i < 4; ++i)
      if (const std::int32_t id = ids.values[i]; id >= 0 && id < classes) expected[i * std::size_t(classes) + std::size_t(id)] = 1;
    check(expected, [&](const auto& i) { return gs::one_hot(i, classes); }, ids);
  }
  const auto on = gs::simulate<every_spec::mesh>({2, 1});
  const auto i = gs::from_global<std::int32_t, P<"x">>(on, {4}, ids.values);
  static_assert(std::is_same_v<decltype(gs::one_hot<double>(i, 3)), tensor<double, P<"x", none>>>);
  CHECK_THROWS_WITH_AS(gs::one_hot(i, -2), "one_hot: a new dim has extent -2", gs::error);
}
