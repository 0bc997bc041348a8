// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/reduce/argmax.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol i = gs::argmax<"abc->ca">(input(b, "GSE"));
  return has_dims(i, "EG") && i.get().type == dtype::i32 && b.program.nodes.back().attr.dim == 1;
}));
static_assert(fails(fault::rank_mismatch, "abc->a", [](builder& b, auto&) { gs::argmax<"abc->a">(input(b, "GSE")); }));
static_assert(fails(fault::dims_differ, "aab->b", [](builder& b, auto&) { gs::argmax<"aab->b">(input(b, "ABA")); }));
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::argmax<"aab->b">(input(b, "AAB")), "B"); }));
// An equation that is known at run time gives the same nodes.
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "GSE");
      gs::argmax<"abc->ca">(x), gs::argmin<"abc->ab">(x);
    },
    [](builder& b) {
      const symbol x = input(b, "GSE");
      gs::argmax("abc->ca", x), gs::argmin("abc->ab", x);
    }));
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::argmax("ab>a", input(b, "AB")); }));
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::argmin("ab>a", input(b, "AB")); }));

}  // namespace
