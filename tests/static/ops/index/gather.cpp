// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/index/gather.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Rows, ids and the model dim may be sharded. The result lacks the rows.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::gather(input(b, "VM"), input(b, "GBS", dtype::i32));
  const gs::sharding_rule& r = b.program.nodes.back().rule;
  return has_dims(y, "GBSM") && r.blocked == 0 && !r.out[0].contains(r.in[0][0]) &&
         r.in[0][1] == r.out[0].back() && tracing::reads(r.in[1], {0, 1, 2});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::gather(input(b, "VM"), input(b, "", dtype::i32)), "M");
}));
static_assert(tracing::wrong_type("gather", 1, "f32", "i32",
                                  [](builder& b, auto&) { gs::gather(input(b, "VM"), input(b, "B")); }));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::gather(input(b, "V"), input(b, "B", dtype::i32)), "B") &&
         has_dims(gs::gather(input(b, "VMN"), input(b, "AB", dtype::i32), 1), "VABN") &&
         has_dims(gs::scatter_add(input(b, "VMN"), input(b, "AB", dtype::i32), input(b, "VABN"), 1), "VMN");
}));
static_assert(fails(fault::no_such_dim, "gather",
                    [](builder& b, auto&) { gs::gather(input(b, "VM"), input(b, "B", dtype::i32), 2); }));
static_assert(fails(fault::dims_differ, "scatter_add", [](builder& b, auto&) {
  gs::scatter_add(input(b, "VM"), input(b, "B", dtype::i32), input(b, "AM"));
}));
static_assert(fails(fault::rank_mismatch, "gather",
                    [](builder& b, auto&) { gs::gather(input(b, "VM"), input(b, "ABCDEFGH", dtype::i32)); }));

// Batch dims: the same letters in table, ids and result.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::gather(input(b, "BAVM"), input(b, "BS", dtype::i32), 2, 1);
  const gs::sharding_rule& r = b.program.nodes.back().rule;
  return has_dims(y, "BASM") && r.in[0][0] == r.out[0][0] && r.in[1][0] == r.out[0][0] && r.in[1][1] == r.out[0][2] && r.blocked == 0 &&
         has_dims(gs::gather(input(b, "BV"), input(b, "B", dtype::i32), 1, 1), "B") &&
         has_dims(gs::scatter_add(input(b, "BAVM"), input(b, "BS", dtype::i32), input(b, "BASM"), 2, 1), "BAVM");
}));
static_assert(fails(fault::dims_differ, "gather",
                    [](builder& b, auto&) { gs::gather(input(b, "BV"), input(b, "AS", dtype::i32), 1, 1); }));
static_assert(tracing::out_of_range("gather", "batch, dim", {1, 0},
                                    [](builder& b, auto&) { gs::gather(input(b, "BV"), input(b, "BS", dtype::i32), 0, 1); }));
static_assert(tracing::out_of_range("gather", "batch, rank of ids", {1, 0},
                                    [](builder& b, auto&) { gs::gather(input(b, "BV"), input(b, "", dtype::i32), 1, 1); }));

}  // namespace
