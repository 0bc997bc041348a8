// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/spec.hpp>
#include <gshard/trace/builder.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// op::reshape. Attributes: integer[0] = the dim, integer[1] = 1 to merge it with the next one, -1 to take it apart again.
constexpr symbol emit_reshape(symbol x, int at, int direction) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const int rank = x.rank();
  const dim_list& before = x.get().dims;
  if (at < 0 || at + (direction > 0 ? 1 : 0) >= rank) b.fail(fault::rank_mismatch, "reshape", {}, at + (direction > 0 ? 2 : 1), rank);
  if (direction < 0 && rank == max_rank) b.fail(fault::rank_mismatch, "split_dim", {}, max_rank - 1, rank);
  if (b.failed()) return b.nothing();
  dim_list dims;
  rule loops;
  int factor = 0;
  const auto keep = [&](int d) {
    dims.push_back(before[d]);
    loops.in[0].push_back(factor);
    loops.out[0].push_back(factor++);
  };
  for (int d = 0; d < at; ++d) keep(d);
  const auto blocked = [&](short_list& list) {
    loops.block(factor);
    list.push_back(factor++);
  };
  if (direction > 0) {
    dims.push_back(b.product_dim(before[at], before[at + 1]));
    blocked(loops.in[0]);
    blocked(loops.in[0]);
    blocked(loops.out[0]);
  } else {
    const dim whole = b.program.dims[std::size_t(before[at])];
    if (whole.what != dim::kind::product) {
      b.fail(fault::dims_differ, "split_dim", {}, 0, at);
      return b.nothing();
    }
    dims.push_back(whole.first);
    dims.push_back(whole.second);
    blocked(loops.in[0]);
    blocked(loops.out[0]);
    blocked(loops.out[0]);
  }
  for (int d = at + (direction > 0 ? 2 : 1); d < rank; ++d) keep(d);
  attributes attr;
  attr.integer = {at, direction, 0};
  return {&b, b.add_node(op::reshape, {x.id}, loops, attr, {{dims, x.get().type}})};
}
}  // namespace detail

/// merge_dims<1>: [G,B,T,M] -> [G,B*T,M]. No data moves on a device; the two dims are whole there.
template <int At>
constexpr symbol merge_dims(symbol x) {
  return detail::emit_reshape(x, At, 1);
}
/// The reverse: takes a merged dim apart into the two it was made of.
template <int At>
constexpr symbol split_dim(symbol x) {
  return detail::emit_reshape(x, At, -1);
}

/// annotate<P<"expert", none>>(x): x, lying as the spec says: the paper's split / replicate / shard. The gradient lies likewise.
template <class Spec>
constexpr symbol annotate(symbol x, Spec = {}) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const sharding s = resolve(Spec::named, b.mesh, "annotate", b.program.problem);
  if (!b.failed() && Spec::rank != x.rank()) b.fail(fault::rank_mismatch, "annotate", {}, Spec::rank, x.rank());
  if (!b.failed() && s.partial) b.fail(fault::incomplete_output, "annotate");
  if (b.failed()) return b.nothing();
  rule loops;
  loops.in[0] = loops.out[0] = detail::counting(x.rank());
  const std::int32_t id = b.add_node(op::annotate, {x.id}, loops, {}, {{x.get().dims, x.get().type}});
  b.program.at(id).layout = s;
  return {&b, id};
}

}}  // namespace gshard::v0
