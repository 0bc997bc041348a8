// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::partial;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// If only an annotation reads a tensor, it is made with that sharding: scattered if it is sharded.
inline constexpr auto cut = [](auto&, auto x, auto w) { return gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w)); };
using scattered = gs::program<cut, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>;
static_assert(scattered::plan.count(op::reduce_scatter) == 1 && scattered::plan.collectives() == 1);

// Moves that can be combined start once. If this makes a strategy no worse in any respect, it is chosen, unless moves may not be combined.
template <class... More>
using together = gs::program<cut, gs::mesh<gs::axis<"x", 4>>, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, gs::extent<'A', 8>,
                             gs::extent<'B', 4>, gs::extent<'C', 8>, More...>;
static_assert(together<>::plan.count(op::all_to_all) == 1 && together<>::plan.collectives() == 1 && soundness::is_sound(together<>::plan));
static_assert(together<gs::combine_up_to<0>>::plan.count(op::reduce_scatter) == 1 &&
              together<gs::combine_up_to<0>>::plan.collectives() == 1);

}  // namespace
