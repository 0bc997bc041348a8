// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/plan_links.hpp>

#include <gshard/plan.hpp>
#include <gshard/sim/network/collective_messages.hpp>
#include <gshard/sim/network/events.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../../complaint.hpp"
#include "../run/chips.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

gs::torus square(int n) { return chips({n, n}); }
inline constexpr auto exchange = [](auto&, auto x) { return gs::annotate<P<none, "x">>(x); };
inline constexpr auto gather = [](auto&, auto x) { return gs::annotate<P<none, none>>(x); };
inline constexpr auto total = [](auto&, auto x) { return gs::annotate<P<none>>(gs::sum<"AB->B">(x)); };
inline constexpr auto scatter = [](auto&, auto x) { return gs::annotate<P<"x">>(gs::sum<"AB->B">(x)); };
/// The link loads of a plan's only collective, or of another kind in its place.
template <auto Model>
std::vector<gs::link_load> loads(const gs::torus_mesh& m, double received, const gs::faults& broken = {}, gs::op_ref kind = op::none) {
  gs::plan_tables plan = gs::detail::build_program<Model, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<"x", none>>>();
  gs::step_record s;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (gs::traits(plan.steps[i].kind).collective) s.step = std::int32_t(i);
  if (kind != op::none) plan.steps[std::size_t(s.step)].kind = kind;
  s.bytes_received = std::int64_t(received);
  return gs::plan_links(m, broken).loads(plan.view(), {s});
}

}  // namespace

TEST_CASE("links: an even exchange puts n / 8 of what a device sends on every link of n times n chips") {
  const int n = 8;
  const double received = 63e6;  // of 64e6 that a device holds
  const auto list = loads<exchange>(gs::torus_mesh(square(n)), received);
  CHECK(list.size() == 4 * n * n);
  for (const gs::link_load& l : list) {
    CHECK(l.bytes == doctest::Approx(64e6 * n / 8));
    CHECK(l.seconds == doctest::Approx(l.bytes / 70e9));
  }
}

TEST_CASE("links: what a gather brings comes over all links evenly") {
  for (const gs::link_load& l : loads<gather>(gs::torus_mesh(square(4)), 16e6)) CHECK(l.bytes == doctest::Approx(4e6));
}

TEST_CASE("links: the busiest link of a gather or a sum takes as long as its price without hops") {
  for (gs::torus t : {chips({8}), chips({5}), chips({4, 2}), chips({32, 2}), chips({32, 16}), chips({8, 8}), chips({8}, 1, false),
                      chips({4, 2}, 1, false), chips({8, 8}, 1, false)}) {
    t.hop = t.launch = 0;
    t.cores = 2;
    CAPTURE(t.extent(0));
    CAPTURE(t.extent(1));
    CAPTURE(t.wrap[0]);
    const gs::torus_mesh m(t);
    const double n = t.devices(), whole = 64e6, received = whole * (n - 1) / n;
    const auto busiest = [](const std::vector<gs::link_load>& list) {
      return std::ranges::max_element(list, {}, &gs::link_load::seconds)->seconds;
    };
    const double price = gs::all_gather_seconds(t, all_of(t), whole, gs::gather_scheme::streamed);
    CHECK(busiest(loads<gather>(m, received)) == doctest::Approx(price).epsilon(1e-6));
    CHECK(m.seconds(op::all_gather, 1, {}, std::int64_t(received)) == doctest::Approx(price).epsilon(1e-6));
    CHECK(busiest(loads<total>(m, 2 * received)) <= 2 * price * (1 + 1e-6));
    CHECK(busiest(loads<total>(m, 2 * received)) >= (t.wrap[0] ? 2 : 1) * price * (1 - 1e-6));
  }
}

TEST_CASE("links: of a gather, simulated message by message, or of groups of it") {
  constexpr double whole = 64e6;
  for (const gs::torus& t : {chips({6}, 1, false), chips({5}), chips({4, 4}), chips({8, 4}), chips({4, 4}, 1, false)}) {
    const gs::torus_mesh m(t);
    CAPTURE(t.extent(0));
    CAPTURE(t.extent(1));
    CAPTURE(t.wrap[0]);
    const double received = whole * (t.devices() - 1) / t.devices();
    const auto same = [&](const std::vector<gs::link_load>& got, const gs::message_list& messages) {
      const std::vector<gs::link_load> expected = gs::simulate(m, messages).links;
      REQUIRE(got.size() == expected.size());
      for (std::size_t l = 0; l < got.size(); ++l) CHECK(got[l].bytes == doctest::Approx(expected[l].bytes));
    };
    same(loads<gather>(m, received), gs::all_gather_messages(m, 1, whole, gs::gather_scheme::streamed));
    same(loads<total>(m, 2 * received), gs::all_reduce_messages(m, 1, whole, gs::gather_scheme::streamed));
    same(loads<scatter>(m, received), gs::reduce_scatter_messages(m, 1, whole, gs::gather_scheme::streamed));
  }
  for (const bool wrap : {true, false})
    for (const std::array<int, 2> axes : {std::array{2, 4}, std::array{4, 2}}) {
      const gs::torus_mesh m(chips({8}, 1, wrap), {axes[1], axes[0]});
      const double received = whole * (axes[1] - 1) / axes[1];
      const std::vector<gs::link_load> got = loads<gather>(m, received),
                                       expected = gs::simulate(m, gs::all_gather_messages(m, 1, whole, gs::gather_scheme::streamed)).links;
      REQUIRE(got.size() == expected.size());
      for (std::size_t l = 0; l < got.size(); ++l) CHECK(got[l].bytes == doctest::Approx(expected[l].bytes));
    }
}

TEST_CASE("links: an open line brings its end all that it receives, over one link") {
  double to_end = 0;
  for (const gs::link_load& l : loads<gather>(gs::torus_mesh(chips({8}, 1, false)), 29.4e6))
    if (l.to == 7) to_end = l.bytes;
  CHECK(to_end == doctest::Approx(29.4e6));
}

TEST_CASE("links: a permute goes to the next device, and what went over a dead link, or was to, goes round it") {
  for (const gs::link_load& l : loads<exchange>(gs::torus_mesh(square(4), {4, 4}), 1e6, {}, op::collective_permute)) {
    CAPTURE(l.from);
    CHECK(l.bytes == (l.to == (l.from + 4) % 16 ? 1e6 : 0));
  }
  const gs::faults broken{.links = {{0, 1, 0}}};
  const std::vector<gs::link_load> list = loads<gather>(gs::torus_mesh(square(4)), 15e6, broken);
  CHECK(list.size() == 63);
  double most = 0, all = 0;
  for (const gs::link_load& l : list) most = std::max(most, l.bytes), all += l.bytes;
  CHECK(most == doctest::Approx(2 * 3.75e6));
  CHECK(all == doctest::Approx((63 + 3) * 3.75e6));
}

TEST_CASE("links: dead links that cut devices off are an error, and so are two breaks of a ring that cannot go round") {
  const auto problem = [](const gs::torus& t, const gs::faults& broken) {
    return complaint([&] { gs::plan_links{gs::torus_mesh(t), broken}; });
  };
  const std::string cut = "link loads: dead links such as from chip 0 to chip 1 cut off ";
  CHECK(problem(chips({8}, 1, false), {.links = {{0, 1, 0}, {1, 0, 0}}}) == cut + "the devices 1 from the devices 0");
  CHECK(problem(chips({2, 4}, 1, false), {.links = {{0, 1, 0}, {1, 0, 0}, {0, 4, 0}, {4, 0, 0}}}) ==
        cut + "the devices 4 from the devices 0");
  CHECK(problem(chips({8}), {.links = {{0, 1, 0}, {4, 3, 0}}}).find(cut) == 0);
  CHECK(problem(chips({8}), {.links = {{0, 1, 0}, {1, 0, 0}, {2, 3, 0}}}).find(cut) == 0);
  CHECK(problem(chips({8}), {.links = {{0, 1, 0}, {2, 3, 0}}}).empty());  // all messages go down

  const auto slower = [](const gs::faults& broken) {
    return gs::plan_links(gs::torus_mesh(chips({4, 8}), {4, 8}), broken).slowdown(op::all_gather, 2);
  };
  CHECK(slower({.links = {{0, 1, 0}}}) == 2);
  CHECK(slower({.links = {{0, 1, 0}, {1, 0, 0}}}) == 2);
  CHECK(slower({.links = {{0, 1, 0}, {3, 4, 0}}}) == 2);
  CHECK(slower({.links = {{0, 1, 0}, {1, 0, 0}, {3, 4, 0}, {4, 3, 0}}}) == 3);
  CHECK(slower({.links = {{0, 1, 0}, {4, 3, 0}}}) == 3);
}

TEST_CASE("links: a slow link slows what goes over it, up to the way round") {
  const gs::torus_mesh mesh(square(4), {4, 4});
  const gs::extents e;
  const auto times = [&](double factor, gs::op_ref kind, std::uint32_t axes) {
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
