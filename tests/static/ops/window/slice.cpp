// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/slice.hpp>

#include "../../tracing.hpp"

#include <cstdint>
#include <limits>

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims, tracing::input, tracing::window_of_last;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::slice(input(b, "AB"), 1, 2, 9, 3);
  const gs::window& w = window_of_last(b, 1);
  return has_dims(y, "A#") && b.program.dims[std::size_t(w.over)].number == 3 && w.stride == 3 && w.low == 2 &&
         gs::window_row(b.program.nodes.back(), 0, 0) == 0;
}));
static_assert(tracing::out_of_range("slice", "start, stop", {3, 2}, [](builder& b, auto&) { gs::slice(input(b, "AB"), {{0, 1, 2}, {1, 3, 2}}); }));
static_assert(tracing::out_of_range("slice", "start, stop", {3, 2}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, 3, 2); }));
static_assert(tracing::out_of_range("slice", "start", {-1}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, -1, 2); }));
static_assert(tracing::out_of_range("slice", "stride", {0}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, 1, 2, 0); }));
static_assert(tracing::out_of_range("slice", "stop, extent of x", {5, 4},
                                    [](builder& b, auto&) { gs::slice(gs::slice(input(b, "AB"), 0, 0, 4), 0, 0, 5); }));
// A number that does not fit into int is reported as the nearest int.
static_assert(tracing::out_of_range("slice", "start", {std::numeric_limits<int>::max()}, [](builder& b, auto&) {
  gs::slice(input(b, "AB"), 0, std::int64_t(1) << 40, std::int64_t(1) << 41);
}));

}  // namespace
