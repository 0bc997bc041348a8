// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/factors.hpp>
#include <gshard/kernel/nest.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gshard { inline namespace v0 { namespace kernel {

/// out[o] = max of a over the factors that are not in the result, -infinity over none. Prepared once, run
/// many times. Throws gshard::error at construction as `contraction` does.
template <class T>
class reduce_max {
 public:
  reduce_max(const operand_dims& a, const operand_dims& out) : size_(element_count(out.rank, out.extent)) {
    const auto loops = detail::loops_of<2>("reduce_max", {a, out});
    for (std::size_t i = 0; i < loops.count; ++i)
      nest_.push({loops.at[i].extent, {loops.at[i].stride[0], 0, loops.at[i].stride[1]}});
    if (nest_.iterations() == 0) return;
    detail::merge_loops(nest_);
    nest_ = detail::order_nest(nest_);
  }

  void run(const T* a, T* out) const {
    std::fill_n(out, size_, -std::numeric_limits<T>::infinity());
    detail::loop_nest<3> outer = nest_;
    if (outer.iterations() == 0) return;
    const auto row = outer.take_innermost();
    detail::for_each_offset(outer,
                            [=, n = row.extent, sa = row.stride[0], so = row.stride[2]](const auto& at) {
                              const T* x = a + at[0];
                              T* y = out + at[2];
                              if (sa == 1 && so == 0)
                                *y = detail::larger(*y, detail::maximum(n, x));
                              else if (sa == 1 && so == 1)
                                for (std::int64_t i = 0; i < n; ++i) y[i] = detail::larger(y[i], x[i]);
                              else
                                for (std::int64_t i = 0; i < n; ++i)
                                  y[i * so] = detail::larger(y[i * so], x[i * sa]);
                            });
  }

 private:
  std::int64_t size_;
  detail::loop_nest<3> nest_;
};

}}}  // namespace gshard::v0::kernel
