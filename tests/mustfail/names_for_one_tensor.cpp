// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two names for the only result of a scan without outputs: a tensor decomposes into itself, not into its members.
// expect: error: (2 names provided|type .* decomposes into 1 element)
// expect: decomposes into 1 element
#include <gshard/plan.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto&, auto h, auto xs) {
#if defined(MUST_FAIL)
  const auto [last, all] = gs::scan([](auto, auto s, auto x) { return s + x; }, h, xs);
#else
  const auto [last] = gs::scan([](auto, auto s, auto x) { return s + x; }, h, xs);
#endif
  return last;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"">, gs::in<"T">>::plan.collectives() == 0);
