// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/pointwise.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {

static_assert(gs::pointwise_add.linear && gs::pointwise_subtract.linear && gs::pointwise_identity.linear);
static_assert(gs::pointwise_subtract.coefficient[0] == 1 && gs::pointwise_subtract.coefficient[1] == -1);

inline constexpr auto product = [](auto a, auto b) { return a * gs::tanh(b); };
constexpr const gs::pointwise& entry = gs::pointwise_of<product, 2>;
static_assert(entry.arity == 2 && !entry.linear);

// A function has one place in the program, and so has each of its derivatives; derivatives have none.
// (Not as static_assert: g++ does not compare addresses of constants under -fsanitize=undefined.)
TEST_CASE("one entry a function") {
  CHECK(&gs::pointwise_of<product, 2> == &entry);
  CHECK(&entry.derivative(0) == &entry.derivative(0));
  CHECK(&entry.derivative(0) != &entry.derivative(1));
}
static_assert(entry.derivative(1).arity == 3 && !entry.derivative(1).differentiable);

template <class T>
gs::row_function<T> kernel(const gs::pointwise& p) {
  if constexpr (sizeof(T) == 4)
    return p.f32;
  else
    return p.f64;
}

/// Random rows with strides 0 (one element for all), 1 and more, of lengths around the size of a block.
template <class T, std::size_t Arity, class Expected>
void check_rows(gs::row_function<T> f, Expected expected, unsigned seed) {
  CAPTURE(seed);
  std::mt19937 draw(seed);
  std::uniform_real_distribution<T> number(-1, 1);
  for (std::int64_t n : {0, 1, 7, 255, 256, 257, 700}) {
    std::array<std::int64_t, Arity> stride{};
    std::array<std::vector<T>, Arity> data;
    std::array<const T*, Arity> in{};
    for (std::size_t k = 0; k < Arity; ++k) {
      stride[k] = std::int64_t(draw() % 4);
      data[k].resize(std::size_t(n * stride[k] + 1));
      for (T& v : data[k]) v = number(draw);
      in[k] = data[k].data();
    }
    std::vector<T> out(std::size_t(n + 1), T(42));
    f(in.data(), stride.data(), out.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      std::array<T, Arity> x{};
      for (std::size_t k = 0; k < Arity; ++k) x[k] = in[k][i * stride[k]];
      REQUIRE(out[std::size_t(i)] == doctest::Approx(expected(x)).epsilon(1e-5));
    }
    REQUIRE(out[std::size_t(n)] == T(42));
  }
}

TEST_CASE_TEMPLATE("pointwise: rows of a function and of its derivatives", T, float, double) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    check_rows<T, 2>(
        kernel<T>(entry), [](auto x) { return x[0] * std::tanh(x[1]); }, seed);
    check_rows<T, 3>(
        kernel<T>(entry.derivative(0)), [](auto x) { return x[2] * std::tanh(x[1]); }, seed);
    check_rows<T, 3>(
        kernel<T>(entry.derivative(1)),
        [](auto x) {
          const T t = std::tanh(x[1]);
          return x[2] * x[0] * (1 - t * t);
        },
        seed);
    check_rows<T, 2>(
        kernel<T>(gs::pointwise_add), [](auto x) { return x[0] + x[1]; }, seed);
    check_rows<T, 2>(
        kernel<T>(gs::pointwise_subtract), [](auto x) { return x[0] - x[1]; }, seed);
    check_rows<T, 1>(
        kernel<T>(gs::pointwise_identity), [](auto x) { return x[0]; }, seed);
  }
}

TEST_CASE("pointwise: a result may lie over an operand") {
  std::vector<float> x(600);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  const std::array<const float*, 2> in{x.data(), x.data()};
  const std::array<std::int64_t, 2> stride{1, 1};
  gs::pointwise_add.f32(in.data(), stride.data(), x.data(), std::int64_t(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(x[i] == float(2 * i));
}

}  // namespace
