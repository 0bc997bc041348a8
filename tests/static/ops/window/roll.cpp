// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/roll.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault;
using tracing::fails, tracing::input;

namespace {

static_assert(fails(fault::no_such_dim, "roll", [](builder& b, auto&) { gs::roll(input(b, "AB"), {{-1, 1}}); }));
static_assert(fails(fault::no_such_dim, "roll", [](builder& b, auto&) { gs::roll(input(b, "AB"), 2, 1); }));

}  // namespace
