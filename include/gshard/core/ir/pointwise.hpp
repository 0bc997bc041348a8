// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise functions of `map` as entries of a plan: their kernels and derivatives.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/dual.hpp>
#include <gshard/core/ir/arithmetic.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

/// A row kernel: out[i] = f(in[0][i], in[1][i], ...) for i < n. @see kernel::apply_rows
template <class T>
using row_function = void (*)(const T* const* in, T* out, std::int64_t n);

/// The position of a shard in its tensor.
struct shard_place {
  int rank = 0;
  std::array<std::int64_t, 8> extent{}, offset{}, global{};
};
/// A user's function of complete shards: it reads the operands' shards and fills the result's.
template <class T>
using shard_function = void (*)(const T* const* in, const shard_place* in_at, T* out, const shard_place& out_at);

/// A user's scalar function as an entry of a plan: its kernels and, if it is differentiable, its derivatives.
struct pointwise {
  static constexpr int most_operands = 6;

  int arity = 0;
  element_set types = reals;  ///< the element types of its operands, which all have the type of the result
  int own = -1;  ///< A function of the library: its number. It has kernels for all `types`. @see detail::arithmetic::for_each_function
  row_function<float> f32 = nullptr;
  row_function<double> f64 = nullptr;
  /// derivative(i) is the function (x0, ..., xn-1, dy) -> dy * df/dxi. Only if `differentiable`.
  const pointwise& (*derivative)(int operand) = nullptr;
  // Flags, because g++ under -fsanitize=undefined does not compare the address of an inline variable or function at compile time.
  bool differentiable = false;
  bool stops_gradient = false;  ///< no gradient flows to the operands
  /// One operand, and f'(x) = f'(f(x)): the gradient reads the result, so the operand need not be kept.
  bool slope_by_result = false;
  /// f(x) = sum of coefficient[i] * x[i]: partial sums may pass through it.
  bool linear = false;
  std::array<double, most_operands> coefficient{};
  /// Bit i: f is linear in operand i while the other operand is constant.
  std::uint8_t linear_operands = 0;
  /// Instead of all above: a function of shards.
  shard_function<float> shards_f32 = nullptr;
  shard_function<double> shards_f64 = nullptr;
  std::string_view function{};  ///< the compiler's name of the function of shards

  /// True if f(x) = x, and gradients pass unchanged.
  constexpr bool is_identity() const { return arity == 1 && linear && coefficient[0] == 1 && !stops_gradient; }
};

namespace detail {

// Classes, so that a function of `map` adds only these functions to a program: one for each element type.
template <class T, auto F, class Operands>
struct row_kernel;
template <class T, auto F, std::size_t... I>
struct row_kernel<T, F, std::index_sequence<I...>> {
  static void run(const T* const* in, T* out, std::int64_t n) {
    const T* const x[]{in[I]...};
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(F(x[I][i]...));
  }
};
template <class T, auto F, int Arity>
inline constexpr row_function<T> mapped_row = row_kernel<T, F, std::make_index_sequence<std::size_t(Arity)>>::run;

template <class T, auto F, std::size_t Operand, class Operands>
struct derivative_kernel;
template <class T, auto F, std::size_t Operand, std::size_t... I>
struct derivative_kernel<T, F, Operand, std::index_sequence<I...>> {
  static void run(const T* const* in, T* out, std::int64_t n) {
    const T* const x[]{in[I]...};
    const T* const dy = in[sizeof...(I)];
    for (std::int64_t i = 0; i < n; ++i) out[i] = dy[i] * dual<T>(F(dual<T>(x[I][i], T(I == Operand))...)).slope;
  }
};

template <auto F, int Arity, int Operand>
inline constexpr pointwise derivative_of{
    .arity = Arity + 1,
    .f32 = derivative_kernel<float, F, std::size_t(Operand), std::make_index_sequence<std::size_t(Arity)>>::run,
    .f64 = derivative_kernel<double, F, std::size_t(Operand), std::make_index_sequence<std::size_t(Arity)>>::run};

template <auto F, int Arity>
constexpr const pointwise& choose_derivative(int operand) {
  return []<std::size_t... I>(std::index_sequence<I...>, int wanted) -> const pointwise& {
    const std::array<const pointwise*, std::size_t(Arity)> all{&derivative_of<F, Arity, int(I)>...};
    return *all[std::size_t(wanted)];
  }(std::make_index_sequence<std::size_t(Arity)>{}, operand);
}

}  // namespace detail

/// The table entry of a captureless generic callable `F` of `Arity` arguments.
template <auto F, int Arity>
inline constexpr pointwise pointwise_of{.arity = Arity,
                                        .f32 = detail::mapped_row<float, F, Arity>,
                                        .f64 = detail::mapped_row<double, F, Arity>,
                                        .derivative = detail::choose_derivative<F, Arity>,
                                        .differentiable = true};

/// The same for an F with F'(x) = F'(F(x)), such as max(x, 0).
template <auto F>
inline constexpr pointwise pointwise_by_result = [] {
  pointwise f = pointwise_of<F, 1>;
  f.slope_by_result = true;
  return f;
}();

/// The same without derivatives, which take the most compile time. For functions that passes add to programs.
template <auto F, int Arity>
inline constexpr pointwise undifferentiated{
    .arity = Arity, .f32 = detail::mapped_row<float, F, Arity>, .f64 = detail::mapped_row<double, F, Arity>};

/// F, as a name that depends on a parameter `Used` of a template. If a template names F itself, g++ compiles the kernels of F in every
/// program that includes the template, even if the program does not use it.
template <class Used, auto F>
inline constexpr auto when_used = F;

namespace detail {

/// A function without operands.
template <class T, class F>
void constant_row(const T* const*, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = F::template value<T>();
}
/// The row kernel of one of the library's own functions.
template <class T, class F>
inline constexpr row_function<T> own_row = mapped_row<T, F{}, F::arity>;
template <class T, class F>
  requires(F::arity == 0)
inline constexpr row_function<T> own_row<T, F> = constant_row<T, F>;

/// The kernel of one of the library's own functions, or null.
template <class T>
row_function<T> own_row_of(int number) {
  row_function<T> found = nullptr;
  int n = 0;
  arithmetic::for_each_function([&]<class F>(F) {
    if constexpr ((F::types >> int(dtype_of<T>)) & 1u)
      if (n == number) found = own_row<T, F>;
    ++n;
  });
  return found;
}

/// The row kernel of a function. The compiled library has its own kernels of the library's own functions.
template <class T>
row_function<T> row_of(const pointwise& f) {
  if constexpr (!GSHARD_HEADER_ONLY)
    if (f.own >= 0) return own_row_of<T>(f.own);
  if constexpr (std::is_same_v<T, float>) return f.f32;
  else if constexpr (std::is_same_v<T, double>) return f.f64;
  else return own_row_of<T>(f.own);
}

/// A function of the library, with the functions of its gradients, if it has any. These need not read all operands. Dual numbers read all,
/// and get NaN from Inf * 0.
template <class F, class... Slope>
inline constexpr pointwise own_function = [] {
  pointwise f{.arity = F::arity, .types = F::types, .own = arithmetic::number_of<F>};
  if constexpr ((F::types & reals) != 0) {  // also with the compiled library: header-only sources of the process share this constant
    f.f32 = own_row<float, F>;
    f.f64 = own_row<double, F>;
  }
  if constexpr (sizeof...(Slope) > 0) {
    f.derivative = [](int operand) -> const pointwise& {
      constexpr std::array all{&own_function<Slope>...};
      return *all[std::size_t(operand)];
    };
    f.differentiable = true;
  }
  return f;
}();
/// The same for c0 * x0 + c1 * x1: partial sums pass through it.
template <class F, int... Coefficient>
inline constexpr pointwise own_linear = [] {
  pointwise f = own_function<F>;
  f.linear = true;
  f.coefficient = {double(Coefficient)...};
  return f;
}();
/// The same for a product or a quotient. `LinearOperands`: @see pointwise::linear_operands
template <unsigned LinearOperands, class F, class... Slope>
inline constexpr pointwise own_product = [] {
  pointwise f = own_function<F, Slope...>;
  f.linear_operands = LinearOperands;
  return f;
}();
/// The same for a function whose gradients are zero.
template <class F>
inline constexpr pointwise own_step = [] {
  pointwise f = own_function<F>;
  f.stops_gradient = true;
  return f;
}();

}  // namespace detail

inline constexpr const pointwise& pointwise_add = detail::own_linear<detail::arithmetic::add, 1, 1>;
inline constexpr const pointwise& pointwise_subtract = detail::own_linear<detail::arithmetic::subtract, 1, -1>;
inline constexpr const pointwise& pointwise_identity = detail::own_linear<detail::arithmetic::identity, 1>;

}}  // namespace gshard::v0
