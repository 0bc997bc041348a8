// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/records.hpp>

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/shape.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::input;

namespace {

// A node that reads the operand of a broadcast is recorded with the broadcast tensor. A node that reads the tensor itself is not.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = input(b, "AB"), copies = gs::broadcast<"a,ab->ab">(x, y);
  static_cast<void>(y + y);
  const bool none = b.bypasses.empty();
  const symbol sum = y + copies;
  const gs::bypass& noted = b.bypasses.front();
  return none && b.bypasses.size() == 1 && noted.result == sum.id && noted.tensor == copies.id && noted.operand == 1 &&
         tracing::reads(noted.factors, {0, 1});
}));
// A split is recorded with its dims.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::split_dim(x, 1, 2, 3);
  const gs::split_dims& split = b.splits.front();
  return b.splits.size() == 1 && split.whole == x.get().dims[1] && split.first == y.get().dims[1] && split.second == y.get().dims[2];
}));
// A scan that is not in a program.
static_assert(gs::scan_record().begin == 0 && gs::scan_record().states.empty() && gs::bypass().result == -1);

}  // namespace
