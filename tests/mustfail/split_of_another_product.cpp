// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dim of known extent is split into two dims with another product.
// expect: gshard: the extents of the two dims that split_dim makes have another product than the extent of the dim
// expect: static_extent<.*"M".*, 32>
// expect: product_of_extents<36>
// expect: at_line<19
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
constexpr int heads = 9;
#else
constexpr int heads = 8;
#endif

inline constexpr auto model = [](auto&, auto x) {
  // Without the error, the result would have the dims [B,M] again.
  return x + gs::merge_dims(gs::split_dim(x, 1, 4, heads), 1);
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"BM">, gs::extent<'M', 32>>::plan.collectives() == 0);
