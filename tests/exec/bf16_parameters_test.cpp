// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters that are stored in bf16: initial values, products, gradients, and training with master values.
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <Eigen/Core>

#include <doctest/doctest.h>

#include "../complaint.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::bfloat16, gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

/// w in bf16, or in float and rounded where it is used.
template <bool Stored, class Spec>
constexpr auto weight(auto& m) {
  const auto w = m.param("w", "MH", Spec{}, gs::init::fan_in("M"), Stored ? gs::dtype::bf16 : gs::dtype::f32);
  return gs::cast<float>(Stored ? w : gs::cast<bfloat16>(w));
}
template <bool Stored, class Spec>
inline constexpr auto product = [](auto& m, auto x) { return gs::einsum<"BM,MH->BH">(x, weight<Stored, Spec>(m)); };
template <bool Stored, class Spec, const auto& Settings>
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  const auto y = gs::einsum<"BM,MH->BH">(x, weight<Stored, Spec>(m));
  const auto loss = gs::mean(y * y);
  Settings.minimize(m, loss, rate);
  return loss;
};
template <auto Model, class... More>
using program = gs::program<Model, mesh, in<"BM", P<"x", none>>, More...>;
inline constexpr gs::adam plain{.weight_decay = 0.1}, zero{.shard_state_over = "x"},
    skipping{.if_not_finite = gs::not_finite::skip, .clip_norm = 0.5},
    with_feedback{.wire = gs::gradient_wire::bf16_with_feedback};
inline constexpr gs::adafactor factored{.weight_decay = 0.1}, factored_zero{.beta1 = 0.9, .relative = false, .shard_state_over = "x"},
    factored_skipping{.weight_decay = 0.1, .if_not_finite = gs::not_finite::skip, .clip_norm = 0.5},
    factored_with_feedback{.wire = gs::gradient_wire::bf16_with_feedback};
constexpr const char* rest_of(const gs::adam&) { return "adam.rest.w"; }
constexpr const char* rest_of(const gs::adafactor&) { return "adafactor.rest.w"; }

std::vector<float> numbers(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(std::sin(double(i)));
  return v;
}
const std::vector<std::vector<int>> meshes{{1, 1}, {2, 1}, {2, 2}, {3, 2}};
const gs::dims sizes{{'B', 6}, {'M', 5}, {'H', 4}};

std::vector<float> rounded(std::vector<float> v) {
  for (float& f : v) f = float(bfloat16(f));
  return v;
}
std::vector<float> as_float(const std::vector<bfloat16>& v) { return {v.begin(), v.end()}; }

}  // namespace

TEST_CASE("initial values in bf16 are those of float, rounded") {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<program<product<true, P<"x", "y">>>> stored(on, sizes, gs::parameter_store(on, 7));
    gs::executable<program<product<false, P<"x", "y">>>> full(on, sizes, gs::parameter_store(on, 7));
    const std::vector<float> x = numbers(30);
    CHECK(gs::to_global(stored(x)) == gs::to_global(full(x)));
    const std::vector<float> w = gs::to_global<float>(full.executor().store(), "w");
    CHECK(as_float(gs::to_global<bfloat16>(stored.executor().store(), "w")) == rounded(w));
    CHECK(rounded(w) != w);
  }
}

// Sharded parameters are gathered in bf16, and their gradients are summed in float.
template <class P>
constexpr bool moves_in(const P& plan, gs::op_ref kind, gs::dtype type) {
  bool all = plan.count(kind) > 0;
  for (const gs::node& n : plan.steps)
    if (n.kind == kind) all = all && plan.at(n.output()).type == type;
  return all;
}
using fsdp = program<step<true, P<"x", none>, plain>, in<"">>;
static_assert(fsdp::plan.count(op::all_gather) == 1 && moves_in(fsdp::plan, op::all_gather, gs::dtype::bf16));
static_assert(fsdp::plan.count(op::reduce_scatter) == 1 && moves_in(fsdp::plan, op::reduce_scatter, gs::dtype::f32));
constexpr std::int64_t bytes_of(const gs::plan_view& plan) {
  constexpr std::array devices{2, 1};
  return plan.bytes_received(plan.bind({{'B', 6}, {'M', 8}, {'H', 4}}, devices));
}
static_assert(bytes_of(program<product<true, P<"x", none>>>::plan) == 4 * 4 * 2);
// With ZeRO, the updated parameter is gathered in bf16 as well.
using zero_step = program<step<true, P<none, none>, zero>, in<"">>;
static_assert(zero_step::plan.count(op::all_gather) == 1 && moves_in(zero_step::plan, op::all_gather, gs::dtype::bf16));
static_assert(zero_step::plan.count(op::reduce_scatter) == 1);
static_assert(zero_step::plan.at(zero_step::plan.find("adam.rest.w")->value).layout.used() != 0);
using factored_step = program<step<true, P<none, none>, factored_zero>, in<"">>;
static_assert(factored_step::plan.count(op::all_gather) == 1 && moves_in(factored_step::plan, op::all_gather, gs::dtype::bf16));
static_assert(factored_step::plan.count(op::reduce_scatter) == 1);
static_assert(factored_step::plan.at(factored_step::plan.find("adafactor.rest.w")->value).layout.used() != 0);

namespace {
/// Training with w in bf16 equals training in float with a model that rounds w.
template <class Spec, const auto& Settings>
void check_training(bool skips = false) {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<program<step<true, Spec, Settings>, in<"">>> stored(on, sizes, gs::parameter_store(on, 7));
    gs::executable<program<step<false, Spec, Settings>, in<"">>> full(on, sizes, gs::parameter_store(on, 7));
    const std::vector<float> start = as_float(gs::to_global<bfloat16>(stored.executor().store(), "w"));
    gs::set_global<float>(full.executor().store(), "w", start);
    std::vector<float> x = numbers(30);
    for (int t = 0; t < 8; ++t) {
      x[3] = skips && t == 4 ? INFINITY : float(t);
      const float rate = 0.004f, a = stored(x, std::vector{rate}).item(), b = full(x, std::vector{rate}).item();
      CHECK((a == b || (std::isnan(a) && std::isnan(b))));
      const std::vector<float> master = gs::to_global<float>(full.executor().store(), "w");
      const std::vector<float> w = as_float(gs::to_global<bfloat16>(stored.executor().store(), "w"));
      const std::vector<float> rest = gs::to_global<float>(stored.executor().store(), rest_of(Settings));
      CHECK(w == rounded(master));
      std::vector<float> sum = w;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
      CHECK(sum == master);
    }
    CHECK(as_float(gs::to_global<bfloat16>(stored.executor().store(), "w")) != start);
    CHECK(stored.skipped_steps() == (skips ? 1 : 0));
  }
}
}  // namespace

TEST_CASE("adam trains parameters in bf16 by master values in float, with every sharding") {
  check_training<P<none, none>, plain>();
  check_training<P<"x", none>, plain>();
  check_training<P<"y", "x">, plain>();
  check_training<P<none, none>, zero>();
  check_training<P<none, "y">, skipping>(true);
}
TEST_CASE("adafactor trains parameters in bf16 by master values in float, with every sharding") {
  check_training<P<none, none>, factored>();
  check_training<P<"x", none>, factored>();
  check_training<P<"y", "x">, factored>();
  check_training<P<none, none>, factored_zero>();
  check_training<P<none, "y">, factored_skipping>(true);
}

namespace {
template <bool Stored, const auto& Settings>
inline constexpr auto accumulated_step = [](auto& m, auto x, auto rate) {
  const auto sum = gs::accumulate(m, [&](auto part) {
    const auto y = gs::einsum<"BM,MH->BH">(part, weight<Stored, P<"x", none>>(m));
    return gs::mean(y * y);
  }, x);
  Settings.minimize(m, sum, rate);
  return sum.loss;
};
template <bool Stored, const auto& Settings>
using accumulating = gs::program<accumulated_step<Stored, Settings>, mesh, in<"NBM", P<none, "x", none>>, in<"">, gs::extent<'N', 2>>;
template <const auto& Settings>
void check_accumulated() {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<accumulating<true, Settings>> stored(on, {{'N', 2}, {'B', 6}, {'M', 5}, {'H', 4}}, gs::parameter_store(on, 7));
    gs::executable<accumulating<false, Settings>> full(on, {{'N', 2}, {'B', 6}, {'M', 5}, {'H', 4}}, gs::parameter_store(on, 7));
    gs::set_global<float>(full.executor().store(), "w", as_float(gs::to_global<bfloat16>(stored.executor().store(), "w")));
    for (int t = 0; t < 4; ++t)
      CHECK(stored(numbers(60), std::vector{0.01f}).item() == full(numbers(60), std::vector{0.01f}).item());
  }
}
}  // namespace

TEST_CASE("gradients of micro-batches train parameters in bf16 by master values, too") {
  check_accumulated<plain>();
  check_accumulated<factored>();
}

namespace {
template <gs::dtype Type>
inline constexpr auto half_step = [](auto& m, auto x, auto rate) {
  const auto y = gs::einsum<"BM,MH->BH">(x, gs::cast<float>(m.param("w", "MH", P<"x", none>{}, gs::init::fan_in("M"), Type)));
  const auto loss = gs::mean(y * y);
  gs::adam{.if_not_finite = gs::not_finite::ignore, .shard_state_over = "y"}.minimize(m, loss, rate);
  return loss;
};
inline constexpr auto beyond = [](auto& m, auto x, auto rate) {
  const auto w = gs::cast<float>(m.param("w", "MH", gs::init::zeros(), gs::dtype::f16));
  gs::adam{.if_not_finite = gs::not_finite::ignore}.minimize(m, gs::sum(w), rate);  // gradients of 1, steps of the rate
  return gs::sum(x);
};
/// If w is written from outside after some steps, the remainder of earlier steps is not used.
template <gs::dtype Type, class T>
void check_written() {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<program<half_step<Type>, in<"">>> written(on, sizes, gs::parameter_store(on, 7));
    gs::executable<program<half_step<Type>, in<"">>> fresh(on, sizes, gs::parameter_store(on, 7));
    const auto train = [](auto& run, int steps) {
      for (int t = 0; t < steps; ++t) run(numbers(30), std::vector{0.004f});
    };
    train(written, 3);
    train(fresh, 3);
    std::vector<T> small;
    for (const float v : numbers(20)) small.push_back(T(v / 100000));  // each less than a remainder
    gs::set_global<T>(written.executor().store(), "w", small);
    gs::set_global<T>(fresh.executor().store(), "w", small);
    CHECK(gs::to_global<float>(written.executor().store(), "adam.rest.w") != std::vector<float>(20));
    gs::set_global<float>(fresh.executor().store(), "adam.rest.w", std::vector<float>(20));
    for (int t = 0; t < 3; ++t) {
      train(written, 1);
      train(fresh, 1);
      for (const char* name : {"adam.rest.w", "adam.m.w"})
        CHECK(gs::to_global<float>(written.executor().store(), name) == gs::to_global<float>(fresh.executor().store(), name));
      CHECK(gs::to_global<T>(written.executor().store(), "w") == gs::to_global<T>(fresh.executor().store(), "w"));
    }
  }
}
}  // namespace

TEST_CASE("if something else writes a parameter in half precision, its rest is not used") {
  check_written<gs::dtype::bf16, bfloat16>();
  check_written<gs::dtype::f16, gs::half>();
}

TEST_CASE("a master value beyond the numbers of f16: the parameter is infinite, and no NaN") {
  const auto on = gs::simulate<mesh>(std::vector<int>{1, 1});
  gs::executable<program<beyond, in<"">>> run(on, sizes, gs::parameter_store(on, 7));
  for (int t = 0; t < 4; ++t) run(numbers(30), std::vector{40000.f});
  for (const gs::half v : gs::to_global<gs::half>(run.executor().store(), "w")) CHECK(float(v) == -INFINITY);
}

namespace {
inline constexpr auto gradient_of_stored = [](auto& m, auto x) {
  const auto w = m.param("w", "MH", gs::init::fan_in("M"), gs::dtype::bf16);
  const auto y = gs::einsum<"BM,MH->BH">(x, w);  // a factor of a product in bf16
  return std::tuple{y, gs::gradients(gs::sum(y * y), std::array<gs::symbol, 1>{w})[0]};
};
inline constexpr auto gradient_of_full = [](auto& m, auto x) {
  const auto w = gs::cast<float>(gs::cast<bfloat16>(m.param("w", "MH", gs::init::fan_in("M"))));
  const auto y = gs::einsum<"BM,MH->BH">(x, w);
  return std::tuple{y, gs::gradients(gs::sum(y * y), std::array<gs::symbol, 1>{w})[0]};
};
}  // namespace

TEST_CASE("with bf16_products, a parameter in bf16 is a factor; its gradient is that of float") {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<program<gradient_of_stored, gs::bf16_products>> stored(on, sizes, gs::parameter_store(on, 7));
    gs::executable<program<gradient_of_full, gs::bf16_products>> full(on, sizes, gs::parameter_store(on, 7));
    const auto [y, dw] = stored(numbers(30));
    const auto [expected_y, expected_dw] = full(numbers(30));
    CHECK(gs::to_global(y) == gs::to_global(expected_y));
    CHECK(gs::to_global(dw) == gs::to_global(expected_dw));
  }
}

namespace {
/// A product of three: w and v in bf16, or in float and rounded. Optionally with casts to float.
template <bool Stored, bool Casts>
inline constexpr auto product_of_three = [](auto& m, auto x) {
  const auto weight = [&](auto name, auto letters) {
    const auto w = m.param(name, letters, gs::init::normal(1), Stored ? gs::dtype::bf16 : gs::dtype::f32);
    if (!Stored) return gs::cast<float>(gs::cast<bfloat16>(w));
    return Casts ? gs::cast<float>(w) : w;
  };
  const auto w = weight("w", "MH"), v = weight("v", "HM");
  const auto y = gs::einsum<"BM,MH,HN->BN">(x, w, v);
  return std::tuple{y, gs::gradients(gs::sum(y * y), std::array<gs::symbol, 1>{w})[0]};
};
template <bool Casts, class... More>
void compare_products_of_three() {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    gs::executable<program<product_of_three<true, Casts>, More...>> stored(on, sizes, gs::parameter_store(on, 7));
    gs::executable<program<product_of_three<false, Casts>, More...>> full(on, sizes, gs::parameter_store(on, 7));
    const auto [y, dw] = stored(numbers(30));
    const auto [expected_y, expected_dw] = full(numbers(30));
    CHECK(gs::to_global(y) == gs::to_global(expected_y));
    CHECK(gs::to_global(dw) == gs::to_global(expected_dw));
  }
}
}  // namespace

TEST_CASE("products of three operands, two of which are in bf16") {
  compare_products_of_three<false, gs::bf16_products>();
  compare_products_of_three<true>();
}

namespace {

template <bool Stored, const auto& Settings>
void check_name_in_error(const std::string& begins = "adam: the gradient of parameter \"w\": element [") {
  const auto on = gs::simulate<mesh>({2, 2});
  gs::executable<program<step<Stored, P<none, "y">, Settings>, in<"">>> run(on, sizes, gs::parameter_store(on, 7));
  std::vector<float> x = numbers(30);
  x[3] = std::nanf("");
  const std::string error = complaint([&] { run(x, std::vector{0.1f}); });
  CHECK_MESSAGE(error.find(begins) != std::string::npos, error);
}

}  // namespace

TEST_CASE("errors of adam name the parameter: in bf16, with sharded state, with error feedback") {
  check_name_in_error<true, plain>();
  check_name_in_error<true, zero>();
  check_name_in_error<false, zero>();
  check_name_in_error<true, with_feedback>();
}
TEST_CASE("errors of adafactor name the parameter: in bf16, with sharded state, with error feedback") {
  const std::string begins = "adafactor: the gradient of parameter \"w\", in its state \"adafactor.r.w\": element [";
  check_name_in_error<true, factored>(begins);
  check_name_in_error<true, factored_zero>(begins);
  check_name_in_error<true, factored_with_feedback>(begins);
}
