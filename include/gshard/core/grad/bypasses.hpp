// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Gradients with respect to tensors that were replaced by their operands while tracing.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/trace/builder.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The bypasses that matter for the wanted gradients.
class wanted_bypasses {
 public:
  /// `wanted`: by value, whether its own gradient is wanted. The program fails if such a gradient cannot exist.
  constexpr void find(builder& b, const char* wanted) {
    for (const bypass& r : b.bypasses) {
      if (r.result >= 0) {
        if (is_any_wanted(b.program, r, wanted)) found_.push_back(r);
      } else if (wanted[r.tensor]) {
        b.fail(fault::gradient_of_gating, r.verb);
      }
    }
  }
  /// True if a wanted gradient passes through a bypass of this node.
  constexpr bool any_of(const node& n) const {
    for (const bypass& r : found_)
      if (n.outputs > 0 && n.out[0] == r.result) return true;
    return false;
  }
  /// Visits the bypassed tensors of a node: operands of its verb that the node does not read.
  template <class Visit>
  constexpr void for_each_tensor_of(const node& n, Visit visit) const {
    for (const bypass& r : found_)
      if (n.outputs > 0 && n.out[0] == r.result) visit(r.tensor);
  }
  /// Replaces nodes by the nodes of the program's calls. Returns the replaced nodes in order.
  constexpr list<node> replace(graph& g) const {
    list<node> replaced;
    for (const bypass& r : found_) {
      node& n = g.nodes[std::size_t(g.at(r.result).producer)];
      replaced.push_back(n);
      n = as_written(n);
    }
    return replaced;
  }
  constexpr void put_back(graph& g, const list<node>& replaced) const {
    for (std::size_t i = found_.size(); i-- > 0;) g.nodes[std::size_t(g.at(found_[i].result).producer)] = replaced[i];
  }
  /// The node with the operands of the program's call.
  constexpr node as_written(node n) const {
    for (const bypass& r : found_) {
      if (n.outputs == 0 || n.out[0] != r.result) continue;
      if (n.kind != r.kind) {  // an einsum of a one-hot tensor became a dispatch or a combine
        n.kind = r.kind;
        n.attr = {};
        n.inputs = 2;
        n.in[1] = n.in[0];
        n.rule.in[1] = n.rule.in[0];
      }
      n.in[r.operand] = r.tensor;
      n.rule.in[r.operand] = r.factors;
    }
    return n;
  }

 private:
  list<bypass> found_;

  /// True if the bypassed tensor is wanted, or a tensor between it and the one that the node reads.
  static constexpr bool is_any_wanted(const graph& g, const bypass& r, const char* wanted) {
    const node& reader = g.nodes[std::size_t(g.at(r.result).producer)];
    const std::int32_t read = reader.kind != r.kind ? reader.in[1] : reader.in[r.operand];
    for (std::int32_t v = r.tensor; v != read;) {
      if (wanted[v]) return true;
      const std::int32_t maker = g.at(v).producer;
      if (maker < 0) return false;
      v = g.nodes[std::size_t(maker)].in[0];
    }
    return false;
  }
};

}}}  // namespace gshard::v0::detail
