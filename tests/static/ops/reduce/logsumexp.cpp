// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/reduce/logsumexp.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::logsumexp<"abc->ab">(input(b, "GSE")), "GS"); }));
static_assert(fails(fault::dims_differ, "aab->b", [](builder& b, auto&) { gs::logsumexp<"aab->b">(input(b, "ABA")); }));
// An equation that is known at run time gives the same nodes.
static_assert(tracing::alike([](builder& b) { gs::logsumexp<"abc->a">(input(b, "GSE")); },
                             [](builder& b) { gs::logsumexp("abc->a", input(b, "GSE")); }));
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::logsumexp("ab>a", input(b, "AB")); }));

}  // namespace
