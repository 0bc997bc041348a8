// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel of argmax: the first index at which an element equals the extremum.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/gemm/factors.hpp>
#include <gshard/exec/kernel/loops.hpp>
#include <gshard/ops/along/sort_kernel.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gshard { inline namespace v0 { namespace kernel {

/// out[o] = the smallest global index along a factor that m lacks, at which x equals m[o]. m holds, for example, the maxima of x over the
/// factors that m lacks. NaN equals NaN. out[o] is the largest int32 if no local element is equal. Prepared once, run many times.
/// Throws gshard::error at construction as `contraction` does, or if x lacks the factor.
template <class T>
class first_equal {
 public:
  /// m: the dims of m and out; along: the factor whose index is returned; first: its first local index.
  first_equal(const operand_dims& x, const operand_dims& m, int along, std::int64_t first)
      : size_(element_count(m.rank, m.extent)), first_(first) {
    // The index along this factor is a separate operand, whose element i is i.
    const auto found = std::find(x.factor.begin(), x.factor.begin() + x.rank, along);
    if (found == x.factor.begin() + x.rank)
      throw error("first_equal " + detail::text(std::array{x, m}) + ": there is no '" + char('a' + along) + "' to count along");
    const operand_dims counted{1, {along}, {x.extent[std::size_t(found - x.factor.begin())]}};
    nest_ = detail::loops_of<3>("first_equal", {x, counted, m});
    if (nest_.iterations() == 0) return;
    detail::merge_loops(nest_);
    detail::sort_loops(nest_, 0);
  }

  /// `out` must not overlap x or m.
  void run(const T* x, const T* m, std::int32_t* out) const {
    std::fill_n(out, size_, none);
    detail::loop_nest<3> outer = nest_;
    if (outer.iterations() == 0) return;
    const auto row = outer.take_innermost();
    detail::for_each_offset(outer, [=, this, n = row.extent, sx = row.stride[0], si = row.stride[1], so = row.stride[2]](const auto& at) {
      const T *a = x + at[0], *b = m + at[2];
      std::int32_t* to = out + at[2];
      const std::int64_t index = first_ + at[1];
      if (so == 0) {
        std::int64_t i = 0;
        while (i < n && !same(a[i * sx], *b)) ++i;
        if (i < n) *to = std::min(*to, std::int32_t(index + i * si));
      } else {
        for (std::int64_t i = 0; i < n; ++i)
          to[i * so] = std::min(to[i * so], same(a[i * sx], b[i * so]) ? std::int32_t(index + i * si) : none);
      }
    });
  }

 private:
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
  static bool same(T a, T b) { return a == b || (a != a && b != b); }

  std::int64_t size_, first_;
  detail::loop_nest<3> nest_;
};

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::argmax>, const local_step<T>& step) {
  const int dim = step.n.attr.dim;
  check_indices("argmax", step.in_line(0).whole);
  return [k = kernel::first_equal<T>(step.in_dims(0), step.in_dims(1), step.n.rule.in[0][dim], step.in_place(0).offset[std::size_t(dim)]),
          x = step.in(0), best = step.in(1), y = step.out_ids()](const run_context&) { k.run(x, best, y); };
}

}}}  // namespace gshard::v0::detail
