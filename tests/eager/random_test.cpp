// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/random.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

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
