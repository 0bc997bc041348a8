// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gradient of a custom operation without `gradient`.
// expect: gshard: no gradient is known for an operation
// expect: "squares"
#include <gshard/plan.hpp>

#include <array>
#include <string_view>

namespace gs = gshard;

struct squares {
  static constexpr std::string_view name = "squares", rule = "A->A";
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<T>) {}
#if !defined(MUST_FAIL)
  static constexpr gs::symbol gradient(gs::symbol x, gs::symbol, gs::symbol dy) { return 2 * (x * dy); }
#endif
};
inline constexpr auto model = [](auto&, auto x) {
  const auto loss = gs::sum(gs::custom<squares>(x));
  return gs::gradients(loss, std::array{x})[0];
};
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">>::plan.collectives() == 0);
