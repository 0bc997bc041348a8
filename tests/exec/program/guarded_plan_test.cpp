// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/guarded_plan.hpp>

#include <gshard/core/cost/step_time.hpp>
#include <gshard/gshard.hpp>
#include <gshard/runtime.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// Few tokens are sent to the weights. For many tokens, the weights are gathered.
inline constexpr auto serve = [](auto& m, auto x) {
  auto up = m.param("up", "M,H@x", gs::init::fan_in("M"));
  auto down = m.param("down", "H@x,M", gs::init::fan_in("H"));
  return gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, up)), down);
};
using server = gs::program<serve, mesh, in<"B@x,M">>;
const gs::dims others{{'M', 128}, {'H', 1024}};

gs::dims at(std::int64_t batch) {
  gs::dims all = others;
  all.set('B', batch);
  return all;
}
std::vector<float> tokens(std::int64_t batch) {
  std::vector<float> x(std::size_t(batch) * 128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 64;
  return x;
}

}  // namespace

TEST_CASE("a guarded plan takes the fastest of its plans at every extent") {
  const auto cluster = gs::simulate<mesh>(4);
  const gs::guarded_plan plans = gs::guard<server>(cluster, others, 'B', {4, 64, 65536});
  REQUIRE(plans.alternatives().size() == 2);
  const auto &few = plans.alternatives()[0], &many = plans.alternatives()[1];
  CHECK(few.from == 0);
  CHECK(many.from > 64);
  for (std::int64_t batch = 4; batch <= 65536; batch *= 2) {
    CAPTURE(batch);
    const auto& chosen = plans.at(batch);
    for (const auto& other : plans.alternatives()) CHECK(plans.seconds(chosen, batch) <= plans.seconds(other, batch));
  }
  CHECK(&plans.at(many.from) == &many);
  CHECK(&plans.at(many.from - 1) == &few);
  CHECK(plans.seconds(many, many.from) < plans.seconds(few, many.from));
  const std::string first = std::to_string(many.from);
  CHECK(plans.text().starts_with("B < " + first + ": "));
  CHECK(contains(plans.text(), " us at B=4, a device receives "));
  CHECK(contains(plans.text(), "\nB >= " + first + ": "));
  CHECK(gs::guard<server>(cluster, others, 'B', {4}).text().starts_with("any B: "));
  CHECK(contains(plans.text(), "  up: "));
}

TEST_CASE("executables of a guarded plan share a store, and give the results of the program's plan") {
  const auto cluster = gs::simulate<mesh>(4);
  const gs::guarded_plan plans = gs::guard<server>(cluster, others, 'B', {4, 65536});
  gs::parameter_store store(cluster, 3);
  for (const std::int64_t batch : {std::int64_t(8), plans.alternatives()[1].from}) {
    CAPTURE(batch);
    gs::executable<server> run(plans, cluster, at(batch), store), usual(cluster, at(batch), store);
    CHECK(run.executor().plan().steps.data() == plans.at(batch).plan->steps.data());
    const std::vector<float> y = gs::to_global(run(tokens(batch))), z = gs::to_global(usual(tokens(batch)));
    REQUIRE(y.size() == z.size());
    bool same = true;
    for (std::size_t i = 0; i < y.size(); ++i) same = same && y[i] == doctest::Approx(double(z[i])).epsilon(1e-4);
    CHECK(same);
  }
  const std::vector<float> x = tokens(8);
  const gs::tensor<float, gs::P<"x", gs::none>> given = gs::from_global<float, gs::P<"x", gs::none>>(cluster, {8, 128}, x);
  gs::executable<server> of_inputs(plans, cluster, {{'H', 1024}}, store, given);
  CHECK(of_inputs.executor().plan().steps.data() == plans.at(8).plan->steps.data());
}

TEST_CASE("a program that was made at run time has guarded plans") {
  const auto cluster = gs::simulate("x", 4);
  const gs::runtime_program program(serve, "x", {"B@x,M"});
  const gs::guarded_plan plans = gs::guard(program, cluster, others, 'B', {4, 65536});
  REQUIRE(plans.alternatives().size() == 2);
  gs::runtime_executable run(program.at(plans, at(65536)), cluster, at(65536));
  CHECK(run.executor().plan().steps.size() == plans.alternatives()[1].plan->steps.size());
  const gs::runtime_program other(serve, "x", {"B@x,M"});
  CHECK(complaint([&] { other.at(plans, at(4)); }) == "runtime_program: the guarded plan is one of another program");
  CHECK(complaint([&] { program.at(plans, others); }) == "runtime_program: the extent of B is not given");
}

TEST_CASE("the machine decides, and plans that are nowhere the fastest ones are left out") {
  const auto cluster = gs::simulate<mesh>(4);
  // Sending tokens takes more starts than gathering weights.
  const gs::machine slow_starts{.start = 1e-4}, fast_starts{.start = 1e-7};
  const auto plans_on = [&](const gs::machine& m) { return gs::guard<server>(cluster, others, 'B', {4, 65536}, &m); };
  CHECK(plans_on(slow_starts).alternatives().size() == 1);
  REQUIRE(plans_on(fast_starts).alternatives().size() == 2);
  CHECK(plans_on(fast_starts).alternatives()[1].from > plans_on({}).alternatives()[1].from);
  CHECK(gs::guard<server>(cluster, others, 'B', {4, 5, 6}).alternatives().size() == 1);
}

TEST_CASE("mistakes") {
  using another = gs::program<serve, mesh, in<"BM">>;
  const auto cluster = gs::simulate<mesh>(4);
  const auto said = [&](const gs::dims& given, char letter, std::initializer_list<std::int64_t> extents) {
    return complaint([&] { gs::guard<server>(cluster, given, letter, extents); });
  };
  CHECK(said(others, 'Z', {1}) == "guard: the extent of B is not given");
  CHECK(said(at(4), 'Z', {1}) == "guard: Z is not a dim of the program");
  CHECK(said(at(4), 'B', {1}) == "guard: B has an extent already");
  CHECK(said({{'M', 128}}, 'B', {1}) == "guard: the extent of H is not given");
  CHECK(said(others, 'B', {}) == "guard: no extents");
  CHECK(said(others, 'B', {4, 4}) == "guard: extents must be positive and ascend");
  CHECK(said(others, 'B', {0}) == "guard: extents must be positive and ascend");
  const gs::guarded_plan plans = gs::guard<another>(cluster, others, 'B', {4});
  CHECK(complaint([&] { gs::executable<server>(plans, cluster, at(4)); }) == "executable: the guarded plan is one of another program");
  const gs::guarded_plan own = gs::guard<server>(cluster, others, 'B', {4});
  CHECK(contains(complaint([&] { gs::executable<server>(own, cluster, {{'B', 4}, {'M', 64}, {'H', 1024}}); }), "M"));
  CHECK(contains(complaint([&] { gs::executable<server>(own, gs::simulate<mesh>(2), at(4)); }), "x"));
}
