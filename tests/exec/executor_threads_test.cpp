// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled both with and without OpenMP.
#include <gshard/exec/program/executor.hpp>

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr auto train = [](auto& m, auto x, auto labels, auto rate) {
  auto w = m.param("w", "MV", gs::init::normal(1)), gamma = m.param("gamma", "M", gs::init::constant(1)),
       beta = m.param("beta", "M", gs::init::constant(0));
  auto y = gs::dropout(gs::layer_norm(gs::relu(x), gamma, beta), 0.1);
  auto logits = gs::map<[](auto a) { return a * a - a; }>(gs::einsum<"bm,mv->bv">(y, w));
  auto loss = gs::mean(gs::cross_entropy(logits, labels, 0.1));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<train, mesh, in<"BM", P<"x", none>>, in<"B", P<"x">, std::int32_t>, in<"">>;

constexpr std::size_t B = 1200, M = 48, V = 20;

std::vector<float> losses(int devices, int threads) {
  gs::executable<training> step(gs::simulate<mesh>(devices), {{'B', B}, {'M', M}, {'V', V}});
  step.threads(threads);
  std::vector<float> x(B * M), found;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i)));
  std::vector<std::int32_t> labels(B);
  for (std::size_t i = 0; i < B; ++i) labels[i] = std::int32_t(i % V);
  for (int i = 0; i < 3; ++i) found.push_back(step(x, labels, std::vector<float>{0.1f}).item());
  return found;
}

}  // namespace

TEST_CASE("executor: the number of threads is its own, and lasts no longer than a run") {
  CHECK(gs::kernel::threads() == 1);
#if defined(_OPENMP)
  const int before = omp_get_max_threads();
#endif
  gs::executable<training> step(gs::on_one_device<mesh>(), {{'B', 4}, {'M', 2}, {'V', 3}});
  CHECK(step.executor().threads == gs::kernel::default_threads(1));
  int seen = 0;
  step.executor().hook = [&](const gs::node&, bool) { seen = gs::kernel::threads(); };
  step.threads(3);
  const std::vector<float> x(8), rate{0.1f};
  step(x, std::vector<std::int32_t>{0, 1, 2, 0}, rate);
  CHECK(seen == 3);
  CHECK(gs::kernel::threads() == 1);
  CHECK_THROWS_AS(step(x, std::vector<std::int32_t>{0, 1, 7, 0}, rate), gs::error);
  CHECK(gs::kernel::threads() == 1);
#if defined(_OPENMP)
  CHECK(omp_get_max_threads() == before);
#endif
}

TEST_CASE("executor: a training step has the same bits on any number of threads") {
  for (const int devices : {1, 3}) {
    const std::vector<float> one = losses(devices, 1);
    CHECK(one.back() < one.front());
    for (const int threads : {2, 3}) CHECK(losses(devices, threads) == one);
  }
}
