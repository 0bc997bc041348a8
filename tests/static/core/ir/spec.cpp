// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/spec.hpp>

#include <string_view>
#include <type_traits>

namespace gs = gshard;
using gs::any, gs::axes, gs::none, gs::P, gs::partial;

namespace {

// P is an alias of a template over types, which compilers print.
static_assert(std::is_same_v<P<"data", none>, gs::spec<gs::shard<"data">, gs::replicated>>);
static_assert(
    std::is_same_v<P<any, axes<"data", "expert">>, gs::spec<gs::unconstrained, gs::shard<"data", "expert">>>);
static_assert(std::is_same_v<P<none, partial<"expert">>, gs::spec<gs::replicated, gs::pending<"expert">>>);
static_assert(std::is_same_v<P<axes<"data">>, P<"data">> && std::is_same_v<P<>, gs::spec<>>);
static_assert(!std::is_same_v<P<axes<"data", "expert">>, P<axes<"expert", "data">>>);

// An axis may be a template argument of the user.
template <gs::fixed_string Axis>
using cut_over = P<gs::label(Axis), none>;
static_assert(std::is_same_v<cut_over<"expert">, P<"expert", none>>);

// Models are generic lambdas that contain specs.
inline constexpr auto in_a_lambda = [](auto) { return P<axes<"data", "expert">, none, partial<"model">>{}; };
static_assert(std::is_same_v<decltype(in_a_lambda(0)),
                             gs::spec<gs::shard<"data", "expert">, gs::replicated, gs::pending<"model">>>);

// A device order is no dim, and belongs to the spec.
using gs::device_order;
static_assert(std::is_same_v<P<"data", none, device_order<1, 2, 0>>, gs::spec<gs::shard<"data">, gs::replicated, gs::on_devices<1, 2, 0>>>);
static_assert(P<"data", none, device_order<1, 0>>::rank == 2 && P<"data">::named.order.empty());
static_assert(P<"data", device_order<1, 2, 0>>::named.order.size() == 3 && P<"data", device_order<1, 2, 0>>::named.order[1] == 2);

// A partial sum is no dim.
static_assert(P<>::rank == 0 && P<"a", none, any, axes<"b", "c">>::rank == 4 &&
              P<none, none, partial<"a", "b">>::rank == 2);

constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">, gs::axis<"model">>::shape;

struct resolved {
  gs::sharding layout;
  gs::diagnostic problem;
};
template <class Spec>
constexpr resolved on_mesh = [] {
  resolved r;
  r.layout = gs::resolve(Spec::named, mesh, "wi", r.problem);
  return r;
}();
template <class Spec>
constexpr bool reports(gs::fault f, std::string_view axis) {
  const gs::diagnostic& p = on_mesh<Spec>.problem;
  return p.what == f && p.subject.view() == "wi" && p.word.view() == axis;
}

static_assert(!on_mesh<P<"data", none>>.problem && on_mesh<P<"data", none>>.layout.dim_of(0) == 0);
static_assert(on_mesh<P<"data", none>>.layout.open == 0 &&
              on_mesh<P<"data", any, none>>.layout.open == 0b010);

// Major to minor, in the order of the spec and not of the mesh.
static_assert([] {
  const gs::sharding s = on_mesh<P<none, axes<"model", "data">, "expert">>.layout;
  return s.rank == 3 && s[0].empty() && s[1].size() == 2 && s[1][0] == 2 && s[1][1] == 0 &&
         s[2].size() == 1 && s[2][0] == 1;
}());
static_assert([] {
  const gs::sharding s = on_mesh<P<"data", partial<"expert", "model">>>.layout;
  return s.rank == 1 && s.partial == 0b110 && s.used() == 0b001;
}());

static_assert(reports<P<"exprt", none>>(gs::fault::unknown_axis, "exprt"));
static_assert(reports<P<none, partial<"batch">>>(gs::fault::unknown_axis, "batch"));
static_assert(reports<P<"data", "data">>(gs::fault::axis_used_twice, "data"));
static_assert(reports<P<axes<"data", "data">>>(gs::fault::axis_used_twice, "data"));
// An axis cannot shard a tensor whose sum over it is pending.
static_assert(reports<P<"data", partial<"data">>>(gs::fault::axis_used_twice, "data"));
// The first mistake is reported.
static_assert(reports<P<"data", "data", "exprt">>(gs::fault::axis_used_twice, "data"));

}  // namespace
