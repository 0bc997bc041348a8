// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A custom operation does not say what happens to an index that its result lacks.
// expect: gshard: `sums` and `whole` of a custom operation have every index that its result lacks
#include <gshard/plan.hpp>

#include <string_view>

namespace gs = gshard;

struct squares {
#if defined(MUST_FAIL)
  static constexpr std::string_view name = "squares", rule = "AB->A";
#else
  static constexpr std::string_view name = "squares", rule = "AB->A", sums = "B";
#endif
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<T>) {}
};
inline constexpr auto model = [](auto&, auto x) { return gs::custom<squares>(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"AB">>::plan.count(gs::op::custom) == 1);
