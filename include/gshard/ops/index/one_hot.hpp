// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// One-hot rows, 1 at an index and 0 elsewhere: one_hot.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>

namespace gshard { inline namespace v0 {

namespace detail {
/// [I..., dim] of this type: 1 where ids[i...] is the index along the dim, else 0.
constexpr symbol emit_equal_index(symbol ids, int dim, dtype type) {
  builder& b = *ids.owner;
  if (b.failed()) return b.nothing();
  dim_list dims = ids.get().dims;
  dims.push_back(dim);
  const symbol index = emit_iota(b, dims, ids.rank());
  const symbol hit = emit_map_of(own_step<arithmetic::equal>, std::array<symbol, 2>{ids, index},
                                 std::array{counting(ids.rank()), counting(dims.size())}, index);
  return emit_cast(hit, type);
}
}  // namespace detail

/// one_hot<"E">(ids)[i..., e] = 1 where ids[i...] = e, else 0. one_hot<"E", double>(ids): in another element type than float. An id outside
/// the dim has a row of zeros. Integers have no gradient.
/// Shapes: int32 ids [I...] -> [I..., E].
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letter; that ids are int32.
/// Throws: nothing.
/// @see gather, iota
template <fixed_string Letter, class T = float>
constexpr symbol one_hot(here ids) {
  builder& b = *ids.owner;
  if (!b.has(ids)) return b.nothing();
  if (ids.get().type != dtype::i32) b.fail_type("one_hot", 0, ids.get().type, only(dtype::i32));
  const dim_list added = b.dims_of(Letter.view(), "one_hot");
  if (ids.get().dims.full() || added.size() != 1) b.fail(fault::rank_mismatch, "one_hot", {}, 1, added.size());
  return b.failed() ? b.nothing() : detail::emit_equal_index(ids, added[0], dtype_of<T>);
}

template <fixed_string Letter = "", class T = float, class... Given>
  requires(detail::left_out<Letter> || !detail::tensors<1>::fits<Given...>)
constexpr auto one_hot(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: one_hot<\"E\">(ids) takes the letter of a dim and one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
