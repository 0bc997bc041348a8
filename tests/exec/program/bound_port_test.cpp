// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inputs and outputs of programs in memory of the caller, and runs concurrent with the caller's own work.
#include "../../complaint.hpp"
#include "../tensor/span_of_matrix.hpp"

#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/exec/tensor/xtensor.hpp>
#include <gshard/gshard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

namespace {

namespace gs = gshard;
using gs::none;
using gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

constexpr auto scaled = [](auto&, auto a, auto b) { return a * 2.0 + b; };
using scale = gs::program<scaled, mesh, gs::in<"AB", P<"x", none>>, gs::in<"AB", P<"x", none>>>;

constexpr auto added = [](auto&, auto a, auto b) { return a + b; };
using add = gs::program<added, mesh, gs::in<"AB", P<"x", none>>, gs::in<"AB", P<"x", none>>>;
static_assert(add::plan.steps.size() == 1);

/// Outputs that are an input, share storage with one, or are used again.
constexpr auto several = [](auto& m, auto x) {
  auto w = m.param("w", "A", P<"x">{}, gs::init::constant(3));
  auto y = gs::relu(x);
  auto z = y + y;
  return std::tuple{x, y, gs::einsum<"AB->A">(z), w, y};
};
using many = gs::program<several, mesh, gs::in<"AB", P<"x", none>>>;

}  // namespace

TEST_CASE("bound memory: a run reads and writes it directly, and copies nothing") {
  gs::executable<add> run(gs::on_one_device<mesh>(), {{'A', 3}, {'B', 4}});
  std::vector<float> a(12), b(13, 1.0f), y(12);
  std::iota(a.begin(), a.end(), 0.0f);
  run.bind_input<0>(a);
  run.bind_input<1>(std::span(b).subspan(1));  // not aligned to a cache line
  run.bind_output<0>(y);
  run.run_bound();
  CHECK(y[5] == 6);
  a[5] = 100;
  run.run_bound();
  CHECK(y[5] == 101);
  CHECK(run.executor().input(0).data[0] == reinterpret_cast<std::byte*>(a.data()));
  CHECK(run.executor().output(0).data[0] == reinterpret_cast<std::byte*>(y.data()));
  CHECK(run.executor().arena_bytes() == 0);
  const auto result = run(gs::bound, gs::bound);
  CHECK(result.local_shard(0).data == y.data());
}

TEST_CASE("bound memory: four kinds of views are the same addresses") {
  gs::executable<scale> run(gs::on_one_device<mesh>(), {{'A', 3}, {'B', 4}});
  std::vector<float> a(12, 2.0f), b(12, 1.0f), y(12);
  const auto* const address = reinterpret_cast<std::byte*>(a.data());
  run.bind_input<1>(b);
  run.bind_output<0>(y);
  const auto check = [&](auto&& view) {
    run.bind_input<0>(view);
    std::ranges::fill(y, 0.0f);
    run.run_bound();
    CHECK(run.executor().input(0).data[0] == address);
    CHECK(std::ranges::count(y, 5.0f) == 12);
  };
  check(std::span(a));
  check(Eigen::Map<Eigen::Matrix<float, 3, 4, Eigen::RowMajor>>(a.data()));
  check(xt::adapt(a.data(), 12, xt::no_ownership(), std::vector<std::size_t>{3, 4}));
  check(span_of_matrix<float>{a.data(), 3, 4});
  check(span_of_matrix<const float>{a.data(), 3, 4});
}

TEST_CASE("bound memory: other memory orders are copied in every run") {
  gs::executable<scale> run(gs::on_one_device<mesh>(), {{'A', 3}, {'B', 4}});
  Eigen::MatrixXf a = Eigen::MatrixXf::Random(3, 4), y(3, 4), large(6, 8);  // column-major
  const std::vector<float> b(12, 1.0f);
  run.bind_input<0>(a);
  run.bind_input<1>(b);
  run.bind_output<0>(y);
  run.run_bound();
  CHECK(y(2, 1) == a(2, 1) * 2 + 1);
  a(2, 1) = 7;
  run.run_bound();
  CHECK(y(2, 1) == 15);
  auto part = large.block(1, 2, 3, 4);
  run.bind_output<0>(part);
  CHECK(run(gs::bound, gs::bound).local_shard(0).data[2 * 4 + 1] == 15);
  CHECK(large(3, 3) == 15);
}

namespace {
constexpr auto product = [](auto&, auto a, auto b) { return gs::einsum<"MK,KN->NM">(a, b); };
using matmul = gs::program<product, mesh, gs::in<"MK", P<"x", none>, float, gs::column_major>,
                           gs::in<"KN", P<none, none>, float, gs::column_major>>;
static_assert(matmul::plan.steps.size() == 1);  // no transposition
constexpr auto elementwise = [](auto&, auto a) { return gs::relu(a); };
using relu = gs::program<elementwise, mesh, gs::in<"MK", P<"x", none>, float, gs::column_major>>;
static_assert(relu::plan.steps.size() == 2);
}  // namespace

TEST_CASE("bound memory: column-major inputs of einsums are not copied") {
  const Eigen::MatrixXf a = Eigen::MatrixXf::Random(3, 5), b = Eigen::MatrixXf::Random(5, 4);
  Eigen::MatrixXf y(3, 4);  // column-major [3, 4] is row-major [4, 3]
  gs::executable<matmul> run(gs::on_one_device<mesh>(), {{'M', 3}, {'K', 5}, {'N', 4}});
  run.bind_input<0>(a);
  run.bind_input<1>(b);
  Eigen::Map<Eigen::Matrix<float, 4, 3, Eigen::RowMajor>> transposed(y.data());
  run.bind_output<0>(transposed);
  run.run_bound();
  CHECK(run.executor().input(0).data[0] == reinterpret_cast<const std::byte*>(a.data()));
  CHECK(run.executor().output(0).data[0] == reinterpret_cast<const std::byte*>(y.data()));
  CHECK((y - a * b).norm() < 1e-5f);

  for (const int devices : {1, 2, 3, 4}) {  // complete matrices in either memory order, and ranges in the input's order
    const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> of_rows = a;
    gs::executable<matmul> simulated(gs::simulate<mesh>(devices), {{'M', 3}, {'K', 5}, {'N', 4}});
    const std::vector<float> expected(y.data(), y.data() + 12);
    const auto close = [&](const std::vector<float>& z) {
      return std::ranges::equal(z, expected, [](float p, float q) { return std::abs(p - q) < 1e-5f; });
    };
    CHECK(close(gs::to_global(simulated(a, b))));
    CHECK(close(gs::to_global(simulated(of_rows, b))));
    CHECK(close(gs::to_global(simulated(std::span(a.data(), 15), std::span(b.data(), 20)))));
    gs::executable<relu> positive(gs::simulate<mesh>(devices), {{'M', 3}, {'K', 5}});
    CHECK(gs::to_global(positive(a))[1 * 5 + 3] == std::max(0.0f, a(1, 3)));
  }
}

TEST_CASE("bound memory: tensors of several devices; outputs that are inputs, parameters or outputs, too") {
  for (const int devices : {1, 2, 3}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<many> run(on, {{'A', 5}, {'B', 2}}), plain(on, {{'A', 5}, {'B', 2}});
    gs::tensor<float, P<"x", none>> x(on, {5, 2}), same(on, {5, 2}), y(on, {5, 2}), again(on, {5, 2});
    gs::tensor<float, P<"x">> sums(on, {5}), w(on, {5});
    gs::for_each_local_shard(x, [](const auto& s) {
      for (std::int64_t i = 0; i < s.size(); ++i) s.data[i] = float(s.offset(0) * 2 + i) - 4;
    });
    run.bind_input<0>(x);
    run.bind_output<0>(same);
    run.bind_output<1>(y);
    run.bind_output<2>(sums);
    run.bind_output<3>(w);
    run.bind_output<4>(again);
    for (int step = 0; step < 2; ++step) {
      for (gs::tensor<float, P<"x", none>>* t : {&same, &y, &again})
        gs::for_each_local_shard(*t, [](const auto& s) { std::ranges::fill(s.span(), -1.0f); });
      run.run_bound();
      const auto expected = plain(x);
      CHECK(gs::to_global(same) == gs::to_global(std::get<0>(expected)));
      CHECK(gs::to_global(y) == gs::to_global(std::get<1>(expected)));
      CHECK(gs::to_global(sums) == gs::to_global(std::get<2>(expected)));
      CHECK(gs::to_global(w) == gs::to_global(std::get<3>(expected)));
      CHECK(gs::to_global(again) == gs::to_global(std::get<4>(expected)));
    }
  }
}

TEST_CASE("bound memory: what is refused") {
  gs::executable<scale> run(gs::on_one_device<mesh>(), {{'A', 3}, {'B', 4}});
  std::vector<float> a(12), b(12), y(12), small(11);
  CHECK(complaint([&] { run.run_bound(); }) == "program: input 0 is bound to no memory; bind_input<0> binds it");
  CHECK(complaint([&] { run.bind_input<0>(small); }) == "program: the memory of input 0 has 11 elements, its shard has 12");
  run.bind_input<0>(a);
  run.bind_input<1>(b);
  CHECK(complaint([&] { run(a, gs::bound); }) == "program: input 0 is bound to memory; pass gshard::bound");
  run.bind_output<0>(a);
  CHECK(complaint([&] { run.run_bound(); }) == "program: the memory of output 0 overlaps that of an input or output");
  run.bind_output<0>(y);
  run.run_bound();
#ifndef NDEBUG
  a.resize(100000);
  CHECK(complaint([&] { run.run_bound(); }) == "program: the std::vector that input 0 is bound to has moved its elements");
#endif
  gs::executable<scale> on_two(gs::simulate<mesh>(2), {{'A', 3}, {'B', 4}});
  CHECK(complaint([&] { on_two.bind_input<0>(b); }) ==
        "program: the memory of input 0 is one array, and this process has 2 devices; bind a tensor");
  std::vector<float> all(12);
  const gs::tensor<float, P<"x", none>> lower(on_two.executor().cluster(), {3, 4}, std::vector<float*>{&all[0], &all[8]});
  gs::tensor<float, P<"x", none>> other(on_two.executor().cluster(), {3, 4});
  gs::tensor<float, P<"x", none>> upper(on_two.executor().cluster(), {3, 4}, std::vector<float*>{&a[0], &all[4]});
  on_two.bind_input<0>(lower);
  on_two.bind_input<1>(lower);  // inputs may overlap
  on_two.bind_output<0>(upper);
  CHECK(complaint([&] { on_two.run_bound(); }) == "program: the memory of output 0 overlaps that of an input or output");
  on_two.bind_output<0>(other);
  on_two.run_bound();
  gs::tensor<float, P<"x", none>> foreign(gs::simulate<mesh>(2), {3, 4});
  CHECK(complaint([&] { on_two.bind_input<0>(foreign); }) == "program: the memory of input 0 belongs to another cluster");
}

TEST_CASE("bound memory: arrays of C, and calls with tensors, too") {
  gs::executable<add> run(gs::on_one_device<mesh>(), {{'A', 1}, {'B', 4}});
  float a[4] = {1, 2, 3, 4}, y[4] = {};
  gs::tensor<float, P<"x", none>> b(run.executor().cluster(), {1, 4}, std::vector<float*>{a});
  run.bind_output<0>(y);
  CHECK(run(b, b).local_shard(0).data[3] == 8);
  CHECK(y[3] == 8);
  run.bind_input<0>(a);
  CHECK(contains(complaint([&] { run(b, b); }), "is bound to memory; pass gshard::bound"));
}

TEST_CASE("started runs: in their order, before later calls; errors are thrown by wait()") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<scale> twice(on, {{'A', 3}, {'B', 4}}), next(on, {{'A', 3}, {'B', 4}});
  gs::tensor<float, P<"x", none>> a(on, {3, 4}), b(on, {3, 4}), y(on, {3, 4}), z(on, {3, 4});
  const auto fill = [](auto& t, float x) {
    gs::for_each_local_shard(t, [x](const auto& s) { std::ranges::fill(s.span(), x); });
  };
  fill(a, 1);
  fill(b, 3);
  twice.bind_input<0>(a);
  twice.bind_input<1>(b);
  twice.bind_output<0>(y);
  next.bind_input<0>(y);
  next.bind_input<1>(b);
  next.bind_output<0>(z);
  for (int i = 0; i < 100; ++i) {
    twice.start_bound();
    next.start_bound();
    if (i % 2 == 0) {
      next.wait();
      twice.wait();
    } else {
      CHECK(gs::to_global(z)[5] == 13);  // a later call on the cluster
      twice.wait();
      next.wait();
    }
    CHECK(z.local_shard(0).data[0] == 13);
    fill(z, 0);
  }
  CHECK(complaint([&] { twice.wait(); }) == "program: wait() without start_bound()");
  twice.start_bound();
  CHECK(complaint([&] { twice.run_bound(); }) == "program: a run of it was started; call wait() first");
  twice.wait();
  gs::executable<scale> unbound(on, {{'A', 3}, {'B', 4}});
  unbound.start_bound();
  CHECK(complaint([&] { unbound.wait(); }) == "program: input 0 is bound to no memory; bind_input<0> binds it");
  twice.start_bound();
  gs::executable<scale> moved = std::move(twice);
  moved.wait();
  moved.start_bound();  // the destructor waits
}

TEST_CASE("started runs: the caller goes on while they run") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<scale> run(on, {{'A', 3}, {'B', 4}});
  gs::tensor<float, P<"x", none>> a(on, {3, 4}), y(on, {3, 4});
  run.bind_input<0>(a);
  run.bind_input<1>(a);
  run.bind_output<0>(y);
  run.run_bound();
  std::atomic<bool> caller_went_on = false, ran_alone = false;
  run.executor().hook = [&](const gs::node&, bool) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!caller_went_on && !ran_alone) {
      if (std::chrono::steady_clock::now() > until) ran_alone = true;  // start_bound() waits for the run
      std::this_thread::yield();
    }
  };
  run.start_bound();
  caller_went_on = true;
  run.wait();
  CHECK_FALSE(ran_alone);
}
