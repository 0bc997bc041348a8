// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/spec.hpp>
#include <gshard/trace/builder.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// Block [a, b) of the first of two dims, merged with the second, is [a * second, b * second) of the two together.
constexpr int merged_rows(builder& b, int first, int second) {
  window w;
  w.over = std::int16_t(first);
  w.stride_dim = w.taps_dim = std::int16_t(second);
  return b.row_of(w);
}

/// op::reshape. Attributes: integer[0] = the dim, integer[1] = 1 to merge it with the next one, -1 to take it apart again; of a merger
/// integer[2] = the window through which the first dim reads the result.
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
  attributes attr;
  attr.integer = {at, direction, 0};
  if (direction > 0) {
    keep(at);
    dims.set(at, b.product_dim(before[at], before[at + 1]));
    blocked(loops.in[0]);
    attr.integer[2] = merged_rows(b, before[at], before[at + 1]);
  } else {
    const dim whole = b.program.dims[std::size_t(before[at])];
    if (whole.what != dim::kind::product) {
      b.fail(fault::dims_differ, "split_dim", {}, 0, at);
      return b.nothing();
    }
    keep(at);
    dims.set(at, whole.first);
    dims.push_back(whole.second);
    blocked(loops.out[0]);
    for (int d = 0; d < rank; ++d) loops.windows.push_back(d == at ? merged_rows(b, whole.first, whole.second) : 0);
  }
  for (int d = at + (direction > 0 ? 2 : 1); d < rank; ++d) keep(d);
  return {&b, b.add_node(op::reshape, {x.id}, loops, attr, {{dims, x.get().type}})};
}
}  // namespace detail

/// merge_dims<1>: [G,B,T,M] -> [G,B*T,M]. No data moves on a device. The first of the two dims may be cut, the second is whole there;
/// where blocks of the first are not blocks of the two together, their borders are exchanged.
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
