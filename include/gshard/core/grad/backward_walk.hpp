// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Walks the nodes of a program backwards and appends their gradients.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/bypasses.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/grad/gradients_of_core.hpp>
#include <gshard/core/ir/canonical_order.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The scan that a node ends; null if it ends none.
constexpr const scan_record* scan_ended_by(const builder& b, const node& end) {
  if (end.kind != op::loop_end) return nullptr;
  for (std::size_t i = b.scans.size(); i-- > 0;)
    if (b.scans[i].loop == end.attr.loop) return &b.scans[i];
  return nullptr;
}

/// Reverse-mode differentiation of a program: walks its nodes backwards. For every node with a gradient on a result it appends nodes that
/// compute the gradients of the operands. The walk is in canonical order. The gradients of a tensor with several readers are added in this
/// order. Devices run the appended nodes in the reverse order of the program.
class backward_walk : public differentiator {
 public:
  /// Differentiates the nodes of the program so far, from `first` on.
  constexpr backward_walk(builder& b, list_view<symbol> wanted, std::size_t first = 0)
      : differentiator(b), first_(first), end_(b.program.nodes.size()) {
    for (const symbol& s : wanted) needed_[std::size_t(s.id)] = true;
    char* const needed = needed_.data();
    bypasses_.find(b, needed);
    for (std::size_t k = first; k < b.program.nodes.size(); ++k) {
      const node& n = b.program.nodes[k];
      if (const scan_record* scan = scan_ended_by(b, n)) need_results(*scan);
      if (!stops_gradient(n) && reads_needed(n))
        for (int o = 0; o < n.outputs; ++o) needed[n.out[o]] = true;
    }
  }

  constexpr void run() {
    const code_place before = b_.place;
    const line_of_call kept(b_);
    list<char> pending = reached_nodes();  // by node: whether it is still to be differentiated
    const list<std::int32_t> order = canonical(pending);
    for (std::size_t at = order.size(); at-- > 0 && !b_.failed();) {
      const auto i = std::size_t(order[at]);
      if (!pending[i]) continue;
      appended_.set_owner(current_);
      current_ = std::int32_t(i);
      const node n = as_written(i);
      if (const scan_record* scan = scan_ended_by(b_, n)) {
        const scan_record r = *scan;
        b_.place = n.place;
        b_.place.gradient = true;
        r.gradient(*this, r);
        for (auto k = std::size_t(r.begin); k < i; ++k) pending[k] = 0;
        continue;
      }
      bool reached = false;
      for (int o = 0; o < n.outputs; ++o)
        if (std::size_t(n.out[o]) < gradients_.size() && gradients_[std::size_t(n.out[o])] >= 0) reached = true;
      bool wanted = false;
      for (int k = 0; k < n.inputs; ++k) wanted = wanted || wants(n, k);
      if (!reached || !wanted) continue;
      b_.place = n.place;
      b_.place.gradient = true;
      pull_back(n);
    }
    appended_.set_owner(current_);
    if (!b_.failed()) appended_.sort();
    b_.place = before;
  }

  /// A node with the operands of the program's call, as far as their gradients are wanted.
  constexpr node as_written(std::size_t i) const { return bypasses_.as_written(b_.program.nodes[i]); }
  /// True if a node reads a tensor that depends on one whose gradient is wanted.
  constexpr bool reads_needed(const node& n) const {
    const char* const needed = needed_.data();
    for (int i = 0; i < n.inputs; ++i)
      if (needed[n.in[i]]) return true;
    return bypasses_.any_of(n);
  }

 private:
  std::size_t first_, end_;
  wanted_bypasses bypasses_;

  /// Marks all results of a scan that reads a needed tensor as needed.
  constexpr void need_results(const scan_record& r) {
    bool any = false;
    for (std::int32_t i = r.begin; i < r.end; ++i) any = any || reads_needed(b_.program.nodes[std::size_t(i)]);
    for (std::int32_t i = r.close; i < r.end && any; ++i) needed_[std::size_t(b_.program.nodes[std::size_t(i)].output())] = true;
  }
  /// By node, whether a tensor that has a gradient now depends on it. A scan counts as one node.
  constexpr list<char> reached_nodes() const {
    const graph& g = b_.program;
    list<char> nodes(g.nodes.size(), 0), values(g.values.size(), 0);
    for (std::size_t v = 0; v < gradients_.size(); ++v) values[v] = gradients_[v] >= 0;
    const auto reach = [&](std::size_t i) {
      nodes[i] = 1;
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) values[std::size_t(n.in[k])] = 1;
      bypasses_.for_each_tensor_of(n, [&](std::int32_t tensor) { values[std::size_t(tensor)] = 1; });
    };
    const auto is_reached = [&](std::size_t i) {
      const node& n = g.nodes[i];
      for (int o = 0; o < n.outputs; ++o)
        if (values[std::size_t(n.out[o])]) return true;
      return false;
    };
    for (std::size_t i = end_; i-- > first_;) {
      const scan_record* const scan = scan_ended_by(b_, g.nodes[i]);
      if (!scan) {
        if (is_reached(i)) reach(i);
        continue;
      }
      const auto begin = std::size_t(scan->begin);
      bool any = false;
      for (auto k = std::size_t(scan->close); k < i; ++k) any = any || is_reached(k);
      for (std::size_t k = i + 1; k-- > begin && any;) reach(k);
      i = begin;
    }
    return nodes;
  }
  /// Sorts some nodes as if all nodes had the operands of the program's calls.
  constexpr list<std::int32_t> canonical(const list<char>& some) {
    const list<node> replaced = bypasses_.replace(b_.program);
    const canonical_order sorted(b_.program, some);
    bypasses_.put_back(b_.program, replaced);
    list<std::int32_t> found;
    for (const std::int32_t i : sorted) found.push_back(i);
    return found;
  }

  constexpr void pull_back(const node& n) {
    switch (n.kind->id) {
      case op::einsum.id: return einsum_gradient(*this, n);
      case op::map.id: return map_gradient(*this, n);
      case op::scale.id: return scale_gradient(*this, n);
      case op::cast.id: return cast_gradient(*this, n);
      case op::reshape.id: return reshape_gradient(*this, n);
      case op::annotate.id: return annotate_gradient(*this, n);
      case op::carry.id: return b_.fail(fault::gradient_of_loop, "while_loop");
      default: break;
    }
    if (const auto& gradient = b_.program.rules_of(n.kind).gradient) gradient(*this, n);
    else b_.fail(fault::not_differentiable, name(n.kind));
  }
};

}}}  // namespace gshard::v0::detail
