// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The rule and the checks that softmax, layer_norm and cross_entropy share.
//
// Every other dim may be sharded without communication. If the last dim is sharded, they communicate one to three numbers per row.

#include <gshard/core/trace/builder.hpp>

#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

constexpr sharding_rule rows_rule(int rank) {
  sharding_rule r;
  r.in[0] = r.out[0] = counting(rank);
  return r;
}
constexpr bool check_rank(builder& b, symbol x, int least, std::string_view what) {
  if (!require_real(b, what, {x})) return false;
  if (x.rank() < least) b.fail(fault::rank_mismatch, what, {}, least, x.rank());
  return !b.failed();
}

}  // namespace detail

}}  // namespace gshard::v0
