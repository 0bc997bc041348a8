// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/agreement_points.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;
using gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using in_shards = gs::in<"A", P<"x">>;
constexpr auto not_early = [](std::size_t) { return false; };

template <auto Model, class... Inputs>
gs::detail::agreement_points points_of() {
  return {gs::program<Model, mesh, Inputs...>::plan, not_early};
}

inline constexpr auto local = [](auto&, auto x) { return x * x; };
inline constexpr auto checked = [](auto&, auto x) { return gs::check_finite(x * x, "x"); };
inline constexpr auto summed = [](auto&, auto x) { return gs::sum(x); };
inline constexpr auto sum_then_rows = [](auto&, auto x, auto ids) { return std::tuple{gs::gather(gs::sum(x) * x, ids), gs::sum(x)}; };
template <gs::not_finite Policy>
inline constexpr auto trained = [](auto& m, auto x, auto rate) {
  const auto loss = gs::sum(x * m.param("w", "A", gs::init::constant(1)));
  gs::adam{.if_not_finite = Policy}.minimize(m, loss, rate);
};

}  // namespace

TEST_CASE("agreements: before the first step that communicates or writes, and at the end if something may fail after it") {
  const auto none = points_of<local, in_shards>();
  CHECK(none.begin == 1);  // no step: at the end
  CHECK(none.first_write == 1);
  CHECK(!none.at_end(false));
  CHECK(none.at_end(true));
  auto check = points_of<checked, in_shards>();
  CHECK(check.begin == 2);
  check.without_first(gs::program<checked, mesh, in_shards>::plan);
  CHECK(check.begin == std::size_t(-1));
  CHECK(check.at_end(false));
  CHECK(!points_of<summed, in_shards>().at_end(false));
  CHECK(points_of<sum_then_rows, in_shards, gs::in<"B", void, std::int32_t>>().at_end(false));
}

TEST_CASE("agreements: at the end of a training step, unless nothing is checked") {
  const auto steps = [](const auto& p) { return p.first_write; };
  const auto stop = points_of<trained<gs::not_finite::stop>, in_shards, gs::in<"">>(),
             ignore = points_of<trained<gs::not_finite::ignore>, in_shards, gs::in<"">>();
  CHECK(stop.at_end(false));
  CHECK(!ignore.at_end(false));
  CHECK(!ignore.at_end(true));
  CHECK(steps(stop) == steps(ignore));
}
