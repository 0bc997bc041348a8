// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/row_blocks.hpp>
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

#include <array>

namespace gs = gshard;
using gs::builder, gs::none, gs::P, gs::symbol;
using tracing::has_dims, tracing::input;

namespace {

// Rows keep the sharding of x without its last dim. Maps are sharded as x.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol given = input(b, "AB", P<none, "x">{});
  gs::detail::decomposer d(b.program, b.mesh);
  gs::detail::row_blocks r(d);
  const symbol x{&d.owner(), given.id}, mean = r.mean_of_rows(x), total = r.sum(x, r.last(x));
  const symbol y = r.map(gs::undifferentiated<[](auto v, auto m) { return v - m; }, 2>, std::array{x, mean});
  return has_dims(mean, "A") && mean.get().layout[0].empty() && has_dims(total, "B") && !total.get().layout[0].empty() &&
         has_dims(y, "AB") && y.get().layout == x.get().layout;
}));

}  // namespace
