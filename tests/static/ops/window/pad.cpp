// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/pad.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::input, tracing::window_of_last;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::pad(input(b, "AB"), 0, 2, 1, 1);
  const gs::dim& d = b.program.dims[std::size_t(y.get().dims[0])];
  return d.what == gs::dim::kind::linear && d.first_times == 2 && d.number == 2 && window_of_last(b, 0).dilation == 2;
}));
static_assert(tracing::out_of_range("pad", "dim", {0}, [](builder& b, auto&) { gs::pad(input(b, "AB"), {{0, 1, 2}, {0, 3, 2}}); }));
static_assert(tracing::out_of_range("pad", "interior", {-1}, [](builder& b, auto&) { gs::pad(input(b, "AB"), 0, 1, 1, -1); }));

}  // namespace
