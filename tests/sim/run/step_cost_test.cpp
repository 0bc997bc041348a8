// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/step_cost.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
constexpr gs::machine slow_memory{1e12, 1e9, 1e9, 0}, slow_arithmetic{1e9, 1e12, 1e12, 0}, slow_network{1e12, 1e12, 1e6, 0};

template <class Program>
std::vector<gs::step_record> costs(const gs::dims& d, int devices, const gs::machine& on, const gs::efficiency& share = {}) {
  return gs::costs_of(Program::plan, Program::plan.bind(d, std::array{devices}), on, on, share);
}
template <class Program>
const gs::step_record& of(const std::vector<gs::step_record>& costs, gs::op_ref kind) {
  for (const gs::step_record& c : costs)
    if (Program::plan.steps[std::size_t(c.step)].kind == kind) return c;
  FAIL("no such step");
  return costs[0];
}

inline constexpr auto product = [](auto&, auto x, auto w) { return gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, w)); };
using sums = gs::program<product, mesh, gs::in<"AB", P<none, "x">>, gs::in<"BC", P<"x", none>>>;

}  // namespace

TEST_CASE("costs: the longest of arithmetic, memory and network, each at its share of the rate") {
  const gs::dims d{{'A', 512}, {'B', 2048}, {'C', 256}};
  gs::efficiency share;
  share.products = 0.5, share.memory = 0.25;
  const double flops = 2.0 * 512 * 512 * 256, bytes = 4.0 * (512 * 512 + 512 * 256 + 512 * 256);
  const auto a = of<sums>(costs<sums>(d, 4, slow_arithmetic, share), op::einsum);
  CHECK(a.flops == flops);
  CHECK(a.seconds == doctest::Approx(flops / 1e9 / 0.5));
  CHECK(a.bound == gs::limit::arithmetic);
  const auto m = of<sums>(costs<sums>(d, 4, slow_memory, share), op::einsum);
  CHECK(m.seconds == doctest::Approx(bytes / 1e9 / 0.25));
  CHECK(m.bound == gs::limit::memory);
  const auto n = of<sums>(costs<sums>(d, 4, slow_network, share), op::all_reduce);
  CHECK(n.bytes_received == 4 * 512 * 256 * 2 * 3 / 4);
  CHECK(n.seconds == doctest::Approx(double(n.bytes_received) / 1e6));
  CHECK(n.bound == gs::limit::network);
}

TEST_CASE("costs: products skip the empty slots of experts") {
  static constexpr auto layer = [](auto& m, auto x, auto gates) {
    const auto route = gs::top_k_gating(gates);
    const auto in = gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x);
    const auto w = m.param("w", "EMF", P<"x", none, none>{}, gs::init::fan_in("M"));
    return gs::einsum<"EGCM,EMF->EGCF">(in, w);
  };
  using experts = gs::program<layer, mesh, gs::in<"GSM", P<"x", none, none>>, gs::in<"GSE", P<"x", none, none>>>;
  const gs::dims d{{'G', 8}, {'S', 64}, {'M', 512}, {'E', 8}, {'F', 512}};
  gs::efficiency share;
  const double full = of<experts>(costs<experts>(d, 4, slow_arithmetic, share), op::einsum).arithmetic;
  share.filled_slots = 0.25;
  CHECK(of<experts>(costs<experts>(d, 4, slow_arithmetic, share), op::einsum).arithmetic == doctest::Approx(full / 4));
  const gs::dims other{{'A', 512}, {'B', 2048}, {'C', 256}};
  CHECK(of<sums>(costs<sums>(other, 4, slow_arithmetic, share), op::einsum).arithmetic ==
        of<sums>(costs<sums>(other, 4, slow_arithmetic), op::einsum).arithmetic);
}

TEST_CASE("costs: what takes twice as long as a byte, or less, is bound by the start") {
  const gs::dims d{{'A', 512}, {'B', 2048}, {'C', 256}};
  gs::machine on = slow_network;
  const double bytes = 4 * 512 * 256 * 2 * 3 / 4.0;
  on.start = 0.9 * bytes / on.link_bytes;
  CHECK(of<sums>(costs<sums>(d, 4, on), op::all_reduce).bound == gs::limit::network);
  on.start = 1.1 * bytes / on.link_bytes;
  CHECK(of<sums>(costs<sums>(d, 4, on), op::all_reduce).bound == gs::limit::start);
}

namespace {
struct asked {
  mutable std::vector<gs::op_ref> kinds{};
  double seconds(gs::op_ref kind, std::uint32_t, const gs::extents&, std::int64_t) const {
    kinds.push_back(kind);
    return 1;
  }
};
}  // namespace

TEST_CASE("costs: a looped einsum has the price that the planner gives it") {
  constexpr auto looped = [](auto& m, auto b) {
    return gs::einsum<"BM,MH->BH">(b, m.param("wi", "MH", P<none, "x">{}, gs::init::zeros()));
  };
  using program = gs::program<looped, gs::mesh<gs::axis<"x", 4>>, gs::in<"BM", P<"x", none>>, gs::extent<'B', 256>, gs::extent<'M', 32>,
                              gs::extent<'H', 128>, gs::loop_above<0>>;
  REQUIRE(program::plan.count(op::looped_einsum) == 1);
  const asked network;
  gs::costs_of(program::plan, program::plan.bind({{'B', 256}, {'M', 32}, {'H', 128}}, std::array{4}), slow_network, network);
  CHECK(!network.kinds.empty());
  for (const gs::op_ref kind : network.kinds) CHECK(kind == op::looped_einsum);
}

TEST_CASE("costs: many small products are slower than large ones") {
  constexpr auto many = [](auto&, auto x, auto y) { return gs::einsum<"HAB,HBC->HAC">(x, y); };
  using program = gs::program<many, mesh, gs::in<"HAB", P<"x", none, none>>, gs::in<"HBC", P<"x", none, none>>>;
  const auto seconds = [&](std::int64_t heads, std::int64_t extent) {
    const auto c = of<program>(costs<program>({{'H', heads}, {'A', 1024}, {'B', extent}, {'C', 1024}}, 4, slow_arithmetic), op::einsum);
    return c.seconds * 1e9 / c.flops;
  };
  CHECK(seconds(4, 128) == doctest::Approx(1 / 0.85));  // one product on each device
  CHECK(seconds(8, 128) == doctest::Approx(1 / 0.30));
  CHECK(seconds(8, 512) == doctest::Approx(1 / 0.85));
}

TEST_CASE("costs: fused operations do not go through memory, what several read does") {
  constexpr auto chain = [](auto&, auto x) { return gs::relu(gs::relu(x) * 2.0); };
  constexpr auto fork = [](auto&, auto x) {
    const auto y = gs::relu(x);
    return std::tuple{y, y * 2.0};
  };
  using one = gs::program<chain, mesh, gs::in<"A", P<"x">>>;
  using two = gs::program<fork, mesh, gs::in<"A", P<"x">>>;
  const auto touched = [](const std::vector<gs::step_record>& costs) {
    std::int64_t bytes = 0;
    for (const gs::step_record& c : costs) bytes += c.bytes_received == 0 ? c.bytes_touched : 0;
    return bytes;
  };
  constexpr auto sums = [](auto&, auto x) {
    const auto y = gs::relu(x);
    return std::tuple{gs::sum<"AB->A">(y), gs::sum<"AB->B">(y)};
  };
  using cheap = gs::program<sums, mesh, gs::in<"AB", P<"x", none>>>;
  constexpr auto twice = [](auto&, auto x, auto w) {
    const auto y = gs::relu(x);
    return gs::map([](auto a, auto b, auto c) { return a * b + c; }, y, w, y);
  };
  using repeated = gs::program<twice, mesh, gs::in<"A", P<"x">>, gs::in<"A", P<"x">>>;
  gs::efficiency apart;
  apart.fusion = false;
  const gs::dims d{{'A', 400}, {'B', 100}};
  CHECK(touched(costs<cheap>(d, 4, slow_memory)) == 2 * 40000 + 400 + 400);  // x is read twice; y is neither written nor read
  CHECK(touched(costs<cheap>(d, 4, slow_memory, apart)) == 4 * 40000 + 400 + 400);
  CHECK(touched(costs<repeated>({{'A', 400}}, 4, slow_memory)) == 3 * 400);  // x, w and the result; y is fused, and counts once
  CHECK(touched(costs<one>({{'A', 400}}, 4, slow_memory)) == 2 * 400);
  CHECK(touched(costs<one>({{'A', 400}}, 4, slow_memory, apart)) == 6 * 400);
  CHECK(touched(costs<two>({{'A', 400}}, 4, slow_memory)) == touched(costs<two>({{'A', 400}}, 4, slow_memory, apart)));
}
