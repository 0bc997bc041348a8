// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step on a simulated mesh with real numbers, compared with one device, and with the dry run of its plan.
#include <gshard/sim/run/dry_run.hpp>

#include "../planner.hpp"
#include "../run_graph.hpp"

#include <gshard/all_kernels.hpp>
#include <gshard/all_operations.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  const auto layer = gs::nn::moe<"expert">(m.scope("moe"), x, mask, {.routing = {.k = 2, .slots = gs::capacity{2}}});
  const auto loss = gs::mean(layer.y * layer.y);
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return std::tuple{loss, layer.y, layer.load, layer.overflow};
};
using mesh = gs::mesh<gs::axis<"expert">>;
// Sums are not combined, so that all devices receive equally many bytes of each.
gs::plan_view the_plan() {
  return planned::plan_of<gs::program<step, mesh, gs::in<"GSM", P<"expert", none, none>, double>, gs::in<"GS", P<"expert", none>, double>,
                                gs::in<"", void, double>, gs::element<double>, gs::combine_up_to<0>>>();
}
const gs::dims sizes{{'G', 64}, {'S', 32}, {'M', 16}, {'E', 64}, {'F', 32}};

struct outcome {
  std::vector<run_graph::arrays> outputs;                // by step
  std::map<std::string, run_graph::array> parameters;  // parameters and optimizer state after the last step
  std::vector<std::int64_t> received_by_each;          // bytes by device, in the last step
  std::array<std::int64_t, gs::most_operations> received{};
};
outcome train(int devices, int steps) {
  const auto on = gs::simulate<mesh>(devices);
  gs::executor run(the_plan(), gs::all_kernels, on, sizes, gs::parameter_store(on));
  outcome o;
  for (int k = 0; k < steps; ++k) {
    for (std::size_t d = 0; d < on.devices().size(); ++d) {
      const gs::detail::bound_value &x = run.input(0), &mask = run.input(1);
      const auto fill = [&](const gs::detail::bound_value& t, auto number) {
        gs::kernel::for_each_element(t.places[d], [&](std::size_t global, std::size_t local) { t.as<double>(d)[local] = number(global); });
      };
      fill(x, [](std::size_t i) { return std::sin(double(i * 37 % 1009)); });
      fill(mask, [](std::size_t i) { return i % 7 ? 1.0 : 0.0; });
      *run.input(2).as<double>(d) = 1e-2;
    }
    run.run({});
    o.outputs.emplace_back();
    for (std::size_t i = 0; i < the_plan().outputs.size(); ++i) o.outputs.back().push_back(run_graph::collect(on, run.output(i)));
  }
  for (const auto& [name, e] : run.store().entries()) o.parameters[name] = run_graph::collect(on, e.value);
  o.received_by_each.assign(run.received_in_run().begin(), run.received_in_run().end());
  for (const gs::op_ref kind : gs::all_operations) o.received[std::size_t(kind->id)] = run.received(kind).bytes;
  return o;
}
void check_close(const run_graph::array& found, const run_graph::array& expected) {
  REQUIRE(found.size() == expected.size());
  double apart = 0, most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    apart = std::max(apart, std::abs(found[i] - expected[i]));
    most = std::max(most, std::abs(expected[i]));
  }
  CHECK(most > 0);
  CHECK(apart <= 1e-9 * most);
}

}  // namespace

TEST_CASE("functional: the MoE layer learns on 64 simulated devices as on one, and receives what dry run and plan say") {
  const outcome alone = train(1, 3), many = train(64, 3);
  REQUIRE(alone.outputs[0].size() == 4);
  for (std::size_t k = 0; k < alone.outputs.size(); ++k)
    for (std::size_t i = 0; i < alone.outputs[k].size(); ++i) check_close(many.outputs[k][i], alone.outputs[k][i]);
  CHECK(alone.outputs[2][0][0] < alone.outputs[0][0][0]);
  REQUIRE(many.parameters.size() == alone.parameters.size());
  CHECK(alone.parameters.size() == 9);  // three weights with two moments each
  for (const auto& [name, expected] : alone.parameters) {
    CAPTURE(name);
    check_close(many.parameters.at(name), expected);
  }

  const gs::plan_view plan = the_plan();
  const gs::extents e = plan.bind(sizes, std::array{64});
  const gs::run_record dry = gs::dry_run(plan, e, gs::parse_hardware("tpu-v3:8x4"));
  std::array<std::int64_t, gs::most_operations> bytes{};
  for (const gs::step_record& s : dry.steps) bytes[std::size_t(plan.steps[std::size_t(s.step)].kind->id)] += s.bytes_received;
  for (const gs::op_ref kind : gs::all_operations) {
    CAPTURE(kind->name);
    CHECK(many.received[std::size_t(kind->id)] == 3 * bytes[std::size_t(kind->id)]);
    CHECK(bytes[std::size_t(kind->id)] == plan.bytes_received(kind, e));
  }
  CHECK(bytes[std::size_t(op::all_to_all.id)] > 0);
  REQUIRE(many.received_by_each.size() == 64);
  for (const std::int64_t received : many.received_by_each) CHECK(received == plan.bytes_received(e));
}
