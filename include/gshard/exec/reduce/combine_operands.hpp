// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Combines the operands of a reduction, element by element, in the order of a sum_order.

#include <gshard/core/base/bf16.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/exec/process/function_ref.hpp>
#include <gshard/exec/reduce/combine.hpp>
#include <gshard/exec/reduce/sum_order.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

/// How a collective combines numbers. A complex tensor counts as a tensor of its real and imaginary parts.
struct combination {
  dtype type = dtype::f32;  // of the numbers: f32, f64, i32, i64 or bf16
  reduction what = reduction::sum;

  /// The bytes of a number.
  std::int64_t width() const { return size_of(type); }
};
/// The address of operand m.
using operand_address = function_ref<const std::byte*(std::size_t)>;

/// z[k] = op(x[k], y[k]) for n elements. z may be x or y.
template <class T, class Op>
void combine_two(const T* x, const T* y, T* z, std::int64_t n, Op op) {
  constexpr auto lanes = std::int64_t(64 / sizeof(T));
  std::int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    std::array<T, std::size_t(lanes)> a, b;
    std::memcpy(a.data(), x + k, 64);
    std::memcpy(b.data(), y + k, 64);
    for (std::size_t l = 0; l < a.size(); ++l) a[l] = op(a[l], b[l]);
    std::memcpy(z + k, a.data(), 64);
  }
  for (; k < n; ++k) z[k] = op(x[k], y[k]);
}

/// Calls f(combine, identity) as with_operation does. bf16 numbers are combined in float; every result is rounded to bf16.
template <class T, class F>
void with_addition(reduction what, F f) {
  if constexpr (std::is_same_v<T, bf16>)
    with_operation<float>(what, [&](auto op, float) { f([op](bf16 x, bf16 y) { return to_bf16(op(to_float(x), to_float(y))); }, bf16()); });
  else with_operation<T>(what, f);
}

inline constexpr std::int64_t combined_at_once = 1024;  // elements: intermediate results stay in the cache

/// Elements [begin, begin + n) of a subtree's result: in its operand, or in `room`.
template <class Number, class Op>
const Number* combine_subtree(const sum_order& order, sum_order::subtree_id t, const operand_address& at, std::int64_t begin,
                              std::int64_t n, Number* room, Op op) {
  if (t.is_operand()) return reinterpret_cast<const Number*>(at(t.operand())) + begin;
  std::array<Number, std::size_t(combined_at_once)> other;
  const Number* const x = combine_subtree(order, order.left(t), at, begin, n, room, op);
  const Number* const y = combine_subtree(order, order.right(t), at, begin, n, other.data(), op);
  combine_two(x, y, room, n, op);
  return room;
}

/// Combines numbers of type T. `t` is not an operand.
template <class T>
void combine_numbers(reduction what, const sum_order& order, sum_order::subtree_id t, std::int64_t n, const operand_address& at,
                     std::byte* result) {
  with_addition<T>(what, [&]<class Number>(auto op, Number) {
    std::array<Number, std::size_t(combined_at_once)> left, right;
    for (std::int64_t begin = 0; begin < n; begin += combined_at_once) {
      const std::int64_t length = std::min(combined_at_once, n - begin);
      const Number* const x = combine_subtree(order, order.left(t), at, begin, length, left.data(), op);
      const Number* const y = combine_subtree(order, order.right(t), at, begin, length, right.data(), op);
      combine_two(x, y, reinterpret_cast<Number*>(result) + begin, length, op);
    }
  });
}

/// result[k] = the combination of at(m)[k] for all operands m of a subtree, for n numbers. The result may be one of the operands.
inline void combine_operands(const combination& how, const sum_order& order, sum_order::subtree_id t, std::int64_t n,
                             const operand_address& at, std::byte* result) {
  if (t.is_operand()) {
    const std::byte* const only = at(t.operand());
    if (only != result && n > 0) std::memcpy(result, only, std::size_t(n * how.width()));
    return;
  }
  switch (how.type) {
    case dtype::f64: return combine_numbers<double>(how.what, order, t, n, at, result);
    case dtype::i32: return combine_numbers<std::int32_t>(how.what, order, t, n, at, result);
    case dtype::i64: return combine_numbers<std::int64_t>(how.what, order, t, n, at, result);
    case dtype::bf16: return combine_numbers<bf16>(how.what, order, t, n, at, result);
    default: return combine_numbers<float>(how.what, order, t, n, at, result);
  }
}

}}}  // namespace gshard::v0::detail
