// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sums of products as a loop nest around a vectorized row: for small products and for sums of one operand.

#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/kernel/loops.hpp>
#include <gshard/exec/kernel/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

using gshard::detail::product;
using gshard::detail::total;

constexpr bool is_sum(const loop<3>& l) {
  return l.stride[2] == 0;
}

/// Estimated cycles of the nest with loop `inner` innermost.
constexpr double nest_cost(const loop_nest<3>& nest, std::size_t inner) {
  const loop<3>& l = nest.at[inner];
  const bool unit = l.stride[0] <= 1 && l.stride[1] <= 1 && l.stride[2] <= 1;
  const auto length = double(l.extent);
  return double(nest.iterations()) / length * (12 + length * (unit ? 0.25 : 1.5));
}

constexpr std::size_t best_inner_loop(const loop_nest<3>& nest) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < nest.count; ++i)
    if (nest_cost(nest, i) < nest_cost(nest, best)) best = i;
  return best;
}

/// Orders the loops: loops over the result by falling stride, then sums by falling stride of operand 0, then loop `inner`.
constexpr loop_nest<3> order_nest(loop_nest<3> nest, std::size_t inner) {
  const loop<3> last = nest.at[inner];
  nest.erase(inner);
  sort_loops(nest, 0);
  sort_loops(nest, 2);
  nest.push(last);
  return nest;
}
/// The same with the cheapest loop innermost.
constexpr loop_nest<3> order_nest(const loop_nest<3>& nest) {
  return nest.count == 0 ? nest : order_nest(nest, best_inner_loop(nest));
}

/// The order of the loops if sums are added term by term: the terms of each sum follow one another in the order of operand 0. Any loop over
/// the result may be innermost, and the cheapest one is.
constexpr loop_nest<3> order_term_by_term(loop_nest<3> nest) {
  std::size_t best = nest.count;
  for (std::size_t i = 0; i < nest.count; ++i)
    if (!is_sum(nest.at[i]) && (best == nest.count || nest_cost(nest, i) < nest_cost(nest, best))) best = i;
  if (best < nest.count) return order_nest(nest, best);
  sort_loops(nest, 0);
  return nest;
}

/// Loops in the order in which they run.
struct nest_plan {
  loop_nest<3> nest;
  bool term_by_term = false;  // sums are never split into partial sums
  double cost = 0;            // for one index of the batch loop
};

/// Plans a nest of merged loops and a batch loop, the outermost one of the result. The order of each sum does not depend on the extent of
/// the batch loop: it is the cheapest order for a usual extent.
constexpr nest_plan plan_nest(const loop_nest<3>& nest, const std::optional<loop<3>>& batch) {
  if (nest.count == 0 && !batch) return {};
  loop_nest<3> all = nest;
  constexpr std::int64_t usual = 32;
  if (batch) all.push({usual, batch->stride});
  const std::size_t inner = best_inner_loop(all);
  nest_plan plan{{}, inner == nest.count, nest_cost(all, inner) / double(batch ? usual : 1)};
  if (batch) plan.nest.push(*batch);
  const loop_nest<3> rest = plan.term_by_term ? nest : order_nest(nest);
  for (std::size_t i = 0; i < rest.count; ++i) plan.nest.push(rest.at[i]);
  if (batch) merge_loops(plan.nest);
  if (plan.term_by_term) plan.nest = order_term_by_term(plan.nest);
  return plan;
}

/// out[i * so] (+)= (alpha * a[i * sa]) * b[i * sb], rounded after each product. Therefore all strides, and all orders of loops, give the
/// same bits. If so is 0, the compiler cannot reorder the additions, because `out` may overlap `a`.
template <bool Add, class T>
void multiply_row(std::int64_t n, T alpha, const T* a, std::int64_t sa, const T* b, std::int64_t sb, T* out,
                  std::int64_t so) {
  const auto put = [](T& to, T x) { to = Add ? total(to, x) : x; };
  if (sa == 0 && sb == 1 && so == 1) {
    const T scale = product(alpha, *a);
    for (std::int64_t i = 0; i < n; ++i) put(out[i], product(scale, b[i]));
  } else if (sa == 1 && sb == 0 && so == 1 && alpha == T(1)) {
    const T scale = *b;
    for (std::int64_t i = 0; i < n; ++i) put(out[i], product(a[i], scale));
  } else if (sa == 1 && sb == 1 && so == 1) {
    for (std::int64_t i = 0; i < n; ++i) put(out[i], product(product(alpha, a[i]), b[i]));
  } else {
    for (std::int64_t i = 0; i < n; ++i) put(out[i * so], product(product(alpha, a[i * sa]), b[i * sb]));
  }
}

template <class T>
T multiply_sum_row(std::int64_t n, const T* a, std::int64_t sa, const T* b, std::int64_t sb) {
  if (sa == 1 && sb == 1) return dot(n, a, b);
  if (sa == 1 && sb == 0) return product(*b, sum(n, a));
  if (sa == 0 && sb == 1) return product(*a, sum(n, b));
  T s{};
  for (std::int64_t i = 0; i < n; ++i) s = total(s, product(a[i * sa], b[i * sb]));
  return s;
}

/// out[o] = alpha * a * b, summed over the innermost loop if that is a sum. With `add`, it is added to out[o].
template <class T>
void run_part_of_nest(loop_nest<3> nest, T alpha, const T* a, const T* b, T* out, bool add, bool term_by_term) {
  const loop<3> inner = nest.take_innermost();
  const auto [sa, sb, so] = inner.stride;
  for_each_offset(nest, [=, n = inner.extent, sa = sa, sb = sb, so = so](const auto& at) {
    const T *x = a + at[0], *y = b + at[1];
    T* z = out + at[2];
    if (so == 0 && !term_by_term)
      *z = total(add ? *z : T(0), product(alpha, multiply_sum_row(n, x, sa, y, sb)));
    else if (add)
      multiply_row<true>(n, alpha, x, sa, y, sb, z, so);
    else
      multiply_row<false>(n, alpha, x, sa, y, sb, z, so);
  });
}

/// out[o] = alpha * sum of a * b over the nest of a plan, for a contiguous `out` of `size` elements. With `to_sums`, it is added to out[o].
template <class T>
void run_nest(const nest_plan& plan, T alpha, const T* a, const T* b, T* out, std::int64_t size, bool to_sums = false) {
  const loop_nest<3>& nest = plan.nest;
  bool add = to_sums;
  for (std::size_t i = 0; i + (plan.term_by_term ? 0 : 1) < nest.count; ++i) add = add || is_sum(nest.at[i]);
  if (add && !to_sums) std::fill_n(out, size, T(0));
  parallel_nest<2>(nest, [=, term_by_term = plan.term_by_term](const loop_nest<3>& part, const auto& first) {
    run_part_of_nest(part, alpha, a + first[0], b + first[1], out + first[2], add, term_by_term);
  });
}
}}}}  // namespace gshard::v0::kernel::detail
