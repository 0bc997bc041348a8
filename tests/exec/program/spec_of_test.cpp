// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/spec_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">, gs::axis<"model", 2>>;

namespace {

template <class Spec>
struct layout_of {
  static constexpr gs::sharding value = [] {
    gs::diagnostic problem;
    return gs::resolve(Spec::named, mesh::shape, "test", problem);
  }();
};
/// From a spec to a sharding and back.
template <class Spec>
constexpr bool returns = std::is_same_v<gs::detail::spec_of<mesh, layout_of<Spec>>, Spec>;

static_assert(returns<P<>>);
static_assert(returns<P<none>>);
static_assert(returns<P<"expert", none, "data">>);
static_assert(returns<P<axes<"expert", "data">, none>>);
static_assert(returns<P<none, axes<"model", "data", "expert">>>);
static_assert(returns<P<none, partial<"model">>>);
static_assert(returns<P<"data", partial<"expert", "model">>>);
static_assert(returns<P<partial<"data">>>);
// With devices in their own order, if they have one.
struct in_an_order : layout_of<P<none, "model">> {
  static constexpr gs::sharding value = [] {
    gs::sharding s = layout_of<P<none, "model">>::value;
    s.order = 1;
    return s;
  }();
  static constexpr int devices[]{1, 0};
  static constexpr gs::list_view<int> order{devices, 2};
};
static_assert(std::is_same_v<gs::detail::spec_of<mesh, in_an_order>, P<none, "model", gs::device_order<1, 0>>>);
// Partial sums are named in the order of the mesh.
static_assert(std::is_same_v<gs::detail::spec_of<mesh, layout_of<P<none, partial<"model", "data">>>>,
                             P<none, partial<"data", "model">>>);


}  // namespace

TEST_CASE("specs come back from the layouts they mean") {
  const bool same = returns<P<"data", none>>;
  CHECK(same);
}
