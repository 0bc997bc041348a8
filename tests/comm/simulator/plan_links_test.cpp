// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/simulator/plan_links.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::none, gs::op, gs::P;

namespace {

gs::torus square(int n) {
  gs::torus t;
  t.dims = 2;
  t.extents = {n, n, 1};
  return t;
}
inline constexpr auto exchange = [](auto&, auto x) { return gs::annotate<P<none, "x">>(x); };
inline constexpr auto gather = [](auto&, auto x) { return gs::annotate<P<none, none>>(x); };
template <auto Model>
using program = gs::program<Model, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<"x", none>>>;

template <auto Model>
std::vector<gs::link_load> loads(const gs::torus& t, double received) {
  gs::step_record s;
  for (std::size_t i = 0; i < program<Model>::plan.steps.size(); ++i)
    if (gs::traits(program<Model>::plan.steps[i].kind).collective) s.step = std::int32_t(i);
  s.bytes_received = std::int64_t(received);
  return gs::plan_links(gs::torus_mesh(t)).loads(program<Model>::plan, {s});
}

}  // namespace

TEST_CASE("links: an even exchange puts n / 8 of what a device sends on every link of n times n chips") {
  const int n = 8;
  const double received = 63e6;  // of 64e6 that it has
  const auto list = loads<exchange>(square(n), received);
  CHECK(list.size() == 4 * n * n);
  for (const gs::link_load& l : list) {
    CHECK(l.bytes == doctest::Approx(64e6 * n / 8));
    CHECK(l.seconds == doctest::Approx(l.bytes / 70e9));
  }
}

TEST_CASE("links: what a gather brings comes over all links evenly") {
  for (const gs::link_load& l : loads<gather>(square(4), 16e6)) CHECK(l.bytes == doctest::Approx(4e6));
}

TEST_CASE("links: a slow link slows what goes over it, up to the way round") {
  const gs::torus_mesh mesh(square(4), {4, 4});
  const gs::extents e;
  const auto times = [&](double factor, op kind, std::uint32_t axes) {
    gs::faults broken;
    broken.links = {{0, 1, factor}};  // along the last dimension
    const double whole = mesh.seconds(kind, axes, e, 1 << 20);
    return gs::faulty_torus(mesh, broken).seconds(kind, axes, e, 1 << 20) / whole;
  };
  CHECK(times(0.8, op::all_reduce, 3) == doctest::Approx(1.25));
  CHECK(times(0.8, op::all_reduce, 1) == 1);
  CHECK(times(0.1, op::all_reduce, 2) == 2);
  CHECK(times(0, op::all_reduce, 2) == 2);
  CHECK(times(0.5, op::all_to_all, 3) == doctest::Approx(2));
  CHECK(times(0.5, op::all_to_all, 1) == 1);
  CHECK(times(0, op::all_to_all, 3) > 1);
  CHECK(gs::faulty_torus(mesh, {}).seconds(op::all_to_all, 3, e, 1 << 20) == mesh.seconds(op::all_to_all, 3, e, 1 << 20));
}
