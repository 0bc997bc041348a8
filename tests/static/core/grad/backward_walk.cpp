// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/backward_walk.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <cstdint>

// Gradients of a tensor with several readers are added in an order that does not depend on the order of the readers' statements.
namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;

/// k is read by a sum of its rows, and twice by a sum of its squares.
template <bool SumFirst>
inline constexpr auto three_readers = [](auto&, auto k, auto l) {
  const auto sum = [&] { return gs::sum<"AB->A">(k); };
  const auto squares = [&] { return gs::sum<"AB->A">(k * k); };
  const auto loss = [&](auto c, auto q) {
    const auto r = c - (c - q) + gs::sum<"AB->A">(l);
    return gs::gradients(gs::sum(r * r), {k})[0];
  };
  if constexpr (SumFirst) {
    const auto c = sum();
    return loss(c, squares());
  } else {
    const auto q = squares();
    return loss(sum(), q);
  }
};
template <bool SumFirst>
using program = gs::program<three_readers<SumFirst>, mesh, in<"AB", P<none, "x">>, in<"AB", P<"x", none>>, gs::extent<'A', 1024>,
                            gs::extent<'B', 512>>;
template <bool SumFirst>
constexpr std::int64_t received() {
  return program<SumFirst>::plan.bytes_received(program<SumFirst>::plan.bind({{'A', 1024}, {'B', 512}}, std::array{4}));
}
static_assert(received<true>() == received<false>());
static_assert(program<true>::plan.collectives() == program<false>::plan.collectives());

}  // namespace
