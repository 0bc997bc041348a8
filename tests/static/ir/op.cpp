// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/op.hpp>

#include <cstddef>

namespace gs = gshard;
using gs::op;

namespace {

static_assert(gs::op_table.size() == std::size_t(op::count_));
static_assert(gs::name(op::einsum) == "einsum" &&
              gs::name(op::combine_weight_grad) == "combine_weight_grad" &&
              gs::name(op::collective_permute) == "collective_permute");

// Each name names one operation.
static_assert([] {
  for (const gs::op_traits& a : gs::op_table)
    for (const gs::op_traits& b : gs::op_table)
      if (a.name.empty() || ((a.name == b.name) != (a.kind == b.kind))) return false;
  return true;
}());

// What moves data between devices, and what moves nothing at all.
constexpr auto count_if = [](auto is) {
  int n = 0;
  for (const gs::op_traits& t : gs::op_table) n += is(t);
  return n;
};
static_assert(count_if([](const gs::op_traits& t) { return t.collective; }) == 6);
static_assert(gs::traits(op::all_gather).collective && gs::traits(op::all_reduce).collective &&
              gs::traits(op::reduce_scatter).collective && gs::traits(op::all_to_all).collective &&
              gs::traits(op::collective_permute).collective && gs::traits(op::looped_einsum).collective);
static_assert(!gs::traits(op::slice).collective);
static_assert(count_if([](const gs::op_traits& t) { return t.alias; }) == 2);
static_assert(gs::traits(op::reshape).alias && gs::traits(op::annotate).alias);

}  // namespace
