// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "on_mesh.hpp"

#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/roll.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

// Attention, scans and experts of random programs. Their definitions are in random_program_layers_reference.hpp.
namespace random_program {

namespace gs = gshard;

/// The operands of an attention in addition to q, k and v, or -1, and its options.
struct attention_settings {
  bool causal;
  int mask = -1, position = -1;
  double dropout;
  bool log_sum;  // returns log_sum
  bool parts;    // two parts: the first two keys, then the others

  /// number: causal, with a mask, with a position, the rate of dropout in tenths, 1 for the logarithms of sums, optionally 1 for merging
  /// two parts.
  constexpr explicit attention_settings(gs::list_view<int> number)
      : causal(number[0] != 0 || number[2] != 0),
        dropout(number[3] / 10.0),
        log_sum(number[4] != 0),
        parts(number.size() > 5 && number[5] != 0 && number[3] == 0) {
    int next = 3;
    if (number[1]) mask = next++;
    if (number[2]) position = next++;
  }
  constexpr int random_keys() const { return dropout > 0; }
};

constexpr gs::symbol attention(gs::list_view<int> number, gs::list_view<gs::symbol> x) {
  const attention_settings s(number);
  gs::attention_options o{.causal = s.causal, .dropout = s.dropout};
  if (s.mask >= 0) o.mask = x[std::size_t(s.mask)];
  if (s.position >= 0) o.position = x[std::size_t(s.position)];
  if (s.parts && !x[0].owner->failed()) {
    gs::dim_list keys = x[1].get().dims;
    for (int i = 0; i < 2; ++i) keys.pop_back();
    const gs::symbol first = gs::less(gs::detail::emit_iota(*x[0].owner, keys, keys.size() - 1), 2.0);
    gs::attention_options one = o, other = o;
    one.mask = s.mask < 0 ? first : first * gs::equal(gs::equal(o.mask, 0.0), 0.0);
    other.mask = s.mask < 0 ? 1.0 - first : o.mask * (1.0 - first);
    const gs::attention_part of_first = gs::partial_attention(x[0], x[1], x[2], one);  // before the other one, with any compiler
    const gs::attention_part both = gs::merge_attention(of_first, gs::partial_attention(x[0], x[1], x[2], other));
    return s.log_sum ? both.log_sum : both.y;
  }
  const gs::attention_part made = gs::partial_attention(x[0], x[1], x[2], o);
  return s.log_sum ? made.log_sum : made.y;
}

/// A scan over the rows of xs. Rows and y are broadcast to the state. `which`: 0 for the last state, 1 for the outputs, 2 for a sum of
/// both.
inline constexpr int scan_bodies = 8, scan_with_dropout = 5, scan_with_loop = 6, scan_of_two = 7;
constexpr gs::symbol scan(int body, int which, gs::symbol start, gs::symbol xs, gs::symbol y, const gs::sharding& layout) {
  using gs::symbol;
  gs::builder& b = *start.owner;
  if (b.failed()) return b.nothing();
  const bool scalar = start.rank() == 0;
  const auto mean_of = [](symbol v, symbol w) { return 0.5 * gs::map<[](auto s, auto t) { return s + t; }>(v, w); };
  const auto small_sum = [](symbol v) { return 0.015625 * gs::sum(v); };
  const auto laid = [&](symbol s) { return on_mesh::annotate(s, layout); };
  const auto turn = [&](symbol step, symbol s, symbol x) -> std::array<symbol, 2> {
    if (b.failed()) return {b.nothing(), b.nothing()};
    switch (body) {
      case 0: return {laid(gs::map<[](auto u, auto v, auto w) { return tanh(u * w + v); }>(s, x, y)), s - x};
      case 1: return {laid(mean_of(scalar ? s : gs::softmax(s), x)), small_sum(s)};
      case 2: {
        const symbol next = scalar ? s : mean_of(gs::roll(s, 0, 1), y);
        return {laid(next), next + gs::cast(step, gs::dtype::f64)};
      }
      case 3: return {laid(mean_of(scalar ? s : gs::map<[](auto v) { return tanh(v); }>(gs::cumsum(s, 0)), x)), x * x};
      case 4: return {laid(mean_of(s, gs::gather(xs, step))), s};
      case scan_with_dropout: return {laid(mean_of(gs::dropout(s, 0.5), x)), s};
      default: {
        const auto inner = [](symbol, symbol u, symbol v) { return gs::map<[](auto p, auto q) { return tanh(p + q); }>(u, v); };
        const symbol next = gs::scan(inner, s, xs);
        return {laid(mean_of(next, y)), next - x};
      }
    }
  };
  const auto turn_of_two = [&](symbol, symbol s, symbol t, symbol x) -> std::array<symbol, 3> {
    return {laid(mean_of(t, x)), gs::map<[](auto u, auto v) { return tanh(u * v); }>(s, y), s * t};
  };
  std::array<symbol, 2> made{b.nothing(), b.nothing()};
  if (body == scan_of_two) {
    const std::array<symbol, 3> all = gs::scan(turn_of_two, std::array{start, start}, xs);
    made = {all[0], all[2]};
  } else {
    made = gs::scan(turn, start, xs);
  }
  if (b.failed() || which < 2) return made[std::size_t(which)];
  return made[0] + small_sum(made[1]);
}

/// The routes of tokens to experts: in slots, as rows of expert groups without slots, by groups, or by replicas of the experts.
enum class expert_route : std::uint8_t { slots, rows, groups, replicas };

/// Experts that get tokens x [G,S,M] by logits [G,S,E]. Expert l of group n, or replica l, computes cos(2 n + l) x w + 1/4 for w [M,F].
struct expert_settings {
  int k;                 // 0: experts choose tokens
  expert_route route;
  int parts;             // groups of experts, or chunks of slots
  int slots, rows;      // capacity factors, 0: unlimited
  gs::gate_norm norm;
  int result;            // 0 combined results, 1 auxiliary loss, 2 load and demand, 3 refused choices
  bool masked;           // operand 3 is 0 at padding
  int token_chunks;      // chunks of token groups, if experts are in groups

  constexpr explicit expert_settings(gs::list_view<int> n)
      : k(n[0]),
        route(expert_route(n[1])),
        parts(std::max(n[2], 1)),
        slots(n[3]),
        rows(n[4]),
        norm(gs::gate_norm(n[5])),
        result(n[6]),
        masked(n[7] != 0),
        token_chunks(std::max(n[8], 1)) {}
  constexpr bool experts_choose() const { return k == 0; }
  constexpr bool in_groups() const { return route == expert_route::rows || route == expert_route::groups; }
};

namespace detail {
/// w times cos(2 n + l) along the dims N and E/N, the first dims of the result.
constexpr gs::symbol expert_weights(gs::symbol w, const gs::dim_list& first) {
  gs::builder& b = *w.owner;
  if (b.failed()) return b.nothing();
  gs::dim_list dims = first;
  for (int d = 0; d < w.rank(); ++d) dims.push_back(w.get().dims[d]);
  const auto index = [&](int along) { return gs::cast(gs::detail::emit_iota(b, dims, along), gs::dtype::f64); };
  const gs::symbol local = index(first.size() - 1), group = first.size() > 1 ? index(0) : gs::stop_gradient(0.0 * local);
  constexpr auto& f = gs::pointwise_of<[](auto v, auto n, auto l) { return v * gs::cos(n + n + l); }, 3>;
  const gs::short_list all = gs::detail::counting(dims.size());
  return gs::detail::emit_map_of(f, std::array{w, group, local}, std::array{gs::detail::counting(w.rank(), first.size()), all, all}, local);
}
}  // namespace detail

namespace detail {
constexpr gs::gating_result gating(const expert_settings& s, gs::list_view<gs::symbol> x) {
  const gs::capacity slots = s.slots ? gs::capacity{double(s.slots)} : gs::capacity::unlimited();
  const gs::symbol gates = gs::softmax(x[1]), mask = s.masked ? x[3] : gs::symbol{};
  // Gates of different tokens are nearly equal if their logits are, so experts choose by logits.
  if (!s.experts_choose()) return gs::detail::gate_by(gates, mask, {.k = s.k, .slots = slots, .norm = s.norm}, "experts");
  return gs::detail::gate_by(gates, mask, {.slots = slots, .choice = gs::choice::by_experts, .norm = s.norm, .scores = x[1]}, "experts");
}
constexpr gs::symbol more(gs::symbol x) {
  return gs::map<[](auto v) { return v + 0.25; }>(x);
}
/// Experts, or replicas, with slots, in chunks.
constexpr gs::symbol experts_in_slots(const gs::gating_result& g, int chunks, gs::symbol x, gs::symbol w) {
  gs::builder& b = *x.owner;
  gs::symbol y = b.nothing();
  for (int i = 0; i < chunks && !b.failed(); ++i) {
    const gs::gating_result of = chunks == 1 ? g : gs::chunk_of(g, i, chunks);
    const gs::symbol made = more(gs::einsum<"EGCM,EMF->EGCF">(gs::einsum<"GSEC,GSM->EGCM">(of.dispatch, x), w));
    const gs::symbol part = gs::einsum<"GSEC,EGCF->GSF">(of.combine, made);
    y = i == 0 ? part : y + part;
  }
  return y;
}
/// Experts with slots in groups, in chunks of token groups. Returns the results, or the refused choices.
constexpr gs::symbol experts_in_groups(const expert_settings& s, const gs::gating_result& g, gs::symbol x, gs::symbol w) {
  gs::builder& b = *x.owner;
  const auto gatings = gs::chunks_of_token_groups(g, s.token_chunks);
  const auto tokens = gs::chunks_of_token_groups(x, s.token_chunks);
  gs::list<gs::symbol> y, refused;
  for (std::size_t i = 0; i < tokens.size() && !b.failed(); ++i) {
    const gs::expert_group_routing r = gs::send_to_expert_groups(gatings[i], tokens[i], s.parts, {double(s.rows)});
    refused.push_back(r.overflow);
    if (b.failed() || s.result == 3) continue;
    const gs::symbol weights = expert_weights(w, gs::detail::route::dims({r.group_dim, r.expert_dim}));
    y.push_back(gs::combine_from_groups(r, more(gs::einsum<"NEGCM,NEMF->NEGCF">(gs::dispatch_in_groups(r), weights))));
  }
  if (b.failed()) return b.nothing();
  return s.result == 3 ? g.overflow + gs::join_token_groups(refused) : gs::join_token_groups(y);
}
/// Experts without slots, as rows of their groups.
constexpr gs::symbol experts_of_rows(const gs::expert_row_routing& r, gs::symbol w) {
  gs::builder& b = *w.owner;
  if (b.failed()) return b.nothing();
  gs::dim_list of_bias;
  for (const int d : {0, 1, 3}) of_bias.push_back(w.get().dims[d]);
  const gs::symbol bias = gs::map<[](auto v) { return 0 * v + 0.25; }>(gs::cast(gs::detail::emit_iota(b, of_bias, 0), gs::dtype::f64));
  return gs::combine_rows(r, gs::add_to_rows(r, gs::grouped_product(r, r.rows, w), bias));
}
}  // namespace detail

constexpr gs::symbol experts(gs::list_view<int> number, gs::list_view<gs::symbol> x) {
  using gs::symbol;
  const expert_settings s(number);
  gs::builder& b = *x[0].owner;
  gs::gating_result g = detail::gating(s, x);
  if (b.failed() || s.result == 1) return g.aux;
  if (s.result == 2) return g.load + 2.0 * g.demand;
  const auto weights = [&](std::initializer_list<int> first) { return detail::expert_weights(x[2], gs::detail::route::dims(first)); };
  if (s.route == expert_route::rows) {
    const gs::expert_row_routing r = gs::send_rows(g, x[0], s.parts, {double(s.rows)});
    if (b.failed() || s.result == 3) return g.overflow + r.overflow;
    return detail::experts_of_rows(r, weights({r.group_dim, r.expert_dim}));
  }
  if (s.route == expert_route::groups) return detail::experts_in_groups(s, g, x[0], x[2]);
  if (s.route == expert_route::replicas) g = gs::send_to_replicas(g, x[x.size() - 1], {double(s.rows)});
  if (b.failed() || s.result == 3) return g.overflow;
  return detail::experts_in_slots(g, s.parts, x[0], weights({g.combine.get().dims[2]}));
}

}  // namespace random_program
