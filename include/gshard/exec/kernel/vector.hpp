// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Vectors (SIMD) of the target's width, by the vector extensions of GCC and clang. For loops that compilers do not vectorize by themselves:
// reductions, whose order they may not change, and tiles of registers.

#include <gshard/core/base/exponential.hpp>
#include <gshard/core/base/math.hpp>
#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/kernel/square_root.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

#if defined(__AVX512F__)
inline constexpr std::int64_t vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr std::int64_t vector_bytes = 32;
#else
inline constexpr std::int64_t vector_bytes = 16;
#endif

template <class T>
using vector [[gnu::vector_size(vector_bytes)]] = T;

template <class T>
inline constexpr std::int64_t lanes = vector_bytes / std::int64_t(sizeof(T));

template <class T>
vector<T> load(const T* from) {
  vector<T> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
void store(const vector<T>& v, T* to) {
  std::memcpy(to, &v, sizeof(v));
}

// Swaps every lane with the lane whose number differs in the bit Step.
template <std::size_t Step, class V, std::size_t... Lane>
V swap_lanes(const V& v, std::index_sequence<Lane...>) {
  return __builtin_shufflevector(v, v, (Lane ^ Step)...);
}

/// Every lane gets the reduction by `op` of its aligned group of `Group` lanes, a power of two.
template <class T, std::size_t Group = std::size_t(lanes<T>), std::size_t Step = 1, class Op>
vector<T> across(const vector<T>& v, Op op) {
  if constexpr (Step >= Group)
    return v;
  else
    return across<T, Group, 2 * Step>(
        op(v, swap_lanes<Step>(v, std::make_index_sequence<std::size_t(lanes<T>)>{})), op);
}

inline constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
/// Faster than gshard::detail::larger, but may lose a NaN. For rows in which a sum also keeps the NaN.
inline constexpr auto larger_number = [](const auto& a, const auto& b) { return a > b ? a : b; };

/// Folds term(i) over i < n with `op`, whose identity is `start`. `term` gets a reader that maps a pointer to its element i, or to a vector
/// of its elements. The order depends on n alone.
template <class T, class Term, class Op>
T fold(std::int64_t n, T start, Term term, Op op) {
  constexpr std::int64_t width = lanes<T>;
  constexpr std::size_t parts = 4;
  vector<T> part[parts];
  for (auto& p : part) p = vector<T>{} + start;
  std::int64_t i = 0;
  for (; i + std::int64_t(parts) * width <= n; i += std::int64_t(parts) * width)
#pragma GCC unroll 4
    for (std::size_t u = 0; u < parts; ++u)
      part[u] = op(part[u], term([=](const T* x) { return load<T>(x + i + std::int64_t(u) * width); }));
  for (; i + width <= n; i += width) part[0] = op(part[0], term([=](const T* x) { return load<T>(x + i); }));
  const vector<T> all = op(op(part[0], part[1]), op(part[2], part[3]));
  T result = across<T>(all, op)[0];
  for (; i < n; ++i) result = op(result, term([=](const T* x) { return x[i]; }));
  return result;
}

template <class T, class Term>
T sum_of(std::int64_t n, Term term) {
  return fold<T>(n, T(0), term, plus);
}

/// The numbers, in the type in which they are added.
template <class T>
const gshard::detail::modular<T>* addends(const T* x) {
  return reinterpret_cast<const gshard::detail::modular<T>*>(x);
}
template <class T>
T sum(std::int64_t n, const T* x) {
  return T(sum_of<gshard::detail::modular<T>>(n, [x = addends(x)](auto at) { return at(x); }));
}
template <class T>
T dot(std::int64_t n, const T* x, const T* y) {
  return T(sum_of<gshard::detail::modular<T>>(n, [x = addends(x), y = addends(y)](auto at) { return at(x) * at(y); }));
}
/// The same for complex numbers, in four sums. The order depends on n alone.
template <class T>
std::complex<T> sum(std::int64_t n, const std::complex<T>* x) {
  std::array<std::complex<T>, 4> part{};
  for (std::int64_t i = 0; i < n; ++i) part[std::size_t(i % 4)] += x[i];
  return (part[0] + part[1]) + (part[2] + part[3]);
}
template <class T>
std::complex<T> dot(std::int64_t n, const std::complex<T>* x, const std::complex<T>* y) {
  std::array<std::complex<T>, 4> part{};
  for (std::int64_t i = 0; i < n; ++i) part[std::size_t(i % 4)] += gshard::detail::product(x[i], y[i]);
  return (part[0] + part[1]) + (part[2] + part[3]);
}
/// The maximum; NaN if an element is NaN.
template <class T>
T maximum(std::int64_t n, const T* x) {
  return fold<T>(n, -std::numeric_limits<T>::infinity(), [=](auto at) { return at(x); }, gshard::detail::larger);
}

/// A vector of the first n elements of an array, where n is less than the number of lanes. The others are `fill`.
template <class T>
vector<T> load_few(const T* from, std::int64_t n, T fill = 0) {
  vector<T> v = vector<T>{} + fill;
  std::memcpy(&v, from, std::size_t(n) * sizeof(T));
  return v;
}
template <class T>
void store_few(const vector<T>& v, T* to, std::int64_t n) {
  std::memcpy(to, &v, std::size_t(n) * sizeof(T));
}

template <class T>
vector<T> vector_square_root(const vector<T>& x) {
  return square_root_as<T, vector<T>, vector<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>(x);
}

/// e^x for lanes that are not positive, as in a softmax.
template <class T>
vector<T> falling_exponential(const vector<T>& x) {
  return gshard::detail::falling_exponential_as<T, vector<T>, vector<typename gshard::detail::exponential_of<T>::integer>>(x);
}

}}}}  // namespace gshard::v0::kernel::detail
