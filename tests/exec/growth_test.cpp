// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cost of a training step of a Transformer by counts: additions and multiplications, and bytes in memory and between devices.
#include <gshard/core/cost/step_time.hpp>

#include <gshard/all_kernels.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adam.hpp>

#include "planner.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;

template <int Layers>
inline constexpr auto training_step = [](auto& m, auto source, auto target, auto next, auto rate) {
  constexpr gs::nn::transformer_options options{
      .encoder_layers = Layers, .decoder_layers = Layers, .dropout = 0, .moe = {.routing = {.k = 2, .slots = gs::capacity{2}}}};
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target, target_mask, memory, source_mask, options, routing);
  const auto loss = gs::mean(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), next, 0.1));
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
template <gs::fixed_string Letters>
using ids = gs::in<Letters, P<"expert", none, none>, std::int32_t>;

template <int Layers>
gs::plan_view the_plan() {
  return planned::plan_of<gs::program<training_step<Layers>, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, gs::in<"">>>();
}

constexpr std::int64_t length = 8, width = 16, hidden = 512;

/// The extents for this number of groups, sequences per group, and experts.
gs::dims sizes(std::int64_t groups, std::int64_t sequences, std::int64_t experts) {
  return {{'G', groups}, {'B', sequences}, {'S', length}, {'T', length}, {'M', width}, {'H', 2},
          {'D', 8},      {'F', hidden},    {'E', experts}, {'V', 64},    {'L', length}};
}

struct cost {
  double flops, touched, received;
};
template <int Layers>
cost cost_of(const gs::dims& d, int devices) {
  const gs::plan_view plan = the_plan<Layers>();
  const gs::extents e = plan.bind(d, std::array{devices});
  return {gs::flops(plan, e), double(gs::bytes_touched(plan, e)), double(plan.bytes_received(e))};
}

/// Checks that a, b and c are a fixed part plus one, two and three times another part. Neither is negative.
void check_line(double a, double b, double c) {
  CHECK(c - b == doctest::Approx(b - a).epsilon(1e-9));
  CHECK(b > a);
  CHECK(2 * a >= b);
}

}  // namespace

TEST_CASE("growth: linear in sequences") {
  for (const int devices : {1, 4}) {
    CAPTURE(devices);
    const auto at = [&](std::int64_t sequences) { return cost_of<2>(sizes(4, sequences, 4), devices); };
    const cost once = at(4), twice = at(8), thrice = at(12);
    check_line(once.flops, twice.flops, thrice.flops);
    check_line(once.touched, twice.touched, thrice.touched);
    if (devices > 1) check_line(once.received, twice.received, thrice.received);
  }
}

TEST_CASE("growth: linear in layers") {
  for (const int devices : {1, 4}) {
    CAPTURE(devices);
    const gs::dims d = sizes(4, 4, 4);
    const cost two = cost_of<2>(d, devices), four = cost_of<4>(d, devices), six = cost_of<6>(d, devices);
    check_line(two.flops, four.flops, six.flops);
    check_line(two.touched, four.touched, six.touched);
    if (devices > 1) check_line(two.received, four.received, six.received);
    check_line(double(the_plan<2>().steps.size()), double(the_plan<4>().steps.size()), double(the_plan<6>().steps.size()));
  }
}

TEST_CASE("growth: with as many groups and experts as devices, each computes and receives the same") {
  const gs::plan_view plan = the_plan<2>();
  const auto on_devices = [&](int n) { return plan.bind(sizes(n, 4, n), std::array{n}); };
  const double alone = gs::flops(plan, on_devices(1));
  const auto exchanged = [&](int n) { return double(plan.bytes_received(op::all_to_all, on_devices(n))); };
  CHECK(plan.bytes_received(on_devices(1)) == 0);
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    // Only the router's products grow: one per expert.
    CHECK(gs::flops(plan, on_devices(n)) == doctest::Approx(alone).epsilon(0.02));
    CHECK(gs::flops(plan, on_devices(n)) >= alone);
    // A device has one of n equal blocks and receives the others. For a sum it receives them twice: scattered and gathered.
    CHECK(exchanged(n) / exchanged(2) == doctest::Approx(2.0 * (n - 1) / n));
    for (const gs::node& step : plan.steps) {
      const auto received = plan.bytes_received(step, on_devices(n)), by_two = plan.bytes_received(step, on_devices(2));
      if (by_two < gs::small_sum_bytes) CHECK(received < gs::small_sum_bytes);
      else CHECK(double(received) / double(by_two) == doctest::Approx(2.0 * (n - 1) / n));
    }
  }
}

TEST_CASE("growth: devices receive what the plan says") {
  const gs::plan_view plan = the_plan<2>();
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    const auto on = gs::simulate<mesh>(n);
    gs::executor step(plan, gs::all_kernels, on, sizes(n, 4, n), gs::parameter_store(on));
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t d = 0; d < on.devices().size(); ++d)
        for (std::int64_t k = 0; k < step.input(i).elements(d); ++k)
          step.input(i).as<std::int32_t>(d)[k] = std::int32_t(1 + (k * 7 + std::int64_t(d)) % 63);
    for (std::size_t d = 0; d < on.devices().size(); ++d) *step.input(3).as<float>(d) = 1e-3f;
    step.run({});
    const gs::extents e = plan.bind(sizes(n, 4, n), std::array{n});
    constexpr gs::op_ref kinds[]{op::all_to_all, op::all_reduce, op::all_gather, op::reduce_scatter, op::collective_permute};
    for (const gs::op_ref kind : kinds)
      CHECK(step.received(kind).bytes == plan.bytes_received(kind, e));
    for (const gs::traffic& device : on.backend().received()) CHECK(device.exchange_bytes + device.gather_bytes == plan.bytes_received(e));
  }
}
