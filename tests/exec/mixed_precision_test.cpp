// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs with `bf16_products`.
#include <gshard/core/base/bf16.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <random>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

constexpr auto product = [](auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
inline constexpr auto model = [](auto&, auto x, auto w, auto dy) {
  auto y = product(x, w);
  auto d = gs::gradients(gs::sum(y * dy), std::array{x, w});
  return std::tuple{y, d[0], d[1], gs::full_precision(product, x, w)};
};
template <class... Options>
using program = gs::program<model, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, in<"AC", P<none, none>>, Options...>;

const gs::dims sizes{{'A', 33}, {'B', 70}, {'C', 41}};
std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> v(n);
  for (float& x : v) x = uniform(gen);
  return v;
}
std::vector<float> rounded(std::vector<float> v) {
  for (float& x : v) x = gs::detail::to_float(gs::detail::to_bf16(x));
  return v;
}
template <class Program>
std::array<std::vector<float>, 4> run(int devices, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& dy) {
  gs::executable<Program> p(gs::simulate<mesh>(devices), sizes);
  return std::apply([](const auto&... t) { return std::array{gs::to_global(t)...}; }, p(x, w, dy));
}
void check_near(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(2e-5).scale(1));
}

}  // namespace

TEST_CASE("bf16_products: the products of rounded factors, forward and in gradients, however they are sharded") {
  const auto x = numbers(33 * 70, 1), w = numbers(70 * 41, 2), dy = numbers(33 * 41, 3);
  const auto plain = run<program<>>(1, x, w, dy), expected = run<program<>>(1, rounded(x), rounded(w), rounded(dy));
  for (const int devices : {1, 2, 3}) {
    const auto found = run<program<gs::bf16_products>>(devices, x, w, dy);
    for (std::size_t i = 0; i < 3; ++i) check_near(found[i], expected[i]);
    check_near(found[3], plain[0]);
    CHECK(found[0] != found[3]);
  }
}
