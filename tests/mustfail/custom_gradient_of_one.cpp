// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A custom operation of two operands. Its gradient returns one symbol.
// expect: gshard: gradient\(x, \.\.\., y, dy\) of a custom operation returns a symbol per operand, as a std::tuple if there are several
#include <gshard/plan.hpp>

#include <array>
#include <string_view>
#include <tuple>

namespace gs = gshard;

struct scaled {
  static constexpr std::string_view name = "scaled", rule = "A,A->A";
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<const T>, gs::local_shard<T>) {}
#if defined(MUST_FAIL)
  static constexpr auto gradient(gs::symbol, gs::symbol s, gs::symbol, gs::symbol dy) { return s * dy; }
#else
  static constexpr auto gradient(gs::symbol x, gs::symbol s, gs::symbol, gs::symbol dy) { return std::tuple{s * dy, x * dy}; }
#endif
};
inline constexpr auto model = [](auto&, auto x) {
  const auto loss = gs::sum(gs::custom<scaled>(x, x));
  return gs::gradients(loss, std::array{x})[0];
};
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">>::plan.collectives() == 0);
