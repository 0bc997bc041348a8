// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Mixture of experts without capacity slots, as in MegaBlocks (arXiv 2211.15841): each choice of a token is a row, rows are sorted by
// expert, and each expert computes only its own rows. Only the total number of rows of an expert group is limited.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/moe/routing/routing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The routing of a gating's choices, as rows, to their experts. Group n has the experts [n * E/N, (n + 1) * E/N). The numbers of groups
/// and of rows are settings of the model. They do not depend on the devices.
struct expert_row_routing {
  symbol rows;      ///< [N,G,R,M]: the tokens of each group, sorted by expert, zero in unused rows
  symbol count;     ///< [N,G,E/N]: the rows of each expert, int32
  symbol row;       ///< [G,S,K]: n * R + r if the choice has row r of group n, else -1
  symbol weight;    ///< [G,S,K]: the weights of the choices
  symbol overflow;  ///< [G] choices refused because the group had no row left
  int group_dim = 0, row_dim = 0, expert_dim = 0;  // the dims N, R, E/N
  axis_name axis{};  // shards the groups, unless it is empty
};

namespace detail {
/// True if these are the arguments of expert_param with a partition spec.
template <class... Given>
inline constexpr bool declares_for_experts = false;
template <class M, class Routing, class Name, class Letters, class... Entries, class Start>
inline constexpr bool declares_for_experts<M, Routing, Name, Letters, spec<Entries...>, Start> =
    call<2, parameter_scope, expert_row_routing>::fits<M, Routing> && declares<Name, Letters, spec<Entries...>, Start>;

/// The largest useful capacity factor of rows: for each token, a row for each of its k choices that may be in one group.
constexpr double most_rows(std::int64_t k, std::int64_t experts, int groups) {
  return double(experts < 0 ? k : std::min(k, (experts + groups - 1) / groups)) * groups;
}
/// True if x are rows of the routing. Otherwise the program fails.
constexpr bool require_rows(const expert_row_routing& r, symbol x, std::string_view verb) {
  builder& b = *x.owner;
  if (!b.has(r.rows) || !require_elements(b, op::grouped_product, verb, {x})) return false;
  const dim_list d = x.get().dims, rows = r.rows.get().dims;
  if (d.size() != 4) b.fail(fault::rank_mismatch, verb, {}, 4, d.size());
  else if (const int at = b.first_difference(d, rows); at < 3) b.fail(fault::dims_differ, verb, {}, 0, at);
  else if (x.get().type != r.rows.get().type) b.fail_type(verb, 0, x.get().type, only(r.rows.get().type));
  return !b.failed();
}
/// True if w, with `rank` dims, has a matrix or vector for each expert of the routing. Otherwise the program fails.
constexpr bool require_weights(const expert_row_routing& r, symbol w, int rank, std::string_view verb) {
  builder& b = *w.owner;
  if (!b.has(w)) return false;
  const value& of = w.get();
  if (of.rank() != rank) b.fail(fault::rank_mismatch, verb, {}, rank, of.rank());
  else if (of.dims[0] != r.group_dim || of.dims[1] != r.expert_dim) b.fail(fault::dims_differ, verb, {}, 1, of.dims[0] == r.group_dim);
  else if (of.type != r.rows.get().type) b.fail_type(verb, 1, of.type, only(r.rows.get().type));
  return !b.failed();
}
}  // namespace detail

/// send_rows<"expert">(gating, x, N, rows): sends each kept choice of the gating, as one row, to the group of its expert. The N groups are
/// sharded over the mesh axis; without an axis, the planner chooses their sharding. A group has R rows for the choices of each token group.
/// Rows go to all first choices in the order of tokens, then to all second choices, and so on. With rows = capacity{0}, the default, no
/// choice is lost, whatever the routing: R = S * min(k, E/N) if E is known at compile time, else S * k. A smaller factor bounds memory:
/// choices without a row are dropped and counted in `overflow`. Give the gating `capacity::unlimited()`; otherwise it drops choices itself.
/// Shapes: gating of G,S,E,C; x [G,S,M] -> see `expert_row_routing`, R = ceil(factor * S / N). If N does not divide E, the last groups have
/// fewer experts.
/// Communicates: if the axis is the most minor one that shards G, one ragged_all_to_all over it: first the counts, then the rows in use.
/// Compile time: that `gating` is the result of top_k_gating or top2_gating; ranks, dims and element types; that N is from 1 to E, if E is
/// known; that the mesh has the axis; that `rows` is in range.
/// Throws: `gshard::error`, if N * R exceeds the largest int32.
/// @see grouped_product, combine_rows, nn::moe
template <fixed_string Axis = "">
constexpr expert_row_routing send_rows(const gating_result& gating, here x, int groups, capacity rows = {0}) {
  constexpr std::string_view verb = "send_rows";
  builder& b = *x.owner;
  expert_row_routing r{b.nothing(), b.nothing(), b.nothing(), b.nothing(), b.nothing()};
  const detail::one_hot_parts choices = detail::choices_of_tokens(gating, x, groups, detail::takes_gatings::of_tokens, verb);
  if (b.failed()) return r;
  const dim_list combine = gating.combine.get().dims, slots = choices.slot.get().dims, d = x.get().dims;
  const int G = slots[0], S = slots[1];
  r.axis = axis_name(Axis.view());
  r.weight = choices.weight;
  r.group_dim = b.fixed_dim(groups);
  r.expert_dim = b.ratio_dim(1, combine[2], r.group_dim);
  const double most = detail::most_rows(b.known_extent(slots[2]), b.known_extent(combine[2]), groups);
  if (rows.factor == 0 || rows.factor > most) rows.factor = most;
  r.row_dim = detail::capacity_dim(b, rows, S, r.group_dim, S, verb, "rows");
  if (b.failed()) return r;
  using detail::route::dims;
  b.add_node(b.use(detail::expert_rows_rules), {choices.slot.id}, detail::route::expert_rows(),
             {.dims = dims({r.expert_dim, combine[3], r.row_dim})},
             {{slots, dtype::i32}, {dims({r.group_dim, G, r.expert_dim}), dtype::i32}, {dims({G}), x.get().type}});
  r.row = b.result_of_last(0);
  const symbol count = b.result_of_last(1);
  r.overflow = b.result_of_last(2);
  const symbol sent = detail::emit_dispatch(r.row, b.nothing(), x, detail::route::tokens, detail::route::rows_by_group,
                                            dims({r.group_dim, G, r.row_dim, d[2]}));
  r.rows = detail::shard_groups(r.axis, sent, verb);
  r.count = detail::shard_groups(r.axis, count, verb);
  return r;
}

namespace detail {
constexpr symbol add_expert_param(const parameter_scope& m, const expert_row_routing& r, std::string_view name, std::string_view letters,
                                  const named_sharding& of_one, const init_here& start) {
  builder& b = m.owner();
  if (!b.has(r.rows)) return b.nothing();
  const line_of_declaration here(b, start);
  const dim_list own = b.dims_of(letters, name);
  dim_list dims = route::dims({r.group_dim, r.expert_dim});
  for (int d = 0; d < own.size() && !b.failed(); ++d) {
    if (dims.full()) b.fail(fault::unknown_letter, name, letters);
    else dims.push_back(own[d]);
  }
  if (b.failed()) return b.nothing();
  named_sharding named;
  if (!r.axis.view().empty()) named.add(r.axis.view(), 0);
  for (int i = 0; i < of_one.count; ++i) {
    const named_sharding::item& entry = of_one.items[std::size_t(i)];
    named.add(entry.axis.view(), entry.dim < 0 ? entry.dim : entry.dim + 2);
  }
  named.rank = of_one.rank + 2;
  named.open = of_one.open << 2;
  return m.param_of_dims(name, dims, named, start);
}
}  // namespace detail

/// expert_param(m, routing, name, "M,F@model", init): a parameter with a matrix, or a vector, for each expert. The dims, and maybe their
/// sharding, are those after N and E/N; a spec may follow letters. Dims of letters alone are not sharded. The groups are sharded over the
/// axis of the routing.
/// Shapes: [N,E/N,...].
/// Communicates: nothing.
/// Compile time: as m.param.
/// Throws: nothing.
/// @see grouped_product
constexpr symbol expert_param(const parameter_scope& m, const expert_row_routing& r, std::string_view name, std::string_view dims,
                              init_here start) {
  const dims_text text(dims);
  return detail::add_expert_param(m, r, name, text.has_letters() ? text.letters.view() : dims, text.sharding, start);
}
template <class... Entries>
constexpr symbol expert_param(const parameter_scope& m, const expert_row_routing& r, std::string_view name, std::string_view letters,
                              spec<Entries...>, init_here start) {
  return detail::add_expert_param(m, r, name, letters, spec<Entries...>::named, start);
}

/// grouped_product(routing, x, w): y[n,g,r,f] = sum over m of x[n,g,r,m] * w[n,e,m,f], where e is the expert of row r. Unused rows are not
/// computed: they are zero.
/// Shapes: x [N,G,R,M], w [N,E/N,M,F] -> [N,G,R,F].
/// Communicates: nothing, if x and w are sharded alike. If M is sharded, the result is a partial sum.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see send_rows, add_to_rows, combine_rows
constexpr symbol grouped_product(const expert_row_routing& r, here x, symbol w) {
  builder& b = *x.owner;
  if (!detail::require_rows(r, x, "grouped_product") || !detail::require_weights(r, w, 4, "grouped_product")) return b.nothing();
  if (!b.same_extent(w.get().dims[2], x.get().dims[3])) b.fail(fault::dims_differ, "grouped_product", {}, 1, 2);
  if (b.failed()) return b.nothing();
  return detail::emit_grouped_product(x, w, r.count, false, b.options.bf16_products && x.get().type == dtype::f32);
}

/// add_to_rows(routing, x, bias): x[n,g,r,f] + bias[n,e,f], where e is the expert of row r. Unused rows stay as they are.
/// Shapes: x [N,G,R,F], bias [N,E/N,F] -> [N,G,R,F].
/// Communicates: nothing, if x and bias are sharded alike.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see grouped_product
constexpr symbol add_to_rows(const expert_row_routing& r, here x, symbol bias) {
  builder& b = *x.owner;
  if (!detail::require_rows(r, x, "add_to_rows") || !detail::require_weights(r, bias, 3, "add_to_rows")) return b.nothing();
  if (!b.same_extent(bias.get().dims[2], x.get().dims[3])) b.fail(fault::dims_differ, "add_to_rows", {}, 1, 2);
  if (b.failed()) return b.nothing();
  const dim_list rows = x.get().dims, of_ones = detail::route::dims({rows[0], rows[1], rows[2], b.fixed_dim(1)});
  const symbol ones = detail::emit_constant(b, detail::pointwise_constant<1>, of_ones, x.get().type);
  return x + detail::emit_grouped_product(ones, detail::emit_expand_dims(bias, 2, of_ones[3]), r.count, false, false);
}

/// combine_rows(routing, h): the weighted sums of the results of each token's experts, in the order of its choices. Bits do not depend on
/// the number of devices that hold the experts.
/// Shapes: h [N,G,R,M] -> [G,S,M], zero where a token has no expert.
/// Communicates: if the axis of the groups is the most minor one that shards G, one all_to_all over it. Unused rows are not sent if h is
/// surely zero there: results of grouped_product, their sums, positive multiples and casts, and add_to_rows of these.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see send_rows
constexpr symbol combine_rows(const expert_row_routing& r, here h) {
  builder& b = *h.owner;
  if (!detail::require_rows(r, h, "combine_rows")) return b.nothing();
  const dim_list tokens = r.row.get().dims;
  const symbol results = detail::shard_groups(r.axis, h, "combine_rows");
  return detail::emit_combine(r.row, r.weight, results, detail::route::rows_by_group, detail::route::tokens,
                              detail::route::dims({tokens[0], tokens[1], h.get().dims[3]}));
}

template <fixed_string Axis = "", class... Given>
  requires(!detail::call<3, gating_result, symbol, int, capacity>::fits<Given...>)
constexpr auto send_rows(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: send_rows<\"x\">(gating, x, 4, capacity{4}) takes the result of a gating, a tensor of a program, a number and a "
                "capacity");
  const symbol refused = detail::refused(given...);
  return expert_row_routing{refused, refused, refused, refused, refused};
}
GSHARD_TAKES(grouped_product, (detail::call<3, expert_row_routing, symbol, symbol>::fits<Given...>),
             "grouped_product(routing, x, w) takes the result of send_rows and two tensors of a program")
GSHARD_TAKES(add_to_rows, (detail::call<3, expert_row_routing, symbol, symbol>::fits<Given...>),
             "add_to_rows(routing, x, bias) takes the result of send_rows and two tensors of a program")
GSHARD_TAKES(combine_rows, (detail::call<2, expert_row_routing, symbol>::fits<Given...>),
             "combine_rows(routing, h) takes the result of send_rows and a tensor of a program")
GSHARD_TAKES(expert_param,
             (detail::call<5, parameter_scope, expert_row_routing, std::string_view, std::string_view, init>::fits<Given...> ||
              detail::declares_for_experts<Given...>),
             "expert_param(m, routing, name, \"MF\", init::zeros()) takes the first argument of the model, the result of send_rows, "
             "two texts, maybe a spec, and an initializer")

}}  // namespace gshard::v0
