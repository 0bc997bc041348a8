// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/reduce/reduce.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::reduce_max<"abc->ca">(input(b, "GSE"));
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "EG") && n.kind == gs::op::reduce && n.attr.combine == gs::reduction::max && n.rule.blocked == 0;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GSE");
  return has_dims(gs::reduce_min<"abc->">(x), "") && has_dims(gs::reduce_prod<"abc->b">(x), "S");
}));
static_assert(fails(fault::rank_mismatch, "ab->a", [](builder& b, auto&) { gs::reduce_max<"ab->a">(input(b, "A")); }));
// A letter that occurs twice is one dim: the reduction is along the diagonal.
static_assert(fails(fault::dims_differ, "aa->a", [](builder& b, auto&) { gs::reduce_max<"aa->a">(input(b, "AB")); }));
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::reduce_prod<"aba->ba">(input(b, "ABA")), "BA"); }));
static_assert(fails(fault::wrong_type, "ab->a", [](builder& b, auto&) { gs::reduce_min<"ab->a">(input(b, "AB", dtype::c64)); }));

// An equation that is known at run time gives the same nodes.
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "GSE");
      gs::reduce_max<"abc->ca">(x), gs::reduce_min<"abc->ca">(x), gs::reduce_prod<"abc->">(x);
    },
    [](builder& b) {
      const symbol x = input(b, "GSE");
      gs::reduce_max("abc->ca", x), gs::reduce_min("abc->ca", x), gs::reduce_prod("abc->", x);
    }));
// Every reduction has the same names and forms: an equation, an equation at run time, and none for all dims.
template <gs::reduction What>
constexpr void all_forms(builder& b) {
  const symbol x = input(b, "GSE");
  gs::reduce<"abc->ca">(x, What), gs::reduce("abc->b", x, What), gs::reduce(x, What);
}
#define GSHARD_TEST_FORMS(verb)                                         \
  [](builder& b) {                                                      \
    const symbol x = input(b, "GSE");                                   \
    gs::verb<"abc->ca">(x), gs::verb("abc->b", x), gs::verb(x);         \
  }
static_assert(tracing::alike(all_forms<gs::reduction::sum>, GSHARD_TEST_FORMS(reduce_sum)));
static_assert(tracing::alike(all_forms<gs::reduction::max>, GSHARD_TEST_FORMS(reduce_max)));
static_assert(tracing::alike(all_forms<gs::reduction::min>, GSHARD_TEST_FORMS(reduce_min)));
static_assert(tracing::alike(all_forms<gs::reduction::prod>, GSHARD_TEST_FORMS(reduce_prod)));
static_assert(tracing::alike(GSHARD_TEST_FORMS(sum), GSHARD_TEST_FORMS(reduce_sum)));
static_assert(tracing::alike(GSHARD_TEST_FORMS(mean), GSHARD_TEST_FORMS(reduce_mean)));
#undef GSHARD_TEST_FORMS
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::reduce_max("ab>a", input(b, "AB")); }));
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::reduce_min("ab>a", input(b, "AB")); }));
static_assert(fails(fault::malformed_equation, "ab>a", [](builder& b, auto&) { gs::reduce_prod("ab>a", input(b, "AB")); }));
static_assert(fails(fault::operand_count, "a,b->a", [](builder& b, auto&) { gs::reduce_max("a,b->a", input(b, "A")); }));

}  // namespace
