// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Custom operations whose `sums` lacks a contracted index, or has an index of the result.
// expect: gshard: `sums` and `whole` of a custom operation have every index that its result lacks, and `sums` has no other
// expect: gshard: `sums` and `whole` of a custom operation have every index that its result lacks, and `sums` has no other
#include <gshard/plan.hpp>

#include <string_view>

namespace gs = gshard;

enum class version { right, too_few, too_many };

template <version V>
struct squares {
  static constexpr std::string_view name = "squares", rule = "AB->A";
  static constexpr std::string_view sums = V == version::right ? "B" : V == version::too_few ? "" : "AB";
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<T>) {}
};
template <version V>
inline constexpr auto model = [](auto&, auto x) { return gs::custom<squares<V>>(x); };
template <version V>
constexpr bool plans = gs::program<model<V>, gs::mesh<gs::axis<"x">>, gs::in<"AB">>::plan.count(gs::op::custom) == 1;

#if defined(MUST_FAIL)
static_assert(plans<version::too_few>);
static_assert(plans<version::too_many>);
#else
static_assert(plans<version::right>);
#endif
