// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rewrites nodes along sharded dims as operations on blocks, by the rules of their operations.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/trace/builder.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The graph during the rewrite. Rules append the nodes of a rewrite to `owner()` and name their results. @see operation_rules
class decomposer {
 public:
  constexpr decomposer(graph& g, const mesh_shape& on) : g_(g) {
    b_.program = static_cast<graph&&>(g);
    b_.mesh = on;
  }
  /// Rewrites the nodes whose line is sharded. The partitioner then reduces sums and extrema of blocks, instead of gathering the operand.
  constexpr void run() {
    const list<node> before = static_cast<list<node>&&>(b_.program.nodes);
    b_.program.nodes = {};
    before_ = &before;
    for (const node& n : before) {
      const int at = line_of(b_.program, n);
      const bool stays = at < 0 || (traits(n.kind).after_extremum && !n.attr.by_blocks) || b_.program.at(n.input(0)).layout[at].empty() ||
                         n.rule.is_blocked(n.rule.in[0][at]);
      if (stays) {
        append(n);
        continue;
      }
      b_.keeps_place = true;
      b_.place = n.place;
      b_.place.is_explicit = may_move(n);
      b_.program.rules_of(n.kind).by_blocks(*this, n, at);
    }
    b_.keeps_place = false;
    for (std::size_t i = 0; i < b_.program.nodes.size(); ++i)
      for (int o = 0; o < b_.program.nodes[i].outputs; ++o) b_.program.at(b_.program.nodes[i].output(o)).producer = std::int32_t(i);
    g_ = static_cast<graph&&>(b_.program);
  }

  constexpr builder& owner() { return b_; }
  constexpr symbol in(const node& n, int i) { return {&b_, n.input(i)}; }
  /// The node that made an operand of n before the rewrite.
  constexpr const node& maker_of(const node& n, int i) const { return (*before_)[std::size_t(b_.program.at(n.input(i)).producer)]; }
  constexpr void append(const node& n) { b_.program.nodes.push_back(n); }
  /// Makes `made` the result o of n.
  constexpr void replace_result(const node& n, int o, symbol made) {
    node& maker = b_.program.nodes[std::size_t(made.get().producer)];
    for (int k = 0; k < maker.outputs; ++k)
      if (maker.output(k) == made.id) maker.out[k] = n.output(o);
  }
  /// The same, by an annotation that keeps the sharding of `made`.
  constexpr void replace_result_annotated(const node& n, int o, symbol made) {
    sharding_rule rule;
    rule.in[0] = rule.out[0] = counting(made.rank());
    replace_result(n, o, {&b_, b_.add_node(op::annotate, {made.id}, rule, {}, {{made.get().dims, made.get().type}})});
  }
  /// Sets the sharding of a tensor: complete, in the mesh's device order.
  constexpr symbol set_sharding(symbol s, const sharding& layout) {
    sharding& to = b_.program.at(s.id).layout;
    to = layout;
    to.open = to.partial = to.order = 0;
    return s;
  }
  /// Shards a tensor like these dims of another one.
  constexpr symbol set_sharding_like(symbol s, symbol like, const short_list& dims) {
    sharding to = sharding::replicated(dims.size());
    for (int d = 0; d < dims.size(); ++d) to[d] = like.get().layout[dims[d]];
    return set_sharding(s, to);
  }

  /// Tensors that the rewrites of several nodes share: those of one operation with the same operands and setting.
  struct shared_tensors {
    op_ref of;
    std::int32_t first, second;
    double setting;
    symbol made[2];
  };
  constexpr const shared_tensors* find_shared(const op_ref& of, std::int32_t first, std::int32_t second, double setting) const {
    for (const shared_tensors& s : shared_)
      if (s.of == of && s.first == first && s.second == second && s.setting == setting) return &s;
    return nullptr;
  }
  constexpr const shared_tensors& share(const shared_tensors& made) {
    shared_.push_back(made);
    return shared_.back();
  }

 private:
  graph& g_;
  builder b_;
  const list<node>* before_ = nullptr;  // the nodes before the rewrite: producers are indices into it
  list<shared_tensors> shared_;

  /// True if operand 0 is the result of may_move. In that case, it may move in all nodes of the decomposition.
  constexpr bool may_move(const node& n) const {
    const std::int32_t maker = b_.program.at(n.input(0)).producer;
    return maker >= 0 && (*before_)[std::size_t(maker)].attr.may_move;
  }
};

}}}  // namespace gshard::v0::detail
