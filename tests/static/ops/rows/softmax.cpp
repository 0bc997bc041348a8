// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/softmax.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault;
using tracing::blocked, tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::softmax(input(b, "ABC")), "ABC") && blocked(b) == 0; }));
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::softmax(input(b, "A")), "A"); }));
static_assert(fails(fault::rank_mismatch, "softmax", [](builder& b, auto&) { gs::softmax(input(b, "")); }));

}  // namespace
