// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/pointwise.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {

static_assert(gs::pointwise_add.linear && gs::pointwise_subtract.linear && gs::pointwise_identity.linear);
static_assert(gs::pointwise_subtract.coefficient[0] == 1 && gs::pointwise_subtract.coefficient[1] == -1);

inline constexpr auto product = [](auto a, auto b) { return a * gs::tanh(b); };
constexpr const gs::pointwise& entry = gs::pointwise_of<product, 2>;
static_assert(entry.arity == 2 && !entry.linear);

// A function has one entry in the program, and each of its derivatives as well. A derivative has no derivative of its own. (Not as
// static_assert: g++ does not compare addresses of constants under -fsanitize=undefined.)
TEST_CASE("one entry a function") {
  CHECK(&gs::pointwise_of<product, 2> == &entry);
  CHECK(&entry.derivative(0) == &entry.derivative(0));
  CHECK(&entry.derivative(0) != &entry.derivative(1));
}
static_assert(entry.derivative(1).arity == 3 && !entry.derivative(1).differentiable);

template <class T>
gs::row_function<T> kernel(const gs::pointwise& p) {
  return gs::detail::row_of<T>(p);
}

/// Random rows of several lengths.
template <class T, std::size_t Arity, class Expected>
void check_rows(gs::row_function<T> f, Expected expected, unsigned seed) {
  CAPTURE(seed);
  std::mt19937 draw(seed);
  std::uniform_real_distribution<T> number(-1, 1);
  for (std::int64_t n : {0, 1, 7, 255, 256, 257, 700}) {
    std::array<std::vector<T>, Arity> data;
    std::array<const T*, Arity> in{};
    for (std::size_t k = 0; k < Arity; ++k) {
      data[k].resize(std::size_t(n));
      for (T& v : data[k]) v = number(draw);
      in[k] = data[k].data();
    }
    std::vector<T> out(std::size_t(n + 1), T(42));
    f(in.data(), out.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      std::array<T, Arity> x{};
      for (std::size_t k = 0; k < Arity; ++k) x[k] = in[k][i];
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

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
bool same(T x, double y) {
  return x == T(y) || (std::isnan(x) && std::isnan(y)) || std::abs(double(x) - y) <= 1e-5 * std::abs(y);
}

/// f and dy * slope(x0, x1, which operand) for NaN, infinities and other numbers at every position of a row.
template <class T, class Value, class Slope>
void check_not_finite(const gs::pointwise& f, Value value, Slope slope) {
  constexpr double numbers[]{nan, infinity, -infinity, 0, 1, -1, 0.5, -3, 1e30, -1e30};
  constexpr std::size_t most = std::size(numbers), n = 7 * most * most;  // every pair of them at seven positions, one step apart
  std::array<std::vector<T>, 2> x;
  std::vector<T> dy, y(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[0].push_back(T(numbers[i % most]));
    x[1].push_back(T(numbers[i / most % most]));
    dy.push_back(T(int(i % 5) - 7));
  }
  const std::array<const T*, 2> in{x[0].data(), x[1].data()};
  kernel<T>(f)(in.data(), y.data(), std::int64_t(n));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += !same(y[i], value(double(x[0][i]), double(x[1][i])));
  CHECK(wrong == 0);
  for (int operand = 0; operand < f.arity; ++operand) {
    CAPTURE(operand);
    std::array<const T*, 3> with_dy{in[0], in[1], dy.data()};
    if (f.slope_by_result) with_dy[0] = y.data();
    with_dy[std::size_t(f.arity)] = dy.data();
    std::vector<T> d(n);
    kernel<T>(f.derivative(operand))(with_dy.data(), d.data(), std::int64_t(n));
    wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += !same(d[i], double(dy[i]) * slope(double(x[0][i]), double(x[1][i]), operand));
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("pointwise: NaN and infinity in every place", T, float, double) {
  const auto sign = [](double v) { return std::isnan(v) ? nan : double(v > 0) - double(v < 0); };
  // 1 for the chosen operand, a half for each of two equal ones.
  const auto share = [](bool chosen, double a, double b) {
    return std::isnan(a + b) && (std::isnan(a) || std::isnan(b)) ? nan : a == b ? 0.5 : chosen;
  };
  const auto larger = [](double a, double b) { return std::isnan(a) || std::isnan(b) ? nan : a > b ? a : b; };
  check_not_finite<T>(gs::pointwise_of<[](auto a, auto b) { return gs::max(a, b); }, 2>, larger,
                      [=](double a, double b, int i) { return share(i == 0 ? a > b : b > a, a, b); });
  check_not_finite<T>(
      gs::pointwise_of<[](auto a, auto b) { return gs::min(a, b); }, 2>, [=](double a, double b) { return -larger(-a, -b); },
      [=](double a, double b, int i) { return share(i == 0 ? a < b : b < a, a, b); });
  check_not_finite<T>(gs::pointwise_of<[](auto a) { return gs::abs(a); }, 1>, [](double a, double) { return std::abs(a); },
                      [=](double a, double, int) { return sign(a); });
  check_not_finite<T>(gs::pointwise_by_result<[](auto a) { return gs::relu(a); }>, [](double a, double) { return a < 0 ? 0 : a; },
                      [](double a, double, int) { return std::isnan(a) ? nan : double(a > 0); });
  check_not_finite<T>(gs::pointwise_of<[](auto a) { return gs::tanh(a); }, 1>, [](double a, double) { return std::tanh(a); },
                      [](double a, double, int) {
                        const auto t = T(std::tanh(T(a)));
                        return double(1 - t * t);
                      });
  check_not_finite<T>(gs::pointwise_of<[](auto a) { return gs::exp(a); }, 1>, [](double a, double) { return double(std::exp(T(a))); },
                      [](double a, double, int) { return double(std::exp(T(a))); });
  check_not_finite<T>(gs::pointwise_of<[](auto a) { return gs::log(a); }, 1>, [](double a, double) { return std::log(a); },
                      [](double a, double, int) { return 1 / a; });
  check_not_finite<T>(gs::pointwise_of<[](auto a) { return gs::sqrt(a); }, 1>, [](double a, double) { return std::sqrt(a); },
                      [](double a, double, int) { return 1 / (2 * std::sqrt(a)); });
  // The derivative does not read an operand on which it does not depend.
  using namespace gs::detail::arithmetic;
  check_not_finite<T>(gs::detail::own_function<multiply, multiply_left_slope, multiply_right_slope>,
                      [](double a, double b) { return double(T(a) * T(b)); }, [](double a, double b, int i) { return i == 0 ? b : a; });
  // Only the chosen operand matters.
  check_not_finite<T>(
      gs::pointwise_of<[](auto a, auto b) { return gs::select(0 < a, a, b); }, 2>, [](double a, double b) { return 0 < a ? a : b; },
      [](double a, double, int i) { return double((0 < a) == (i == 0)); });
}

TEST_CASE("pointwise: a result may overwrite an operand") {
  std::vector<float> x(600);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  const std::array<const float*, 2> in{x.data(), x.data()};
  kernel<float>(gs::pointwise_add)(in.data(), x.data(), std::int64_t(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(x[i] == float(2 * i));
}

}  // namespace
