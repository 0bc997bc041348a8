// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/executable.hpp>
#include <gshard/kernel_headers.hpp>

#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr auto affine = [](auto& m, auto x, auto ids, auto rate) {
  auto w = m.param("w", "BC", P<"x", none>{}, gs::init::normal(1));
  return std::tuple{gs::einsum<"ab,bc->ac">(x, w), rate * gs::cast<float>(ids)};
};
using rows = in<"AB", P<none, "x">>;
using program = gs::program<affine, mesh, rows, in<"A", void, std::int32_t>, in<"">>;
using pending = gs::program<affine, mesh, rows, in<"A", void, std::int32_t>, in<"">, gs::partial_outputs>;

inline constexpr auto drop = [](auto&, auto x) { return gs::dropout(x, 0.5); };
using dropping = gs::program<drop, mesh, in<"A", P<"x">>>;

inline constexpr auto count_calls = [](auto& m, auto x) {
  auto total = m.variable("total", "", gs::init::zeros());
  auto next = total + gs::sum(x);
  m.update(total, next);
  return next;
};
using counting = gs::program<count_calls, mesh, in<"A", P<"x">>>;

inline constexpr auto adapt = [](auto& m, auto x, auto rate) {
  auto error = x - m.param("w", "A", gs::init::zeros());
  auto loss = gs::sum(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using adapting = gs::program<adapt, mesh, in<"A", P<"x">>, in<"">>;

using gs::device_order;
inline constexpr auto reordered = [](auto& m, auto x) {
  auto w = m.param("w", "AB", P<"x", none, device_order<3, 1, 0, 2>>{}, gs::init::zeros());
  auto next = gs::annotate<P<none, "x", device_order<0, 2, 1, 3>>>(w + gs::relu(x));
  m.update(w, next);
  return next;
};
using ordered = P<"x", none, device_order<1, 0, 2, 3>>;
using reordering = gs::program<reordered, gs::mesh<gs::axis<"x", 4>>, in<"AB", ordered>>;
using reordering_output = gs::program<reordered, gs::mesh<gs::axis<"x", 4>>, in<"AB", P<"x", none>>>;
inline constexpr auto reordered_inside = [](auto& m, auto x) { return gs::annotate<P<"x", none>>(reordered(m, x)); };
using reordering_inside = gs::program<reordered_inside, gs::mesh<gs::axis<"x", 4>>, in<"AB", P<"x", none>>>;
inline constexpr auto add_often = [](auto& m, auto x, auto turns) {
  auto total = m.variable("total", "", gs::init::zeros());
  auto next = gs::repeat(turns, [=](auto t) { return t + gs::sum(x); }, total);
  m.update(total, next);
  return next;
};
using adding = gs::program<add_often, mesh, in<"A", P<"x">>, in<"", void, std::int32_t>>;

const gs::dims extents{{'A', 3}, {'B', 4}, {'C', 2}};
const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
const std::vector<std::int32_t> ids{1, -2, 3};
const std::vector<float> rate{0.5f};

}  // namespace

TEST_CASE(
    "a program takes whole arrays or tensors in its layout, and returns tensors whose types say how they "
    "lie") {
  std::vector<float> expected;
  for (const int devices : {1, 2, 3, 4}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<program> run(on, extents, gs::parameter_store(on, 3));
    const auto [y, z] = run(x, ids, rate);
    static_assert(std::is_same_v<decltype(y), const tensor<float, P<none, none>>>);
    static_assert(std::is_same_v<decltype(z), const tensor<float, P<none>>>);
    if (expected.empty()) expected = gs::to_global(y);
    const std::vector<float> found = gs::to_global(y);
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    CHECK(gs::to_global(z) == std::vector<float>{0.5f, -1, 1.5f});

    const auto [again, same] = run(gs::from_global<float, P<none, "x">>(on, {3, 4}, x),
                                   std::span<const std::int32_t>(ids), std::array{0.5f});
    CHECK(gs::to_global(again) == found);

    gs::executable<pending> open(on, extents, gs::parameter_store(on, 3));
    const auto sums = std::get<0>(open(x, ids, rate));
    static_assert(std::is_same_v<decltype(sums), const tensor<float, P<none, none, partial<"x">>>>);
    CHECK(gs::to_global(sums) == found);
  }
}

TEST_CASE("arithmetic with numbers") {
  static constexpr auto model = [](auto&, auto v) { return std::tuple{v + 1, 1 + v, v - 1, 1 - v, v / 4, 8 / v, -v, 2 * v * 3}; };
  gs::executable<gs::program<model, mesh, in<"A", P<"x">>>> run(gs::simulate<mesh>(2), {{'A', 1}});
  const auto all = std::apply([](const auto&... y) { return std::vector{gs::to_global(y).front()...}; }, run(std::vector{2.0f}));
  CHECK(all == std::vector{3.0f, 3.0f, 1.0f, -1.0f, 0.5f, 4.0f, -2.0f, 12.0f});
}

TEST_CASE("inputs may be matrices in column-major order") {
  gs::executable<program> run(gs::simulate<mesh>(2), extents);
  const Eigen::MatrixXf columns = Eigen::Map<const Eigen::Matrix<float, 3, 4, Eigen::RowMajor>>(x.data());
  CHECK(columns.data()[1] == 5.0f);
  CHECK(gs::to_global(std::get<0>(run(columns, ids, rate))) == gs::to_global(std::get<0>(run(x, ids, rate))));
  CHECK(gs::to_global(std::get<0>(run(2 * columns - columns, ids, rate))) == gs::to_global(std::get<0>(run(x, ids, rate))));
  CHECK_THROWS_WITH_AS(run(columns.transpose(), ids, rate), "program: input 0 (AB) has an array [4,3], its dims make [3,4]", gs::error);
}

TEST_CASE("inputs of another size or from elsewhere are named") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<program> run(on, extents);
  CHECK_THROWS_WITH_AS(run(std::vector<float>(11), ids, rate),
                       "program: input 0 (AB) has 11 elements, its dims make 12", gs::error);
  CHECK_THROWS_WITH_AS(run(x, std::vector<std::int32_t>(4), rate),
                       "program: input 1 (A) has 4 elements, its dims make 3", gs::error);
  CHECK_THROWS_WITH_AS(run(x, ids, std::vector<float>()),
                       "program: input 2 has 0 elements, its dims make 1", gs::error);
  CHECK_THROWS_WITH_AS(run(gs::from_global<float, P<none, "x">>(on, {4, 3}, x), ids, rate),
                       "program: input 0 has extents [4,3], its dims make [3,4]", gs::error);
  CHECK_THROWS_WITH_AS(run(gs::from_global<float, P<none, "x">>(gs::simulate<mesh>(2), {3, 4}, x), ids, rate),
                       "program: input 0 belongs to another cluster", gs::error);
}

TEST_CASE("dims without an extent, and clusters without an axis, are named") {
  CHECK_THROWS_WITH_AS(gs::executable<program>(gs::simulate<mesh>(2), {{'A', 3}, {'C', 2}}),
                       "program: dim 'B' is given no extent", gs::error);
  CHECK_THROWS_WITH_AS(gs::executable<program>(gs::simulate<gs::mesh<gs::axis<"y">>>(2), extents),
                       "program: the cluster has no mesh axis called \"x\"", gs::error);
}

TEST_CASE("random operations draw other numbers in every step of the store, the same on every mesh") {
  const std::vector<float> ones(100, 1.0f), one(1, 1.0f);
  std::vector<std::vector<float>> expected;
  for (const int devices : {1, 3, 8}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store store(on, 9);
    gs::executable<dropping> run(on, {{'A', 100}}, store);
    gs::executable<counting> update(on, {{'A', 1}}, store);
    CHECK(run.seed == 9);
    std::vector<std::vector<float>> steps;
    for (int i = 0; i < 3; ++i) {
      CHECK(store.steps() == std::uint32_t(i));
      steps.push_back(gs::to_global(run(ones)));
      CHECK(gs::to_global(run(ones)) == steps.back());  // a run without updates finishes no step
      update(one);
    }
    CHECK(steps[0] != steps[1]);
    CHECK(steps[1] != steps[2]);
    if (expected.empty()) expected = steps;
    CHECK(steps == expected);
    store.set_steps(1);
    CHECK(gs::to_global(run(ones)) == steps[1]);
    run.seed = 10;
    CHECK(gs::to_global(run(ones)) != steps[1]);
  }
}

TEST_CASE("programs on one store count their steps together, as Adam must know them") {
  const std::vector<float> three{1, -2, 3}, pace{0.1f};
  const auto trained = [&](bool by_turns) {
    const auto on = gs::simulate<mesh>(2);
    gs::parameter_store store(on);
    gs::executable<adapting> run(on, {{'A', 3}}, store), other(on, {{'A', 3}}, store);
    std::vector<float> losses;
    for (int i = 0; i < 6; ++i) losses.push_back((by_turns && i % 2 == 1 ? other : run)(three, pace).item());
    CHECK(store.steps() == 6);
    return losses;
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE("a call that fails finishes no step and changes no parameter") {
  const auto on = gs::simulate<mesh>(2);
  gs::parameter_store store(on);
  gs::executable<counting> run(on, {{'A', 3}}, store);
  const std::vector<float> three{1, 2, 3};
  run(three);
  CHECK_THROWS_AS(run(std::vector<float>(4, 1.0f)), gs::error);
  CHECK(store.steps() == 1);
  CHECK(run(three).item() == 12);
  CHECK(store.steps() == 2);
}

TEST_CASE("parameters live from call to call, and in the store from program to program") {
  for (const int devices : {1, 2, 5}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store store(on);
    const std::vector<float> three{1, 2, 3};
    gs::executable<counting> run(on, {{'A', 3}}, store), other(on, {{'A', 3}}, store);
    CHECK(run(three).item() == 6);
    CHECK(run(three).item() == 12);
    CHECK(other(three).item() == 18);
    CHECK(run(three).item() == 24);
    CHECK(gs::executable<counting>(on, {{'A', 3}})(three).item() == 6);
  }
}

TEST_CASE("outputs are the caller's: they survive the program and its next call") {
  const auto on = gs::simulate<mesh>(2);
  auto run = std::make_unique<gs::executable<counting>>(on, gs::dims{{'A', 1}});
  const auto first = (*run)(std::vector{1.0f});
  const auto second = (*run)(std::vector{1.0f});
  run.reset();
  CHECK(first.item() == 1);
  CHECK(second.item() == 2);
}

namespace {
inline constexpr auto doubled = [](auto&, auto y) { return y + y; };
}  // namespace

TEST_CASE("extents that a program was planned for are those that it is run with") {
  using planned = gs::program<doubled, gs::mesh<gs::axis<"x", 4>>, in<"B", P<"x">>, gs::extent<'B', 16>>;
  const auto four = gs::simulate<mesh>(4);
  CHECK_THROWS_WITH_AS(gs::executable<planned>(gs::simulate<mesh>(3), {{'B', 16}}),
                       "program: axis \"x\" has extent 4 in the program and 3 here", gs::error);
  CHECK_THROWS_WITH_AS(gs::executable<planned>(four, {{'B', 15}}), "program: dim 'B' has extent 16 in the program and is given 15",
                       gs::error);
  gs::executable<planned> run(four, {{'B', 16}});
  CHECK(gs::to_global(run(std::vector<float>(16, 1.5f))) == std::vector<float>(16, 3));
}

TEST_CASE("inputs, outputs and parameters in orders of the devices of their own") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x", 4>>>(4);
  gs::parameter_store store(on);
  gs::executable<reordering> run(on, {{'A', 3}, {'B', 4}}, store);
  const tensor<float, ordered> t = gs::from_global<float, ordered>(on, {3, 4}, x);
  CHECK(t.local_shard(0).offset(0) == 1);  // device 0 has index 1 in this order
  CHECK(t.local_shard(1).offset(0) == 0);
  for (int step = 1; step <= 2; ++step) {
    const auto y = run(t);
    static_assert(std::is_same_v<decltype(y), const tensor<float, P<none, "x", device_order<0, 2, 1, 3>>>>);
    std::vector<float> wanted(12), found = gs::to_global<float>(store, "w");
    for (std::size_t i = 0; i < 12; ++i) wanted[i] = float(step) * x[i];
    CHECK(found == wanted);
    for (std::size_t d = 0; d < 4; ++d) {
      const auto s = y.local_shard(d);
      CHECK(s.offset(1) == std::array{0, 2, 1, 3}[d]);
      for (std::size_t i = 0; i < 3; ++i) CHECK(s.data[i] == wanted[4 * i + std::size_t(s.offset(1))]);
    }
  }
  gs::set_global<float>(store, "w", std::vector<float>(12, 1));
  CHECK(gs::to_global<float>(store, "w") == std::vector<float>(12, 1));
  CHECK_THROWS_WITH_AS((tensor<float, ordered>(gs::simulate<mesh>(3), {3, 4})),
                       "tensor: its order of devices does not have each of the cluster's 3 once", gs::error);
}

TEST_CASE("inputs and outputs in an order of the devices need the program's mesh") {
  const gs::dims sizes{{'A', 3}, {'B', 4}};
  const auto check = [&](auto in, const gs::any_cluster& on, const char* text) {
    using Program = typename decltype(in)::type;
    gs::parameter_store store(on);
    CHECK_THROWS_WITH_AS(gs::executable<Program>(on, sizes, store), text, gs::error);
    CHECK(store.entries().empty());
    CHECK(store.steps() == 0);
  };
  const char* const input =
      "program: input 0 has a device order; the cluster must have exactly the program's axes, in the same order";
  const char* const output =
      "program: output 0 has a device order; the cluster must have exactly the program's axes, in the same order";
  using wide = gs::mesh<gs::axis<"y">, gs::axis<"x">>;
  check(std::type_identity<reordering>{}, gs::simulate<wide>({2, 4}), input);
  check(std::type_identity<reordering_output>{}, gs::simulate<wide>({2, 4}), output);
  check(std::type_identity<reordering_output>{}, gs::simulate<wide>({1, 4}), output);
  // The same axes in another order.
  using two = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>;
  using turned = gs::mesh<gs::axis<"y", 2>, gs::axis<"x", 2>>;
  using program_of_two = gs::program<reordered, two, in<"AB", P<"x", none>>>;
  check(std::type_identity<program_of_two>{}, gs::simulate<turned>({2, 2}), output);
  const auto on = gs::simulate<two>({2, 2});
  gs::executable<program_of_two> run(on, sizes);
  run(x);
  // Only parameters may have a device order on a mesh with more axes.
  const auto wide_on = gs::simulate<wide>({2, 4});
  gs::parameter_store store(wide_on);
  gs::executable<reordering_inside> inside(wide_on, sizes, store);
  CHECK(gs::to_global(inside(x)) == x);
  CHECK(gs::to_global<float>(store, "w") == x);
}

TEST_CASE("the trip count of a loop may differ between runs; a parameter may stay unused") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<adding> run(on, extents);
  float total = 0;
  for (const std::int32_t turns : {2, 0, 3}) {
    const auto result = run(std::vector<float>{1, 2, 3}, std::vector{turns});
    total += 6 * float(turns);
    for (std::size_t d = 0; d < 2; ++d) CHECK(*result.local_shard(d).data == total);
  }
}
