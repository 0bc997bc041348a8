// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The number of bytes of a parameter overflows at the extents of the program.
// expect: gshard: a tensor has more bytes than can be counted, 2.53, at the extents of the program
// expect: in_operation<.*"w"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr std::int64_t columns = std::int64_t(1) << 40;
#else
constexpr std::int64_t columns = 1 << 10;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<none, "data">{}, gs::init::zeros()));
};
using compiled = gs::program<model, gs::mesh<gs::axis<"data">>, in<"BM">, gs::extent<'M', std::int64_t(1) << 20>, gs::extent<'H', columns>>;
static_assert(compiled::plan.collectives() == 0);
