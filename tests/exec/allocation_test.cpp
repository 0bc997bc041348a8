// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/executor.hpp>

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/eigen.hpp>

#include "../allocations.hpp"
#include "training_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
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
      small_step::write_inputs(step.executor());
      const std::int64_t made = small_step::allocations_of_run(step.executor(), {step.seed, i});
      CAPTURE(on.size());
      CAPTURE(i);
      if (i > 0) CHECK(made == 0);
    }
  }
}

namespace {

/// Operations that a Transformer does not have.
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
        std::fill_n(step.executor().input(0).as<float>(d), step.executor().input(0).elements(d), 1.0f);
        *step.executor().input(1).as<std::int32_t>(d) = 4;
      }
      const std::int64_t made = small_step::allocations_of_run(step.executor(), {step.seed, 0});
      CAPTURE(devices);
      if (i > 0) CHECK(made == 0);
    }
  }
}

namespace {

/// Weights are sharded: they are gathered in advance, and their gradients are reduce-scattered while others are computed.
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

TEST_CASE("communication that overlaps with other steps allocates nothing after its first run") {
  const auto on = gs::simulate<line>(4);
  gs::executable<early> step(on, {{'B', 36}, {'M', 45}});
  const auto schedule = gs::async_schedule(early::plan, step.executor().sizes());
  CHECK(std::any_of(schedule.begin(), schedule.end(), [](const gs::async_interval& f) { return f.finish > f.start + 1; }));
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const std::size_t input : {0u, 1u}) {  // the memory may contain NaN
      const gs::detail::bound_value& x = step.executor().input(input);
      for (std::size_t d = 0; d < x.data.size(); ++d) std::fill_n(x.as<float>(d), x.elements(d), 0.01f);
    }
    const std::int64_t made = small_step::allocations_of_run(step.executor(), {.seed = 1, .step = i});
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
  run.run_bound();
  CHECK(run.executor().arena_bytes() == 0);
  CHECK(allocations::during([&] { run.run_bound(); }) == 0);
  run.bind_input<1>(b);  // column-major: copied in every run
  run.run_bound();
  CHECK(allocations::during([&] { run.run_bound(); }) == 0);
  CHECK(y[7] == 3);
}

namespace {

inline constexpr auto attend = [](auto&, auto q, auto k, auto v) {
  const auto y = gs::attention(q, k, v, {.causal = true});
  const auto g = gs::gradients(gs::sum(y * y), std::array<gs::symbol, 3>{q, k, v});
  return std::tuple{y, g[0], g[1], g[2]};
};
using head = gs::in<"THD", gs::P<"x", gs::none, gs::none>>;
using attention_step = gs::program<attend, line, head, head, head>;

}  // namespace

TEST_CASE("attention of 8,192 positions and its gradient hold 4 times as much as those of 2,048") {
  constexpr std::size_t depth = 8;
  std::vector<std::int64_t> bytes;
  for (const std::size_t length : {128u, 2048u, 8192u}) {  // the first run allocates the memory of a block of scores
    std::vector<std::vector<float>> in(3, std::vector<float>(length * depth));
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t j = 0; j < in[i].size(); ++j) in[i][j] = std::sin(float(i) + 1.7f * float(j % 9973));
    bytes.push_back(allocations::bytes_during([&] {
      gs::executable<attention_step> step(gs::on_one_device<line>(), {{'T', std::int64_t(length)}, {'H', 1}, {'D', std::int64_t(depth)}});
      const auto [y, dq, dk, dv] = step(in[0], in[1], in[2]);
      const std::vector<float> results = gs::to_global(y), slopes = gs::to_global(dv);
      // The last query, by a loop over all keys. Only this query sees the last key.
      const std::size_t last = (length - 1) * depth;
      double total = 0, weight = 0, attended[depth] = {};
      for (std::size_t j = 0; j < length; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < depth; ++d) score += double(in[0][last + d]) * double(in[1][j * depth + d]);
        weight = std::exp(score / std::sqrt(double(depth)));
        total += weight;
        for (std::size_t d = 0; d < depth; ++d) attended[d] += weight * double(in[2][j * depth + d]);
      }
      for (std::size_t d = 0; d < depth; ++d) {
        CHECK(double(results[last + d]) == doctest::Approx(attended[d] / total).epsilon(1e-4));
        CHECK(double(slopes[last + d]) == doctest::Approx(2 * weight / total * attended[d] / total).epsilon(1e-4));
      }
    }));
  }
  CHECK(bytes[2] > 4 * std::int64_t(6 * 8192 * depth));
  CHECK(double(bytes[2]) < 4.1 * double(bytes[1]));
}
