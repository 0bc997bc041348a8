// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/ops/loop/scan.hpp>

#include "../../tracing.hpp"

#include <array>
#include <tuple>

// The structure of the gradient of a scan. Programs that run check its numbers.
namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::einsum, gs::symbol;
using tracing::count, tracing::has_dims, tracing::input;

namespace {

// A second loop, which copies the body once.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol xs = input(b, "TBM"), x = input(b, "BM"), w = input(b, "MM");
  const auto [last, all] = gs::scan(
      [w](symbol, symbol s, symbol row) {
        const symbol next = einsum<"bm,mn->bn">(s, w) * row;
        return std::tuple(next, next);
      },
      x, xs);
  const gs::list<symbol> d = gs::gradients(gs::sum(last) + gs::sum(all), std::array{xs, x, w});
  return has_dims(d[0], "TBM") && has_dims(d[1], "BM") && has_dims(d[2], "MM") && b.program.while_loops == 2 && b.scans.size() == 1 &&
         count(b.program, op::loop_begin) == 2 && b.program.nodes.back().kind != op::carry;
}));
// No second loop if no gradient passes through the scan.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = input(b, "A");
  const symbol z = gs::scan<2>([](symbol, symbol s) { return s * s; }, y);
  gs::gradients(gs::sum(gs::stop_gradient(z) * x), std::array{x, y});
  gs::gradients(gs::sum(z * x), std::array{x});
  return count(b.program, op::loop_begin) == 1;
}));
// A scan in the body has its own record in the copy.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A");
  const symbol y = gs::scan<2>([](symbol, symbol s) { return gs::scan<3>([](symbol, symbol u) { return u * u; }, s); }, x);
  gs::gradients(gs::sum(y), std::array{x});
  return b.scans.size() == 3 && count(b.program, op::loop_begin) == 5 && b.program.while_loops == 5;
}));

}  // namespace
