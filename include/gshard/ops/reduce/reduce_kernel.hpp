// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of reductions.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/gemm/factors.hpp>
#include <gshard/exec/kernel/gemm/nest.hpp>
#include <gshard/exec/reduce/combine.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

/// out[o] = sum, max, min or product of a over the factors that are not in the result. The reduction of no elements is 0, -infinity
/// (integers: the lowest), +infinity (the highest) or 1. A NaN in a makes out[o] NaN. Prepared once, run many times. T: float, double,
/// std::int32_t, std::int64_t. Sums and products of integers are modulo 2^n.
/// Throws gshard::error at construction as `contraction` does.
template <class T>
class reduction_kernel {
 public:
  reduction_kernel(reduction what, const operand_dims& a, const operand_dims& out)
      : what_(what), size_(element_count(out.rank, out.extent)) {
    const auto loops = detail::loops_of<2>("reduction", {a, out});
    for (std::size_t i = 0; i < loops.count; ++i)
      nest_.push({loops.at[i].extent, {loops.at[i].stride[0], 0, loops.at[i].stride[1]}});
    if (nest_.iterations() == 0) return;
    detail::merge_loops(nest_);
    nest_ = detail::order_nest(nest_);
  }

  /// `out` must not overlap `a`.
  void run(const T* a, T* out) const {
    gshard::detail::with_operation<T>(what_, [&]<class Number>(auto combine, Number identity) {
      run(reinterpret_cast<const Number*>(a), reinterpret_cast<Number*>(out), combine, identity);
    });
  }

 private:
  template <class Number, class Combine>
  void run(const Number* a, Number* out, Combine combine, Number identity) const {
    std::fill_n(out, size_, identity);
    if (nest_.iterations() == 0) return;
    detail::parallel_nest<2>(nest_, [=](const detail::loop_nest<3>& part, const auto& first) {
      run_part(part, a + first[0], out + first[2], combine, identity);
    });
  }
  template <class Number, class Combine>
  static void run_part(detail::loop_nest<3> outer, const Number* a, Number* out, Combine combine, Number identity) {
    const auto row = outer.take_innermost();
    detail::for_each_offset(outer, [=, n = row.extent, sa = row.stride[0], so = row.stride[2]](const auto& at) {
      const Number* x = a + at[0];
      Number* y = out + at[2];
      if (so == 0) *y = combine(*y, row_of(n, x, sa, combine, identity));
      else if (sa == 1 && so == 1)
        for (std::int64_t i = 0; i < n; ++i) y[i] = combine(y[i], x[i]);
      else
        for (std::int64_t i = 0; i < n; ++i) y[i * so] = combine(y[i * so], x[i * sa]);
    });
  }
  template <class Number, class Combine>
  static Number row_of(std::int64_t n, const Number* x, std::int64_t stride, Combine combine, Number identity) {
    Number all = identity;
    if (stride == 1)
      for (std::int64_t begin = 0; begin < n; begin += block)
        all = combine(all, block_of(std::min(block, n - begin), x + begin, combine, identity));
    else
      for (std::int64_t i = 0; i < n; ++i) all = combine(all, x[i * stride]);
    return all;
  }
  template <class Number, class Combine>
  static Number block_of(std::int64_t n, const Number* x, Combine combine, Number identity) {
    const auto all = [=](auto op) { return detail::fold<Number>(n, identity, [=](auto at) { return at(x); }, op); };
    constexpr bool is_max = std::is_same_v<const Combine, decltype(gshard::detail::larger)>;
    constexpr bool is_min = std::is_same_v<const Combine, decltype(gshard::detail::smaller)>;
    if constexpr (std::is_floating_point_v<Number> && (is_max || is_min)) {
      // Finding a NaN in a sum costs less than keeping it in every comparison.
      const Number fast = all([](const auto& a, const auto& b) { return (is_max ? a > b : a < b) ? a : b; });
      const Number sum = detail::sum(n, x);
      if (sum == sum) return fast;
    }
    return all(combine);
  }
  static constexpr std::int64_t block = 4096;  // stays in the cache

  reduction what_;
  std::int64_t size_;
  detail::loop_nest<3> nest_;
};

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::reduce>, const local_step<T>& step) {
  return [r = kernel::reduction_kernel<T>(step.n.attr.combine, step.in_dims(0), step.out_dims()), x = step.in(0),
          y = step.out()](const run_context&) { r.run(x, y); };
}

}}}  // namespace gshard::v0::detail
