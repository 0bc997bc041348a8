// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors of every element type as inputs and outputs of programs, and outside of them.
#include <gshard/exec/program/executable.hpp>

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/user/custom.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">>;
using complex = std::complex<double>;

namespace {

inline constexpr auto moved = [](auto&, auto x) { return gs::pad(gs::roll(x, 1, 1), 0, 0, 1, 0, 1); };
template <class T>
using moving = gs::program<moved, mesh, in<"AB", P<none, "x">, T>>;

template <class T>
std::array<T, 6> six() {
  const auto number = gs::detail::element_from<T>;
  return {number(1), number(0), number(1), number(0), number(0), number(1)};
}
template <class T>
bool equals(const T& a, const T& b) {
  return a == b;
}

inline constexpr auto overlap = [](auto&, auto a, auto b) { return std::tuple{gs::einsum<"NI,NJ->IJ">(gs::conj(a), b), a * gs::conj(a)}; };
using overlapping = gs::program<overlap, mesh, in<"NI", P<"x", none>, complex>, in<"NJ", P<"x", none>, complex>>;

// The energy |A z - b|^2, and its gradient.
inline constexpr auto least_squares = [](auto&, auto a, auto z, auto b) {
  auto rest = gs::einsum<"MN,N->M">(a, z) - b;
  auto energy = gs::sum(gs::real(rest * gs::conj(rest)));
  auto g = gs::gradients(energy, std::array{z});
  return std::tuple{energy, g[0]};
};
using descent = gs::program<least_squares, mesh, in<"MN", P<"x", none>, complex>, in<"N", void, complex>, in<"M", P<"x">, complex>>;

struct rotate_phase {
  static constexpr std::string_view name = "rotate_phase";
  static constexpr std::string_view rule = "A->A";
  template <class T>
  using element = std::complex<T>;
  template <class T>
  static void run(gs::local_shard<const std::complex<T>> x, gs::local_shard<std::complex<T>> y) {
    for (std::int64_t i = 0; i < x.size(); ++i) y.data[i] = std::polar(T(1), std::arg(x.data[i]));
  }
};

using pair_mesh = gs::mesh<gs::axis<"x", 2>>;
inline constexpr auto multiplied = [](auto&, auto a, auto b) { return gs::einsum<"IJ,JK->IK">(a, b); };
template <class T>
using looping = gs::program<multiplied, pair_mesh, in<"IJ", P<"x", none>, T>, in<"JK", P<"x", none>, T>, gs::extent<'I', 4>,
                            gs::extent<'J', 6>, gs::extent<'K', 2>, gs::loop_above<0>>;

inline constexpr auto phases = [](auto&, auto z) { return gs::custom<rotate_phase>(z); };

}  // namespace

TEST_CASE_TEMPLATE("a tensor of every element type goes in, is moved and comes out", T, float, double, std::int32_t, std::int64_t,
                   std::complex<float>, complex, bool, gs::half, gs::bfloat16) {
  const std::array<T, 6> given = six<T>();
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    gs::executable<moving<T>> run(gs::simulate<mesh>(devices), {{'A', 2}, {'B', 3}});
    const auto y = gs::to_global(run(given));
    const std::array<int, 9> expected{1, 1, 0, 1, 0, 0, 1, 1, 1};  // the last row is the padding, which is 1 in every type
    REQUIRE(y.size() == 9);
    for (std::size_t i = 0; i < 9; ++i) CHECK(equals<T>(y[i], gs::detail::element_from<T>(expected[i])));
  }
}

TEST_CASE_TEMPLATE("a looped einsum of every element type that has sums", T, float, double, std::int32_t, std::int64_t, std::complex<float>,
                   complex) {
  static_assert(looping<T>::plan.count(gs::op::looped_einsum) == 1);
  const auto number = gs::detail::element_from<T>;
  std::vector<T> a(4 * 6), b(6 * 2);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = number(double(i) - 9);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = number(double(i % 5));
  gs::executable<looping<T>> run(gs::simulate<pair_mesh>(2), {{'I', 4}, {'J', 6}, {'K', 2}});
  const std::vector<T> y = gs::to_global(run(a, b));
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      T sum{};
      for (std::size_t j = 0; j < 6; ++j) sum += a[6 * i + j] * b[2 * j + k];
      CHECK(equals(y[2 * i + k], sum));
    }
}

TEST_CASE("memory of complex numbers that is aligned to their parts alone is moved") {
  std::array<float, 13> memory{};
  float* const parts = memory.data() + (reinterpret_cast<std::uintptr_t>(memory.data()) % 8 == 0 ? 1 : 0);
  const std::span<std::complex<float>> given(reinterpret_cast<std::complex<float>*>(parts), 6);
  for (std::size_t i = 0; i < 6; ++i) given[i] = {float(i), -1};
  std::vector<std::complex<float>> y(9);
  gs::executable<moving<std::complex<float>>> run(gs::simulate<mesh>(1), {{'A', 2}, {'B', 3}});
  run.bind_input<0>(given);
  run.bind_output<0>(y);
  run.run_bound();
  CHECK(y[0] == given[2]);
  CHECK(y[4] == given[3]);
}

TEST_CASE("an einsum with conjugation, and element-wise products") {
  const std::vector<complex> a{{1, 2}, {0, 1}, {3, -1}, {2, 0}}, b{{0, 1}, {1, 1}};  // [2, 2], [2, 1]
  gs::executable<overlapping> run(gs::simulate<mesh>(2), {{'N', 2}, {'I', 2}, {'J', 1}});
  const std::vector<complex> expected{std::conj(a[0]) * b[0] + std::conj(a[2]) * b[1], std::conj(a[1]) * b[0] + std::conj(a[3]) * b[1]};
  static_assert(overlapping::plan.count(gs::op::all_reduce) == 1);
  const auto found = run(a, b);
  CHECK(gs::to_global(std::get<0>(found)) == expected);
  const std::vector<complex> squares = gs::to_global(std::get<1>(found));
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(squares[i] == std::norm(a[i]));
}

TEST_CASE("the gradient of a real loss is the direction in which it grows") {
  const std::vector<complex> a{{1, 2}, {0, 1}, {3, -1}, {2, 0}, {0, 0}, {-1, 1}}, z{{1, -1}, {0.5, 2}}, b{{1, 0}, {0, 1}, {2, 2}};
  gs::executable<descent> run(gs::simulate<mesh>(3), {{'M', 3}, {'N', 2}});
  const auto energy_at = [&](const std::vector<complex>& at) { return std::get<0>(run(a, at, b)).item(); };
  const std::vector<complex> g = gs::to_global(std::get<1>(run(a, z, b)));
  for (std::size_t i = 0; i < z.size(); ++i)
    for (const complex step : {complex(1e-6, 0), complex(0, 1e-6)}) {
      std::vector<complex> up = z, down = z;
      up[i] += step;
      down[i] -= step;
      const double slope = (energy_at(up) - energy_at(down)) / 2e-6;
      CHECK(slope == doctest::Approx(step.imag() == 0 ? g[i].real() : g[i].imag()).epsilon(1e-6));
    }
  std::vector<complex> next = z;
  for (std::size_t i = 0; i < z.size(); ++i) next[i] -= 0.01 * g[i];
  CHECK(energy_at(next) < energy_at(z));
}

TEST_CASE("a custom operation of complex tensors, in both precisions") {
  const auto on = gs::simulate<mesh>(2);
  gs::executable<gs::program<phases, mesh, in<"A", P<"x">, complex>>> wide(on, {{'A', 3}});
  gs::executable<gs::program<phases, mesh, in<"A", P<"x">, std::complex<float>>>> narrow(on, {{'A', 3}});
  CHECK(gs::to_global(wide(std::vector<complex>{{3, 0}, {0, 2}, {-1, 0}}))[1].imag() == doctest::Approx(1));
  CHECK(gs::to_global(narrow(std::vector<std::complex<float>>{{3, 0}, {0, 2}, {-1, 0}}))[2].real() == doctest::Approx(-1));
}

TEST_CASE("complex tensors outside of programs") {
  const auto on = gs::simulate<mesh>(2);
  const std::vector<complex> values{{1, 1}, {2, -1}, {0, 3}, {4, 0}};
  const auto z = gs::from_global<complex, P<"x", none>>(on, {2, 2}, values);
  const auto product = gs::einsum<"NI,NJ->IJ">(gs::conj(z), z);
  const std::vector<complex> found = gs::to_global(product), sum = gs::to_global(z + z);
  CHECK(found[0] == std::conj(values[0]) * values[0] + std::conj(values[2]) * values[2]);
  CHECK(found[1] == std::conj(values[0]) * values[1] + std::conj(values[2]) * values[3]);
  CHECK(sum[3] == complex(8, 0));
}
