// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The mixture-of-experts layer of GShard (arXiv 2006.16668), with k experts per token, and experts in groups.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/moe/layer/swiglu.hpp>
#include <gshard/moe/layer/weight.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>
#include <gshard/moe/routing/gating.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// How experts get tokens. Write one of the functions.
struct experts {
  enum class place : std::uint8_t { slots, groups, replicas, rows };
  place takes = place::slots;
  int groups = 1;
  capacity rows{0};  ///< Rows per group, or slots per replica. Factor 0: enough, or as many as an expert has.

  /// An expert has a number of slots for the tokens of a token group, as in the paper.
  static constexpr experts in_slots() { return {}; }
  /// Experts in groups: a token is sent once to each group that has one of its experts. A group has `rows` for the tokens of a token group,
  /// or enough. @see send_to_expert_groups
  static constexpr experts in_groups(int groups, capacity rows = {0}) { return {place::groups, groups, rows}; }
  /// Experts have replicas, which placed_experts moves, with `slots` each, or as many as an expert. @see send_to_replicas
  static constexpr experts with_replicas(capacity slots = {0}) { return {place::replicas, 1, slots}; }
  /// Experts have no slots: each takes all its choices, a row for each. A group of experts has `rows`, or enough. Not with chunks or a
  /// second axis, nor with slots, evaluation_slots, importance and choice::by_experts of the routing. @see send_rows
  static constexpr experts dropless(int groups = 1, capacity rows = {0}) { return {place::rows, groups, rows}; }

  constexpr bool have_slots() const { return takes == place::slots || takes == place::replicas || (takes == place::groups && groups == 1); }
  constexpr bool have_replicas() const { return takes == place::replicas; }
  constexpr bool are_dropless() const { return takes == place::rows; }
  friend constexpr bool operator==(const experts&, const experts&) = default;
};

namespace nn {

/// Settings of a mixture-of-experts layer. They belong to the model, so none depends on the number of devices.
struct moe_options {
  routing_options routing{};  ///< Experts per token, slots per expert, the router and its losses.
  struct experts experts{};   ///< How experts get tokens: in slots, in groups, with replicas, or dropless.
  bool swiglu = false;        ///< Experts are wo (silu(wi_gate x) * (wi x)), in place of wo relu(wi x). @see swiglu
  bool biases = false;        ///< Biases, initially zero, are added to the products with wi, wi_gate and wo.
  /// The number of chunks of slots, or, with expert groups, of token groups, which it must divide. The exchange of one chunk overlaps with
  /// the products of another. @see chunk_of, chunks_of_token_groups
  int chunks = 1;
  int shared_experts = 0;            ///< Experts of every token, with weight 1, in addition to its chosen ones.
  param_dtype_option param_dtype{};  ///< The stored element type of weights of products, except the router's.
};

struct moe_result {
  symbol y;         ///< [G,S,M]
  symbol load;      ///< [E] tokens per expert
  symbol overflow;  ///< scalar: choices refused because an expert, or an expert group, was full. choice::by_experts: tokens without one
  symbol demand;    ///< [E] choices of each expert, including refused ones. @see gating_result
};

namespace detail {

/// The weights of feed-forward layers, such as experts. Weights that the options do not need are empty.
struct feed_forward_weights {
  symbol wi, wi_gate, wo, bi, bi_gate, bo;
};
/// declare(scope, name, letters) declares a weight in a scope: m, or m with another element type. `letters`: its dims without the dims of
/// experts.
template <class Declare>
constexpr feed_forward_weights declare_feed_forward(const parameter_scope& m, const moe_options& o, const Declare& declare) {
  const auto declare_if = [&](bool wanted, std::string_view name, std::string_view letters) {
    if (!wanted) return m.owner().nothing();
    return letters.size() == 1 ? declare(m, name, letters) : in_type_of(m, declare(o.param_dtype.in(m), name, letters));
  };
  const symbol wi = declare_if(true, "wi", "MF"), wi_gate = declare_if(o.swiglu, "wi_gate", "MF"), wo = declare_if(true, "wo", "FM");
  const symbol bi = declare_if(o.biases, "bi", "F"), bi_gate = declare_if(o.biases && o.swiglu, "bi_gate", "F");
  return {wi, wi_gate, wo, bi, bi_gate, declare_if(o.biases, "bo", "M")};
}
constexpr init feed_forward_init(std::string_view letters) {
  return letters.size() == 1 ? init::zeros() : init::fan_in(letters.substr(0, 1));
}

/// wo relu(wi x), or SwiGLU if there is a weight wi_gate; with biases if there are any. In, Out: the equations of the products with wi
/// and wo.
template <fixed_string In, fixed_string Out>
constexpr symbol apply_feed_forward(symbol x, const feed_forward_weights& w) {
  const auto with_bias = [](symbol y, symbol bias) { return bias.id < 0 ? y : y + bias; };
  const symbol h = with_bias(einsum<In>(x, w.wi), w.bi);
  const symbol active = w.wi_gate.id < 0 ? relu(h) : swiglu(with_bias(einsum<In>(x, w.wi_gate), w.bi_gate), h);
  return with_bias(einsum<Out>(active, w.wo), w.bo);
}

/// y, plus the results of shared experts.
template <class = void>
constexpr symbol add_shared_experts(const parameter_scope& m, const moe_options& o, symbol x, symbol y) {
  if (o.shared_experts < 0) m.owner().fail_range("moe", ".shared_experts", o.shared_experts);
  if (o.shared_experts < 1) return y;
  const named_scope named(m, "shared experts");
  const parameter_scope shared = m.scope("shared");
  for (int i = 0; i < o.shared_experts; ++i) {
    const parameter_scope one = shared.scope(i);
    const auto declare = [](const parameter_scope& in, std::string_view name, std::string_view letters) {
      return in.param(name, letters, feed_forward_init(letters));
    };
    y = y + apply_feed_forward<"GSM,MF->GSF", "GSF,FM->GSM">(x, declare_feed_forward(one, o, declare));
  }
  return y;
}

/// The routing of a layer, and the other inputs of apply_in_slots, apply_in_groups and apply_dropless.
struct moe_layer {
  const parameter_scope& m;
  const moe_options& options;
  symbol x;
  gating_result routing;
  symbol expert_of;  // if experts have replicas

  constexpr builder& owner() const { return m.owner(); }
  template <class Product>
  constexpr auto gate_einsum(const Product& product) const {
    const named_scope named(m, "gate einsum");
    return product();
  }
};

/// Experts with capacity slots, sharded over the axes.
template <label Axes>
constexpr symbol apply_in_slots(const moe_layer& l) {
  builder& b = l.owner();
  const moe_options& o = l.options;
  const auto declare = [&](const parameter_scope& m, std::string_view weight, std::string_view of_one) {
    const init initial = feed_forward_init(of_one);
    const inplace_name<3> all = inplace_name<3>(o.experts.have_replicas() ? "R" : "E").append(of_one);
    const auto with = [&](auto sharded) {
      return o.experts.have_replicas() ? replica_param(m, l.expert_of, weight, all.view(), sharded, initial)
                        : m.param(weight, all.view(), sharded, initial);
    };
    return of_one.size() == 1 ? with(P<Axes, none>{}) : with(P<Axes, none, none>{});
  };
  const feed_forward_weights weights = declare_feed_forward(l.m, o, declare);
  list<gating_result> chunks;
  list<symbol> in, out;
  for (int i = 0; i < o.chunks && !b.failed(); ++i) {
    chunks.push_back(o.chunks == 1 ? l.routing : chunk_of(l.routing, i, o.chunks));
    in.push_back(l.gate_einsum([&] { return einsum<"GSEC,GSM->EGCM">(chunks[std::size_t(i)].dispatch, l.x); }));
  }
  for (const symbol& tokens : in) {
    const named_scope experts(l.m, "MoE feed-forward");
    const symbol y = apply_feed_forward<"EGCM,EMF->EGCF", "EGCF,EFM->GECM">(tokens, weights);
    named_sharding at_experts = P<none, Axes, none, none>::named;  // so that gradients of biases are sums on the experts' devices
    at_experts.open = 0b1101;
    out.push_back(o.biases ? annotate(y, at_experts) : y);
  }
  symbol y = b.nothing();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const symbol part = l.gate_einsum([&] { return einsum<"GSEC,GECM->GSM">(chunks[i].combine, out[i]); });
    y = i == 0 ? part : y + part;
  }
  return y;
}

/// The result of a layer with expert groups: y, and the number of choices that full groups refused.
struct grouped_result {
  symbol y, overflow;
};

/// Experts with capacity slots, in groups. The groups are sharded over the axis, the experts of a group over the inner axis. Chunks are
/// chunks of token groups. While one is computed, the next one is sent to the groups, and the last one is sent back.
template <fixed_string Axis, label Inner>
constexpr grouped_result apply_in_groups(const moe_layer& l) {
  builder& b = l.owner();
  const moe_options& o = l.options;
  const grouped_result nothing{b.nothing(), b.nothing()};
  if (!b.failed()) gshard::detail::check_token_groups(b, l.x.get().dims[0], o.chunks, "moe");
  if (b.failed()) return nothing;
  list<expert_group_routing> groups;
  l.gate_einsum([&] {
    const list<gating_result> gatings = chunks_of_token_groups(l.routing, o.chunks);
    const list<symbol> parts_of_x = chunks_of_token_groups(l.x, o.chunks);
    for (std::size_t i = 0; i < parts_of_x.size() && !b.failed(); ++i)
      groups.push_back(send_to_expert_groups<Axis>(gatings[i], parts_of_x[i], o.experts.groups, o.experts.rows));
  });
  if (b.failed()) return nothing;
  const auto declare = [&](const parameter_scope& m, std::string_view weight, std::string_view of_one) {
    dim_list dims = gshard::detail::route::dims({groups[0].group_dim, groups[0].expert_dim});
    for (const char c : of_one) dims.push_back(b.bound_dim(c));
    const named_sharding& sharded = of_one.size() == 1 ? P<label(Axis), Inner, none>::named : P<label(Axis), Inner, none, none>::named;
    return m.param_of_dims(weight, dims, sharded, feed_forward_init(of_one));
  };
  const feed_forward_weights weights = declare_feed_forward(l.m, o, declare);
  const auto dispatched = [&](std::size_t i) { return l.gate_einsum([&] { return dispatch_in_groups(groups[i]); }); };
  const std::size_t n = groups.size();
  list<symbol> sums, y;
  symbol in = dispatched(0), refused = sum(groups[0].overflow);
  for (std::size_t i = 0; i < n; ++i) {
    const symbol out = [&] {
      const named_scope experts(l.m, "MoE feed-forward");
      return apply_feed_forward<"NEGCM,NEMF->NEGCF", "NEGCF,NEFM->NEGCM">(in, weights);
    }();
    if (i + 1 < n) in = dispatched(i + 1);
    sums.push_back(l.gate_einsum([&] { return sum_in_groups(groups[i], out); }));
  }
  for (std::size_t i = 0; i < n; ++i) {
    y.push_back(l.gate_einsum([&] { return combine_groups(groups[i], sums[i]); }));
    if (i > 0) refused = refused + sum(groups[i].overflow);
  }
  return b.failed() ? nothing : grouped_result{join_token_groups(y), refused};
}

/// Experts without slots, in groups that are sharded over the axis.
template <fixed_string Axis>
constexpr grouped_result apply_dropless(const moe_layer& l) {
  const moe_options& o = l.options;
  const expert_row_routing r = l.gate_einsum([&] { return send_rows<Axis>(l.routing, l.x, o.experts.groups, o.experts.rows); });
  const auto declare = [&](const parameter_scope& m, std::string_view weight, std::string_view of_one) {
    return expert_param(m, r, weight, of_one, feed_forward_init(of_one));
  };
  const feed_forward_weights w = declare_feed_forward(l.m, o, declare);
  const symbol out = [&] {
    const named_scope experts(l.m, "MoE feed-forward");
    const auto product = [&](symbol in, symbol matrix, symbol bias) {
      const symbol y = grouped_product(r, in, matrix);
      return bias.id < 0 ? y : add_to_rows(r, y, bias);
    };
    const symbol h = product(r.rows, w.wi, w.bi);
    return product(w.wi_gate.id < 0 ? relu(h) : swiglu(product(r.rows, w.wi_gate, w.bi_gate), h), w.wo, w.bo);
  }();
  return {l.gate_einsum([&] { return combine_rows(r, out); }), sum(r.overflow)};
}

/// The program fails if options conflict. `two_axes`: experts are sharded over two mesh axes.
constexpr void check_options(builder& b, const moe_options& o, bool two_axes) {
  if (o.chunks < 1) b.fail_range("moe", ".chunks", o.chunks);
  using gshard::detail::check_capacity, gshard::detail::refuse_together, gshard::detail::set_option;
  check_capacity(b, o.experts.rows, "moe", o.experts.have_replicas() ? ".experts slots" : ".experts rows");
  refuse_together(b, "moe", {o.experts == experts::in_groups(1, o.experts.rows), "one expert group"},
                  {{o.experts.rows != capacity{0}, ".experts rows"}});
  refuse_together(b, "moe", {o.experts.are_dropless(), ".experts dropless"},
                  {{o.chunks > 1, ".chunks"},
                   {o.routing.slots != capacity{0}, ".routing.slots"},
                   {o.routing.evaluation_slots != capacity{0}, ".routing.evaluation_slots"},
                   {o.routing.choice.experts_choose, ".routing.choice by_experts"},
                   {o.routing.importance.owner != nullptr, ".routing.importance"},
                   {two_axes, "a second mesh axis"}});
}

}  // namespace detail

/// moe<"expert">(m, x, mask, options): the sparsely gated layer of arXiv 2006.16668, Algorithm 2: y_s = sum_e G_{s,e} wo_e relu(wi_e x_s)
/// with at most k experts per token. Adds the auxiliary loss to the model's. Parameters: wg [M,E]; wi [E,M,F] and wo [E,F,M], whose
/// experts are sharded over the axes. Other routings are options.
///
/// moe<"node", "expert">(m, x, mask, {.experts = experts::in_groups(N)}): experts in N groups, sharded over the first axis; the experts of
/// a group over the second axis, if there is one. The first axis is the one between nodes. Parameters: wi [N,E/N,M,F] and wo [N,E/N,F,M].
/// Without overflow of groups, the result is that of one group, except for the order of sums. @see combine_from_groups
///
/// moe<"node", "expert">(m, x, mask, {.experts = experts::in_groups(N), .chunks = n}): the same in n chunks of the token groups. While one
/// is computed, the rows of the next one are sent to their nodes, and the rows of the last one are sent back. Results have the same bits.
/// Gradients of the experts' weights are sums over the chunks, so their order of sums differs. n divides G. @see chunks_of_token_groups
///
/// moe<"expert">(m, x, mask, {.experts = experts::dropless(N, {1.5 * k})}): experts without slots in N groups, sharded over
/// the axis. No expert refuses a choice. A group refuses choices for which it has no row left. Parameters as with groups. @see send_rows
///
/// moe<"expert">(m, x, mask, {.experts = experts::with_replicas()}): R replicas of E experts, sharded over the axes. The variable
/// expert_of [R] has the expert of each replica. The result is that of the layer without replicas, except for the order of sums.
/// @see placed_experts
///
/// moe<"expert">(m, x, mask, {.swiglu = true, .biases = true, .shared_experts = 1}): experts have the further parameters wi_gate, as wi;
/// bi and bi_gate [E,F]; bo [E,M]. Shared expert i has those of one expert, named shared.i.wi and so on.
/// Shapes: x [G,S,M], mask [G,S], 0 at padding -> see `moe_result`. N is the number of expert groups.
/// Communicates: if token groups are sharded over the same axes, one all_to_all to the experts and one back; with expert groups, one per
/// axis each way. Dropless: as send_rows and combine_rows. With balance::bias, one all_reduce of [E] more.
/// Compile time: ranks and dims; that x and mask have the model's element type, float or double; that the mesh has the axes. Options are in
/// range and do not conflict. With expert groups, `chunks` divides G, if G is known.
/// Throws: as route, send_rows and chunks_of_token_groups.
/// @see route, top_k_gating, send_to_expert_groups, send_rows, send_to_replicas, moe_options
template <fixed_string Axis, fixed_string InnerAxis = "">
constexpr moe_result moe(const parameter_scope& m, here x, symbol mask, moe_options options = {}) {
  constexpr bool one_axis = InnerAxis.view().empty();
  constexpr label inner = one_axis ? none : label(InnerAxis);
  constexpr label all_axes = [] {
    if constexpr (one_axis) return label(Axis);
    else return axes<Axis, InnerAxis>;
  }();
  builder& b = m.owner();
  const line_of_call kept(b);
  detail::check_options(b, options, !one_axis);
  detail::check_tokens(x, mask, m.param("wg", "ME", init::fan_in("M")), "moe");  // The router's parameter is the first one.
  const symbol expert_of = options.experts.have_replicas() ? replicas_of_experts(m, "R", "E") : b.nothing();
  const named_scope gate_other(m, "gate other");
  routing_options how = options.routing;
  if (options.experts.are_dropless()) how.slots = capacity::unlimited();
  gating_result routing = route(m, x, mask, how);
  if (options.experts.have_replicas()) routing = send_to_replicas(routing, expert_of, options.experts.rows);
  const symbol load = sum<"GE->E">(routing.load), demand = sum<"GE->E">(routing.demand);
  if (how.balance.has_bias() && how.training) update_bias(m, demand, how.balance.rate);
  const detail::moe_layer layer{m, options, x, routing, expert_of};
  if (options.experts.have_slots())
    return {detail::add_shared_experts(m, options, x, detail::apply_in_slots<all_axes>(layer)), load, sum(routing.overflow), demand};
  const bool dropless = options.experts.are_dropless();
  const auto [y, refused] = dropless ? detail::apply_dropless<Axis>(layer) : detail::apply_in_groups<Axis, inner>(layer);
  return {detail::add_shared_experts(m, options, x, y), load, sum(routing.overflow) + refused, demand};
}
template <fixed_string Axis = "", fixed_string InnerAxis = "", class... Given>
  requires(gshard::detail::left_out<Axis> || !gshard::detail::call<3, parameter_scope, symbol, symbol, moe_options>::fits<Given...>)
constexpr auto moe(const Given&... given) {
  static_assert(gshard::detail::accepts<Given...>,
                "gshard: nn::moe<\"expert\">(m, x, mask, {.routing = {.k = 2}}) takes a mesh axis, the first argument of the model, two "
                "tensors of a program, and settings");
  const symbol none = gshard::detail::refused(given...);
  return moe_result{none, none, none, none};
}

}}}  // namespace gshard::v0::nn
