// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/executor.hpp>

#include <gshard/pass/schedule/async_schedule.hpp>
#include <gshard/tensor/buffer.hpp>
#include <gshard/tensor/eigen.hpp>
#include <gshard/trace/along.hpp>
#include <gshard/trace/loop.hpp>
#include <gshard/trace/window.hpp>

#include "../allocations.hpp"
#include "training_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;

TEST_CASE("allocations are counted") {
  CHECK(allocations::during([] { ::operator delete(::operator new(10)); }) == 1);
  CHECK(allocations::during([] { gs::buffer b(10); }) == 1);
  CHECK(allocations::during([] { std::string s("short"); }) == 0);
}

TEST_CASE("a training step allocates nothing once one has run") {
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    const auto on = gs::simulate<small_step::mesh>(devices);
    gs::executable<small_step::program> step(on, small_step::sizes);
    for (std::uint32_t i = 0; i < 4; ++i) {
      small_step::write_inputs(step.engine());
      const std::int64_t made = small_step::allocations_of_run(step.engine(), {step.seed, i});
      CAPTURE(on.size());
      CAPTURE(i);
      if (i > 0) CHECK(made == 0);
    }
  }
}

namespace {

/// What a Transformer does not have.
inline constexpr auto others = [](auto&, auto x, auto turns) {
  const auto best = gs::top_k(x, 3);
  const auto sorted = gs::sort(x, 0);
  const auto looped = gs::repeat(turns, [](auto y) { return gs::cumsum(y, 0) + gs::reverse(y, 1); }, x);
  return std::tuple{best.values, best.ids, sorted.values, looped, gs::einsum<"AB,CB->AC">(x, x), gs::concat({x, x}, 0)};
};
using line = gs::mesh<gs::axis<"x">>;
using lines = gs::program<others, line, gs::in<"AB", gs::P<"x", gs::none>>, gs::in<"", gs::P<>, std::int32_t>>;

}  // namespace

TEST_CASE("lines and loops allocate nothing once they have run") {
  for (const int devices : {1, 2}) {
    const auto on = gs::simulate<line>(devices);
    gs::executable<lines> step(on, {{'A', 6}, {'B', 5}});
    for (int i = 0; i < 3; ++i) {
      for (std::size_t d = 0; d < on.devices().size(); ++d) {
        std::fill_n(step.engine().input(0).as<float>(d), step.engine().input(0).elements(d), 1.0f);
        *step.engine().input(1).as<std::int32_t>(d) = 4;
      }
      const std::int64_t made = small_step::allocations_of_run(step.engine(), {step.seed, 0});
      CAPTURE(devices);
      if (i > 0) CHECK(made == 0);
    }
  }
}

namespace {

/// Weights are sharded: they are gathered ahead, and their gradients are reduce-scattered while others are computed.
inline constexpr auto layers = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 20; ++i)
    y = y + gs::einsum<"BM,MN->BN">(y, m.scope(i).param("w", "MM", gs::P<"x", gs::none>{}, gs::init::fan_in("M")));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using early = gs::program<layers, line, gs::in<"BM", gs::P<"x", gs::none>>, gs::in<"">>;

}  // namespace

TEST_CASE("communication that other steps run beside allocates nothing once it has run") {
  const auto on = gs::simulate<line>(4);
  gs::executable<early> step(on, {{'B', 36}, {'M', 45}});
  const auto schedule = gs::async_schedule(early::plan, step.engine().sizes());
  CHECK(std::any_of(schedule.begin(), schedule.end(), [](const gs::async_interval& f) { return f.finish > f.start + 1; }));
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const std::size_t input : {0u, 1u}) {  // not what the memory holds, which may be NaN
      const gs::detail::bound_value& x = step.engine().input(input);
      for (std::size_t d = 0; d < x.data.size(); ++d) std::fill_n(x.as<float>(d), x.elements(d), 0.01f);
    }
    const std::int64_t made = small_step::allocations_of_run(step.engine(), {.seed = 1, .step = i});
    if (i > 0) CHECK(made == 0);
  }
}

namespace {
inline constexpr auto added = [](auto&, auto a, auto b) { return a + b; };
using matrix = gs::in<"AB", gs::P<"x", gs::none>>;
using addition = gs::program<added, line, matrix, matrix>;
}  // namespace

TEST_CASE("runs on memory of the caller allocate nothing once they have run, whatever its memory order") {
  gs::executable<addition> run(gs::on_one_device<line>(), {{'A', 3}, {'B', 4}});
  std::vector<float> a(12, 1.0f), y(12);
  const Eigen::MatrixXf b = Eigen::MatrixXf::Constant(3, 4, 2.0f);
  run.bind_input<0>(a);
  run.bind_input<1>(a);
  run.bind_output<0>(y);
  run.execute();
  CHECK(run.engine().arena_bytes() == 0);
  CHECK(allocations::during([&] { run.execute(); }) == 0);
  run.bind_input<1>(b);  // column-major: copied in every run
  run.execute();
  CHECK(allocations::during([&] { run.execute(); }) == 0);
  CHECK(y[7] == 3);
}
