// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reshapes (merge_dims, split_dim, expand_dims, squeeze, rename_dims) and sharding annotations (annotate, split, replicate, may_move).

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
/// The window of two merged dims: block [a, b) of the first is [a * second, b * second) of the merged dim.
constexpr int merged_rows(builder& b, int first, int second) {
  window w;
  w.over = std::int16_t(first);
  w.stride_dim = w.taps_dim = std::int16_t(second);
  return b.row_of(w);
}

/// Builds a reshape dim by dim. Kept dims keep their sharding; removed and added dims are unsharded.
class reshaper {
 public:
  constexpr explicit reshaper(symbol x) : x_(x) {}

  /// Keeps the next dim of x, as `dim`.
  constexpr void keep(int dim) {
    rule_.in[0].push_back(factor_);
    rule_.out[0].push_back(factor_++);
    dims_.push_back(dim);
  }
  constexpr void keep_until(int d) {
    while (rule_.in[0].size() < d) keep(x_.get().dims[rule_.in[0].size()]);
  }
  /// Removes the next dim of x.
  constexpr void lose() {
    rule_.block(factor_);
    rule_.in[0].push_back(factor_++);
  }
  /// Adds a dim.
  constexpr void gain(int dim) {
    rule_.block(factor_);
    rule_.out[0].push_back(factor_++);
    dims_.push_back(dim);
  }
  constexpr void read_through(int at, int row) {
    for (int d = 0; d < x_.rank(); ++d) rule_.windows.push_back(d == at ? row : 0);
  }
  constexpr symbol emit(int at, reshape_kind change, int window = 0) {
    builder& b = *x_.owner;
    keep_until(x_.rank());
    return {&b, b.add_node(op::reshape, {x_.id}, rule_, {.dim = at, .window = window, .change = change}, {{dims_, x_.get().type}})};
  }

 private:
  symbol x_;
  sharding_rule rule_;
  dim_list dims_;
  int factor_ = 0;
};

/// True if x has dims at, ..., at + count - 1; reports if not.
constexpr bool check_dims(symbol x, int at, int count, std::string_view operation) {
  builder& b = *x.owner;
  if (!b.failed() && (at < 0 || at + count > x.rank()))
    b.fail(fault::no_such_dim, operation, {}, at < 0 || count == 0 ? at : at + count - 1, x.rank());
  return !b.failed();
}
constexpr bool check_room(symbol x, std::string_view operation) {
  if (x.rank() == max_rank) x.owner->fail(fault::rank_mismatch, operation, {}, max_rank - 1, x.rank());
  return !x.owner->failed();
}

/// Merges dim `at` and the next one into `whole`, whose extent is their product.
constexpr symbol emit_merge(symbol x, int at, int whole) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 2, "merge_dims")) return b.nothing();
  reshaper r(x);
  r.keep_until(at);
  r.keep(whole);
  r.lose();
  return r.emit(at, reshape_kind::merge, merged_rows(b, x.get().dims[at], x.get().dims[at + 1]));
}
constexpr symbol emit_merge(symbol x, int at) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 2, "merge_dims")) return b.nothing();
  return emit_merge(x, at, b.product_dim(x.get().dims[at], x.get().dims[at + 1]));
}

/// Splits dim `at` into these two, whose product is its extent.
constexpr symbol emit_split(symbol x, int at, int first, int second) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 1, "split_dim") || !check_room(x, "split_dim")) return b.nothing();
  const int whole = x.get().dims[at];
  const std::int64_t extent = b.derived_known_extent(whole), one = b.derived_known_extent(first), other = b.derived_known_extent(second);
  if (const std::int64_t product = saturating_product(one, other); std::min({extent, one, other}) >= 0 && product != extent) {
    const char letter = b.program.dims[std::size_t(whole)].letter;
    b.fail(fault::not_the_product, "split_dim", {&letter, letter ? 1u : 0u}, diagnostic::nearest(extent), diagnostic::nearest(product));
    return b.nothing();
  }
  reshaper r(x);
  b.splits.push_back({whole, first, second});
  r.keep_until(at);
  r.keep(first);
  r.gain(second);
  r.read_through(at, merged_rows(b, first, second));
  return r.emit(at, reshape_kind::split);
}
constexpr symbol emit_split(symbol x, int at) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 1, "split_dim")) return b.nothing();
  const dim whole = b.program.dims[std::size_t(x.get().dims[at])];
  if (whole.what != dim::kind::product) {
    b.fail(fault::dims_differ, "split_dim", {}, 0, at);
    return b.nothing();
  }
  return emit_split(x, at, whole.first, whole.second);
}

/// Adds a dim of extent 1 before dim `at`.
constexpr symbol emit_expand_dims(symbol x, int at, int one) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 0, "expand_dims") || !check_room(x, "expand_dims")) return b.nothing();
  reshaper r(x);
  r.keep_until(at);
  r.gain(one);
  return r.emit(at, reshape_kind::insert);
}
/// Removes dim `at`, whose extent is 1.
constexpr symbol emit_squeeze(symbol x, int at) {
  builder& b = *x.owner;
  if (!check_dims(x, at, 1, "squeeze")) return b.nothing();
  reshaper r(x);
  r.keep_until(at);
  r.lose();
  return r.emit(at, reshape_kind::remove);
}

/// x with these dims, whose extents are equal to its own.
constexpr symbol emit_rename(symbol x, const dim_list& dims) {
  reshaper r(x);
  for (int d = 0; d < x.rank(); ++d) r.keep(dims[d]);
  return r.emit(0, reshape_kind::rename);
}

/// The gradient: dy with the dims of x.
constexpr symbol emit_reshape_back(const node& n, symbol x, symbol dy) {
  const int at = n.attr.dim;
  const dim_list& dims = x.get().dims;
  switch (n.attr.change) {
    case reshape_kind::merge: return emit_split(dy, at, dims[at], dims[at + 1]);
    case reshape_kind::split: return emit_merge(dy, at, dims[at]);
    case reshape_kind::insert: return emit_squeeze(dy, at);
    case reshape_kind::rename: return emit_rename(dy, dims);
    case reshape_kind::remove:
    case reshape_kind::unchanged: break;
  }
  return emit_expand_dims(dy, at, dims[at]);
}
}  // namespace detail

/// merge_dims<1>(x): dims 1 and 2 as one. The reshape moves no data on a device.
/// Shapes: [G,B,T,M] -> [G,B*T,M].
/// Communicates: nothing if only the first of the two dims is sharded into equal blocks. Uneven blocks exchange elements at their borders.
/// The second dim is replicated first.
/// Compile time: that x has both dims.
/// Throws: nothing.
/// @see split_dim
template <int At>
constexpr symbol merge_dims(here x) {
  return detail::emit_merge(x, At);
}
/// merge_dims(x, 1): the same with a dim that is known at run time.
constexpr symbol merge_dims(here x, int at) { return detail::emit_merge(x, at); }

/// split_dim<1>(x): splits a merged dim into the two that it was made of. split_dim<1>(x, "BT"): splits any dim into the dims of two
/// letters.
/// Shapes: [G,B*T,M] -> [G,B,T,M].
/// Communicates: nothing, or, if blocks of the merged dim are not blocks of the first dim, an exchange of their borders.
/// Compile time: that x has the dim; that it was merged, or that two letters are given; the product, where extents are known.
/// Throws: `gshard::error` when the program is bound, if the extent of the dim is not the product of the two.
/// @see merge_dims
template <int At>
constexpr symbol split_dim(here x) {
  return detail::emit_split(x, At);
}
/// split_dim<1>(x, "BT"): the same for any dim, as the dims of two letters.
template <int At>
constexpr symbol split_dim(here x, std::string_view letters) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const dim_list two = b.dims_of(letters, "split_dim");
  if (two.size() != 2) b.fail(fault::rank_mismatch, "split_dim", {}, 2, two.size());
  return b.failed() ? b.nothing() : detail::emit_split(x, At, two[0], two[1]);
}
/// split_dim(x, 1): the same with a dim that is known at run time. split_dim(x, 1, 4, 8): any dim as dims of these extents.
constexpr symbol split_dim(here x, int at) { return detail::emit_split(x, at); }
constexpr symbol split_dim(here x, int at, std::int64_t first, std::int64_t second) {
  builder& b = *x.owner;
  if (first < 0) b.fail_range("split_dim", "first", first);
  if (second < 0) b.fail_range("split_dim", "second", second);
  const int outer = b.fixed_dim(first), inner = b.fixed_dim(second);
  return b.failed() ? b.nothing() : detail::emit_split(x, at, outer, inner);
}

/// expand_dims<1>(x), expand_dims(x, 1): x with a dim of extent 1 before dim 1.
/// Shapes: [B,T] -> [B,1,T].
/// Communicates: nothing.
/// Compile time: that x has as many dims.
/// Throws: nothing.
/// @see squeeze
constexpr symbol expand_dims(here x, int at) {
  return x.owner->failed() ? x.owner->nothing() : detail::emit_expand_dims(x, at, x.owner->fixed_dim(1));
}
template <int At>
constexpr symbol expand_dims(here x) {
  return expand_dims(x, At);
}
/// squeeze<1>(x): x without dim 1.
/// Shapes: [B,1,T] -> [B,T].
/// Communicates: nothing.
/// Compile time: that x has the dim; that its extent is 1 where it is known.
/// Throws: `gshard::error` when the program is bound, if the extent is not 1.
/// @see expand_dims
template <int At>
constexpr symbol squeeze(here x) {
  return detail::emit_squeeze(x, At);
}
/// squeeze(x, 1): the same with a dim that is known at run time.
constexpr symbol squeeze(here x, int at) { return detail::emit_squeeze(x, at); }

/// rename_dims<"BK">(x): x with the dims of these letters; '_' keeps a dim. It declares that two dims are one, so that tensors with other
/// letters but equal extents match. xarray and PyTorch's named tensors call it rename.
/// Shapes: [B,M] -> [B,K], where K has the extent of M.
/// Communicates: nothing.
/// Compile time: the number of letters; that extents are equal, where both are known.
/// Throws: `gshard::error` when the program is bound, if extents differ. The message has both dims.
/// @see merge_dims, split_dim
constexpr symbol rename_dims(here x, std::string_view letters) {
  builder& b = *x.owner;
  if (!b.has(x)) return b.nothing();
  if (int(letters.size()) != x.rank()) b.fail(fault::rank_mismatch, "rename_dims", {}, int(letters.size()), x.rank());
  dim_list dims;
  for (int d = 0; d < x.rank() && !b.failed(); ++d) {
    const int own = x.get().dims[d];
    const std::string_view letter = letters.substr(std::size_t(d), 1);
    const dim_list named = letter == "_" ? dim_list{} : b.dims_of(letter, "rename_dims");
    dims.push_back(named.empty() ? own : named[0]);
    const std::int64_t before = b.known_extent(own), after = b.known_extent(dims[d]);
    if (before >= 0 && after >= 0 && before != after) b.fail(fault::dims_differ, "rename_dims", letter, 0, d);
  }
  return b.failed() ? b.nothing() : detail::emit_rename(x, dims);
}
template <fixed_string Letters>
constexpr symbol rename_dims(here x) {
  return rename_dims(x, Letters.view());
}

namespace detail {
/// op::annotate: an alias of x with the sharding `layout` and the wire format of x. Propagation decides open dims. Without `spreads`,
/// operand and result have different factors, so that no sharding propagates through it.
constexpr symbol emit_annotate(symbol x, const sharding layout, int priority = 0, bool may_move = false, bool spreads = true) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = counting(x.rank());
  rule.out[0] = counting(x.rank(), spreads ? 0 : x.rank());
  const std::int32_t id = b.add_node(op::annotate, {x.id}, rule, {.may_move = may_move}, {{x.get().dims, x.get().type}});
  b.program.at(id).layout = layout;
  b.program.at(id).priority = std::uint8_t(priority);
  b.program.at(id).bf16_on_wire = b.program.at(x.id).bf16_on_wire;
  b.program.at(id).fits_bf16 = b.program.at(x.id).fits_bf16;
  return {&b, id};
}
}  // namespace detail

/// annotate<"G@expert,S,M">(x): x with this sharding (arXiv 2006.16668 section 3.2). The names of dims are those of this call alone. Its
/// gradient has the same sharding. Where annotations conflict during propagation, the one with the smaller `priority` (0 to 255) holds.
/// annotate<P<"expert", none, none>>(x) is the same, and annotate(x, named) with a `named_sharding`, whose axes are known at run time.
/// Shapes: any -> the same.
/// Communicates: the cheapest reshard of x to this sharding; nothing if x has it already.
/// Compile time: axes and rank of the spec; the range of `priority`.
/// Throws: nothing.
/// @see split, replicate, may_move, dims_text
constexpr symbol annotate(here x, const named_sharding& named, int priority = 0) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  if (named.rank != x.rank()) b.fail(fault::rank_mismatch, "annotate", {}, named.rank, x.rank());
  for (int i = 0; i < named.count && !b.failed(); ++i)
    if (const int d = named.items[std::size_t(i)].dim; d >= named.rank) b.fail(fault::rank_mismatch, "annotate", {}, d + 1, x.rank());
  if (b.failed()) return b.nothing();
  const sharding s = b.resolve(named, "annotate");
  if (!b.failed() && s.partial) b.fail(fault::incomplete_output, "annotate");
  if (priority < 0 || priority > 255) b.fail_range("annotate", "priority", priority);
  if (b.failed()) return b.nothing();
  return detail::emit_annotate(x, s, priority);
}
template <class Spec>
constexpr symbol annotate(here x, Spec = {}, int priority = 0) {
  return annotate(x, Spec::named, priority);
}
// auto: the assertion fires before the model is evaluated
template <fixed_string Dims>
constexpr auto annotate(here x, int priority = 0) {
  constexpr dims_text text{Dims.view()};
  constexpr bool states_sharding = text.is_valid() && text.is_sharded;
  static_assert(states_sharding,
                "gshard: annotate<\"G@expert,S,M\">(x) takes all dims with commas between them, and the mesh axes that shard them");
  if constexpr (states_sharding) return annotate(x, text.sharding, priority);
  else return detail::refused(x);
}

/// replicate(x): x, whole on every device (arXiv 2006.16668 section 3.2).
/// Shapes: any -> the same.
/// Communicates: an all_gather if x is sharded, an all_reduce if it is a partial sum.
/// Compile time: nothing.
/// Throws: nothing.
/// @see annotate
constexpr symbol replicate(here x) {
  return x.owner->failed() ? x.owner->nothing() : detail::emit_annotate(x, sharding::replicated(x.rank()));
}

/// split<"expert">(x, dim): x, sharded along one dim over mesh axes, major to minor, and whole along the others (section 3.2).
/// Shapes: any -> the same.
/// Communicates: the cheapest reshard of x to this sharding.
/// Compile time: that the mesh has the axes, and x the dim.
/// Throws: nothing.
/// @see annotate
template <fixed_string... Axes>
  requires(sizeof...(Axes) > 0)
constexpr symbol split(here x, int dim) {
  builder& b = *x.owner;
  if (b.failed() || !detail::check_dim(x, dim, "split")) return b.nothing();
  named_sharding named;
  named.rank = x.rank();
  (named.add(Axes.view(), dim), ...);
  const sharding s = b.resolve(named, "split");
  return detail::emit_annotate(x, s);
}

/// propagation_barrier(x): x as a barrier of propagation: shardings do not spread through it in either direction. Its gradient is also a
/// barrier.
/// Shapes: any -> the same.
/// Communicates: the reshard of x where it is used, also in `visible` and `strict` programs.
/// Compile time: nothing.
/// Throws: nothing.
/// @see annotate, may_move
constexpr symbol propagation_barrier(here x) {
  return x.owner->failed() ? x.owner->nothing() : detail::emit_annotate(x, sharding::unconstrained(x.rank()), 0, true, false);
}

/// may_move(x): x, which may be resharded where it is used, also in `visible` and `strict` programs.
/// Shapes: any -> the same.
/// Communicates: nothing itself.
/// Compile time: nothing.
/// Throws: nothing.
/// @see visible, strict
constexpr symbol may_move(here x) {
  return x.owner->failed() ? x.owner->nothing() : detail::emit_annotate(x, sharding::unconstrained(x.rank()), 0, true);
}

namespace detail {
inline constexpr int no_dim = -2147483647;

/// annotate<Spec>(x, Spec{}, priority); with Spec = void, annotate(x, spec, priority).
template <class Spec, class... Given>
inline constexpr bool annotates = is_spec<Spec> && call<1, symbol, Spec, int>::template fits<Given...>;
template <class... Given>
inline constexpr bool annotates<void, Given...> = false;
template <class X, class Spec, class... Priority>
inline constexpr bool annotates<void, X, Spec, Priority...> = annotates<Spec, X, Spec, Priority...>;
}  // namespace detail

template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto merge_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: merge_dims<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto expand_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: expand_dims<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto squeeze(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: squeeze<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim
               ? !detail::call<2, symbol, int>::fits<Given...> && !detail::call<4, symbol, int, int, int>::fits<Given...>
               : !detail::call<1, symbol, std::string_view>::fits<Given...>)
constexpr auto split_dim(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: split_dim<1>(x, \"BT\") takes a dim, one tensor of a program and, unless the dim was merged, two letters");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(Letters.view().empty() ? !detail::call<2, symbol, std::string_view>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto rename_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: rename_dims<\"BK\">(x) takes a letter for each dim and one tensor of a program");
  return detail::refused(given...);
}
GSHARD_TAKES(replicate, (detail::tensors<1>::fits<Given...>), "replicate(x) takes one tensor of a program")
GSHARD_TAKES(may_move, (detail::tensors<1>::fits<Given...>), "may_move(x) takes one tensor of a program")
GSHARD_TAKES(propagation_barrier, (detail::tensors<1>::fits<Given...>), "propagation_barrier(x) takes one tensor of a program")
template <class Spec = void, class... Given>
  requires(!detail::annotates<Spec, Given...> &&
           !(std::is_void_v<Spec> && detail::call<2, symbol, named_sharding, int>::fits<Given...>))
constexpr auto annotate(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: annotate<P<\"data\", none>>(x) takes a partition spec and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Dims, class... Given>
  requires(!detail::call<1, symbol, int>::fits<Given...>)
constexpr auto annotate(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: annotate<\"B@data,M\">(x) takes dims with their mesh axes and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string... Axes, class... Given>
  requires(sizeof...(Axes) == 0 || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto split(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: split<\"data\">(x, dim) takes mesh axes, a tensor of a program and a dim");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
