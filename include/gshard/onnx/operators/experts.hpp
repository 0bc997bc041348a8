// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Mixtures of experts without slots: the operators to which find_experts rewrites loops over all experts.

#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// The domain of these operators.
inline constexpr std::string_view experts_domain = "gshard.experts";

/// The groups of experts: as many as the extent of the mesh axis that shards them.
inline std::int64_t expert_groups(const import_state& state, std::int64_t experts) {
  if (state.expert_axis.empty()) return 1;
  const mesh_shape& mesh = state.program->mesh;
  for (int a = 0; a < mesh.rank(); ++a) {
    if (mesh.name(a) != state.expert_axis) continue;
    const std::int64_t extent = mesh.static_extent(a);
    if (extent < 1) throw error("has experts on the mesh axis \"" + state.expert_axis + "\": state its extent");
    if (experts % extent != 0)
      throw error("has " + std::to_string(experts) + " experts, which the " + std::to_string(extent) + " devices of the mesh axis \"" +
                  state.expert_axis + "\" do not divide");
    return extent;
  }
  throw error("has experts on the mesh axis \"" + state.expert_axis + "\", which the mesh does not have");
}

/// x [...,M] and gates [...,E], of which at most k of a token are not zero -> rows [N,G,R,M], count [N,G,E/N], row and weight [G,S,k].
/// @see send_rows
inline void send_to_experts(node_call& n) {
  const symbol x = n.real(0);
  const extent_list own = extents_of(x);
  if (own.empty() || n.extents(1).empty()) throw error("sends scalars to experts");
  extent_list of_gates = own;
  of_gates.back() = n.extents(1).back();
  if (broadcast_extents(n.extents(1), of_gates) != of_gates)
    throw error("has weights " + text_of(n.extents(1)) + " for tokens " + text_of(own));
  const symbol gates = expanded(n.real(1), of_gates);
  const std::int64_t experts = of_gates.back(), tokens = count_elements(own) / std::max<std::int64_t>(1, own.back());
  const std::int64_t groups = expert_groups(n.state(), experts), token_groups = tokens % groups == 0 ? groups : 1;
  const auto grouped = [&](symbol s) { return reshaped(s, {token_groups, tokens / token_groups, extents_of(s).back()}); };
  const symbol gates_of_groups = grouped(gates), sizes = mapped<functions::absolute{}, 1>({gates_of_groups});
  const gating_result chosen = top_k_gating(gates_of_groups, {.k = int(std::min(n.integer("k"), experts)),
                                                              .slots = capacity::unlimited(),
                                                              .choice = choice::top_k,
                                                              .norm = gate_norm::off,
                                                              .scores = sizes});
  const expert_row_routing r = send_rows(chosen, grouped(x), int(groups));
  n.set(0, r.rows, n.type(0));
  n.set(1, r.count, element::i32);
  n.set(2, r.row, element::i32);
  n.set(3, r.weight, n.type(1));
}

/// count and a tensor for each expert -> one parameter [N,E/N,...].
inline void expert_weights(node_call& n) {
  const symbol count = n.tensor(0);
  stored_tensor all;
  for (std::size_t i = 1; i < n.inputs(); ++i) {
    imported_value& v = n.in(i);
    if (!v.stored && !v.known) throw error("has experts whose weights are no constants");
    if (v.type != n.type(1) || v.extents != n.extents(1)) throw error("has experts with weights of different shapes");
    if (!v.stored) v.stored = std::make_shared<const model_tensor>(tensor_of(*v.known, v.name));
    all.parts.push_back(*v.stored);
  }
  const extent_list of_counts = extents_of(count);
  if (of_counts.size() != 3 || of_counts[0] * of_counts[2] != std::int64_t(all.parts.size()) || all.parts.empty())
    throw error("has weights of " + std::to_string(all.parts.size()) + " experts");
  const model_tensor &first = all.parts.front(), &last = all.parts.back();
  // The name of the first expert's tensor, with a star for the number that differs from the last one's.
  const std::string &one = first.name, &other = last.name;
  std::size_t begin = 0, end = 0;
  const std::size_t most = std::min(one.size(), other.size());
  while (begin < most && one[begin] == other[begin]) ++begin;
  while (end < most - begin && one[one.size() - 1 - end] == other[other.size() - 1 - end]) ++end;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (begin > 0 && is_digit(one[begin - 1])) --begin;  // the whole number differs
  while (end > 0 && is_digit(one[one.size() - end])) --end;
  all.parameter = values::parameter_name(one.substr(0, begin) + "*" + one.substr(one.size() - end));
  all.type = first.type;
  const dim_list of_count = count.get().dims;
  const dim_list of_one = fixed_dims(n.program(), first.shape);
  dim_list dims;
  for (const int d : {of_count[0], of_count[2]}) dims.push_back(d);
  for (int d = 0; d < of_one.size(); ++d) dims.push_back(of_one[d]);
  symbol made = values::add_stored(n.state(), std::move(all), dims);
  if (!n.state().expert_axis.empty()) {
    named_sharding by_groups;
    by_groups.rank = dims.size();
    by_groups.add(n.state().expert_axis, 0);
    made = checked(annotate(made, by_groups));
  }
  n.set(0, made, n.type(1));
}

/// The routing of these rows and counts. Only results that are combined need the row and weight of each choice.
inline expert_row_routing routing_of(symbol rows, symbol count, symbol row = {}, symbol weight = {}) {
  const dim_list of_rows = rows.get().dims, of_count = count.get().dims;
  return {rows, count, row, weight, row.owner->nothing(), of_count[0], of_rows[2], of_count[2], {}};
}
/// x with the dims of rows: elementwise operators have dims of equal extents.
inline symbol as_rows(symbol x, symbol rows) {
  const dim_list of_rows = rows.get().dims;
  dim_list dims = x.get().dims;
  bool same = true;
  for (int d = 0; d < 3; ++d) {
    same = same && dims[d] == of_rows[d];
    dims.set(d, of_rows[d]);
  }
  return same ? x : checked(detail::emit_rename(x, dims));
}
/// x [N,G,R,M], w [N,E/N,M,F], rows, count -> [N,G,R,F].
inline void expert_product(node_call& n) {
  const symbol rows = n.real(2), count = n.tensor(3);
  n.set(0, checked(grouped_product(routing_of(rows, count), as_rows(n.real(0), rows), n.real(1))), n.type(0));
}
/// x [N,G,R,F], bias [N,E/N,F], rows, count -> [N,G,R,F].
inline void expert_bias(node_call& n) {
  const symbol rows = n.real(2), count = n.tensor(3);
  n.set(0, checked(add_to_rows(routing_of(rows, count), as_rows(n.real(0), rows), n.real(1))), n.type(0));
}
/// h [N,G,R,F], row and weight [G,S,k], rows, count, x [...,M] -> [...,F].
inline void combine_experts(node_call& n) {
  const symbol row = n.tensor(1), weight = n.real(2), rows = n.real(3), count = n.tensor(4);
  const symbol y = checked(combine_rows(routing_of(rows, count, row, weight), as_rows(n.real(0), rows)));
  extent_list to = n.extents(5);
  to.back() = extents_of(y).back();
  n.set(0, reshaped(y, to), n.type(0));
}

inline constexpr operator_row experts[]{
    {"CombineExperts", combine_experts, experts_domain},
    {"ExpertBias", expert_bias, experts_domain},
    {"ExpertProduct", expert_product, experts_domain},
    {"ExpertWeights", expert_weights, experts_domain},
    {"SendToExperts", send_to_experts, experts_domain},
};

}}}}  // namespace gshard::v0::onnx::operators
