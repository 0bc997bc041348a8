// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/gradient_wire.hpp>

#include "../exec/planned_program.hpp"

#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/io.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::gradient_wire, gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

namespace {

template <gradient_wire How>
inline constexpr auto descend = [](auto& m, auto x, auto y, auto rate) {
  auto w = m.param("w", "MN", gs::init::normal(0.5));
  auto d = gs::einsum<"BM,MN->BN">(x, w) - y;
  auto loss = gs::mean(d * d);
  gs::adam{.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .wire = How}.minimize(m, loss, rate);
  return loss;
};
template <gradient_wire How>
using step = gs::program<descend<How>, mesh, in<"BM", P<"data", none>>, in<"BN", P<"data", none>>, in<"">>;

const gs::dims step_sizes{{'B', 24}, {'M', 7}, {'N', 5}};

std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(gen);
  return v;
}

/// The loss after training on one batch.
template <gradient_wire How>
float trained_loss(int devices, int steps) {
  planned::executable<step<How>> run(gs::simulate<mesh>(devices), step_sizes);
  const std::vector<float> x = numbers(24 * 7, 1), y = numbers(24 * 5, 2), rate{0.01f};
  float loss = 0;
  for (int i = 0; i < steps; ++i) loss = float(run(x, y, rate).item());
  return loss;
}

std::int64_t bytes_of_sums(const gs::plan_view& p) {
  return p.bytes_received(op::all_reduce, p.bind({{'B', 24}, {'M', 700}, {'N', 50}}, std::vector<int>{4}));
}

}  // namespace

TEST_CASE("gradient_wire: the plan sums gradients in half of the bytes, and residuals are state with a block per device") {
  const gs::plan_view full = planned::plan_of<step<gradient_wire::full>>(), half = planned::plan_of<step<gradient_wire::bf16>>(),
                      fed = planned::plan_of<step<gradient_wire::bf16_with_feedback>>();
  const std::int64_t loss = 4 * 3;  // one float from each other device
  CHECK(bytes_of_sums(full) - loss == 2 * (bytes_of_sums(half) - loss));
  CHECK(bytes_of_sums(half) == bytes_of_sums(fed));
  CHECK(half.count(op::feedback) == 0);
  CHECK(fed.count(op::feedback) == 1);
  CHECK(half.parameters.size() == full.parameters.size());
  REQUIRE(fed.parameters.size() == full.parameters.size() + 1);
  bool found = false;
  for (const gs::parameter& p : fed.parameters) {
    if (p.name.view() != "residual.w") continue;
    found = true;
    CHECK(!p.trainable);
    CHECK(fed.at(p.value).rank() == 3);
    CHECK(fed.at(p.value).layout.partial == 0);
    CHECK(fed.bind(step_sizes, std::vector<int>{4}).dim(fed.at(p.value).dims[0]) == 4);
  }
  CHECK(found);
  CHECK(same_plan::at_run_time<step<gradient_wire::bf16_with_feedback>>({{4}, step_sizes}) == "");
}

TEST_CASE("gradient_wire: training reaches the loss of float within 2 %, on any number of devices") {
  for (const int devices : {1, 2, 3, 4}) {
    CAPTURE(devices);
    const float full = trained_loss<gradient_wire::full>(devices, 150);
    CHECK(trained_loss<gradient_wire::bf16>(devices, 150) == doctest::Approx(full).epsilon(0.02));
    CHECK(trained_loss<gradient_wire::bf16_with_feedback>(devices, 150) == doctest::Approx(full).epsilon(0.02));
  }
}

namespace {

/// Adds to w the gradient that devices sent, the sum of the rows of x. Adam would hide the sizes of gradients.
template <bool Feeds>
inline constexpr auto accumulate = [](auto& m, auto x) {
  auto w = m.param("w", "M", gs::init::zeros());
  auto g = gs::einsum<"BM->M">(x);
  const gs::list<gs::symbol> sent = gs::detail::gradients_on_wire(m, gs::list<gs::symbol>{w}, gs::list<gs::symbol>{g},
                                                                  Feeds ? gradient_wire::bf16_with_feedback : gradient_wire::bf16);
  m.update(w, w + sent[0]);
  return gs::annotate<P<none>>(sent[0]);
};
template <bool Feeds>
using accumulation = gs::program<accumulate<Feeds>, mesh, in<"BM", P<"data", none>>>;

/// The sum in `w` after some steps in which every device adds rows of x.
template <bool Feeds>
std::vector<float> accumulated(int devices, int steps, const std::vector<float>& x) {
  const auto on = gs::simulate<mesh>(devices);
  gs::parameter_store store(on);
  planned::executable<accumulation<Feeds>> run(on, gs::dims{{'B', devices}, {'M', std::int64_t(x.size()) / devices}}, store);
  for (int i = 0; i < steps; ++i) run(x);
  const gs::detail::bound_value& w = store.find("w")->value;
  return {w.as<float>(0), w.as<float>(0) + w.elements(0)};
}

}  // namespace

TEST_CASE("gradient_wire: small parts of gradients, which bf16 loses in every step, arrive with feedback") {
  // 1 + 1/1024 rounds to 1: without feedback, 256 steps lose 2 * 256 / 1024 = 0.5.
  const std::vector<float> x(2, 1 + 1.0f / 1024);
  const double exact = 256 * 2 * (1 + 1.0 / 1024);
  CHECK(accumulated<false>(2, 256, x)[0] == 512);
  CHECK(std::abs(accumulated<true>(2, 256, x)[0] - exact) <= 2.0 / 128);
}

TEST_CASE("gradient_wire: what devices sent and their residuals add up to their gradients, exactly") {
  // Multiples of 1/4096 up to 4: g + r is exact.
  std::mt19937 gen(7);
  constexpr int devices = 3, columns = 40, steps = 20;
  const auto on = gs::simulate<mesh>(devices);
  gs::parameter_store store(on);
  planned::executable<accumulation<true>> run(on, gs::dims{{'B', devices}, {'M', columns}}, store);
  std::vector<double> gradients(devices * columns), sent(devices * columns);
  std::vector<float> before(devices * columns);
  for (int i = 0; i < steps; ++i) {
    std::vector<float> x(std::size_t(devices * columns), 0);
    for (float& v : x) v = float(int(gen() % 32768) - 16384) / 4096;
    run(x);
    const gs::detail::bound_value& r = store.find("residual.w")->value;
    for (std::size_t d = 0; d < devices; ++d)
      for (std::size_t k = 0; k < columns; ++k) {
        const std::size_t at = d * columns + k;
        const float after = r.as<float>(d)[k], s = x[at] + before[at] - after;
        CHECK(gs::detail::to_float(gs::detail::to_bf16(s)) == s);
        CHECK(std::abs(after) <= std::abs(x[at] + before[at]) / 256);
        gradients[at] += double(x[at]);
        sent[at] += double(s);
        before[at] = after;
      }
  }
  for (std::size_t at = 0; at < before.size(); ++at) CHECK(sent[at] + double(before[at]) == gradients[at]);
}

TEST_CASE("gradient_wire: a gradient that is no sum between devices is not rounded, and its residual is empty") {
  const auto on = gs::simulate<mesh>(2);
  gs::parameter_store store(on);
  planned::executable<gs::program<accumulate<true>, mesh, in<"BM", P<none, none>>>> run(on, gs::dims{{'B', 1}, {'M', 2}}, store);
  run(std::vector<float>{1 + 1.0f / 1024, 2});
  run(std::vector<float>{1 + 1.0f / 1024, 2});
  CHECK(store.find("w")->value.as<float>(0)[0] == 2 + 1.0f / 512);
  CHECK(store.find("residual.w")->value.extents[0] == 0);
}

TEST_CASE("gradient_wire: residuals return from a checkpoint") {
  const std::string path = (std::filesystem::temp_directory_path() / ("gradient_wire_" + std::to_string(std::random_device{}()))).string();
  const auto on = gs::simulate<mesh>(2);
  const std::vector<float> x{1 + 1.0f / 1024, 2, 3 + 1.0f / 512, 4};
  const gs::dims sizes{{'B', 2}, {'M', 2}};
  gs::parameter_store whole(on), resumed(on);
  planned::executable<accumulation<true>> run(on, sizes, whole), again(on, sizes, resumed);
  for (int i = 0; i < 3; ++i) run(x);
  gs::save(whole, path, gs::checkpoint_options{.scope = gs::checkpoint_scope::everything});
  gs::load(resumed, path, gs::checkpoint_options{.scope = gs::checkpoint_scope::everything});
  std::filesystem::remove(path);
  for (int i = 0; i < 200; ++i) {
    run(x);
    again(x);
  }
  for (const char* const name : {"w", "residual.w"})
    for (std::size_t d = 0; d < 2; ++d)
      for (std::size_t k = 0; k < 2; ++k)
        if (std::int64_t(k) < whole.find(name)->value.elements(d))
          CHECK(whole.find(name)->value.as<float>(d)[k] == resumed.find(name)->value.as<float>(d)[k]);
  CHECK(whole.find("residual.w")->value.as<float>(0)[0] != 0);
}

TEST_CASE("gradient_wire: an addend that is not finite arrives, and leaves the residual as it was") {
  const auto on = gs::simulate<mesh>(2);
  gs::parameter_store store(on);
  planned::executable<accumulation<true>> run(on, gs::dims{{'B', 2}, {'M', 2}}, store);
  run(std::vector<float>{1 + 1.0f / 1024, 2, 3, 4});
  const gs::detail::bound_value& r = store.find("residual.w")->value;
  CHECK(r.as<float>(0)[0] == 1.0f / 1024);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> sum = run(std::vector<float>{nan, infinity, 3, 4}).floats();
  CHECK(std::isnan(sum[0]));
  CHECK(sum[1] == infinity);
  CHECK(r.as<float>(0)[0] == 1.0f / 1024);
  CHECK(r.as<float>(0)[1] == 0);
}

TEST_CASE("gradient_wire: a price of the plan has the halved sums") {
  const gs::dims sizes{{'B', 64}, {'M', 4096}, {'N', 4096}};
  gs::machine slow;
  slow.link_bytes = 1e8;
  const std::vector<int> axes{4};
  const auto seconds = [&](const gs::plan_view& plan) { return gs::price(plan, plan.bind(sizes, axes), slow).communicate; };
  const double full = seconds(planned::plan_of<step<gradient_wire::full>>()), half = seconds(planned::plan_of<step<gradient_wire::bf16>>());
  CHECK(half < 0.6 * full);  // the inputs are unchanged
}
