// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The nodes of a graph that make or read each of its values.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The nodes that make or read each value.
class neighbors {
 public:
  constexpr neighbors() = default;
  /// `order`: the order in which `of` visits nodes; empty: their order in the graph.
  constexpr explicit neighbors(const graph& g, list_view<std::int32_t> order = {}) : begin_(g.values.size() + 1, 0) {
    // Pointers: a subscript of a list is a call, and calls dominate the cost of constexpr evaluation here.
    const std::size_t values = g.values.size(), count = g.nodes.size();
    const node* const nodes = g.nodes.data();
    std::int32_t* const begin = begin_.data();
    for (std::size_t i = 0; i < count; ++i) {
      const node& n = nodes[i];
      for (int k = 0; k < n.inputs; ++k) ++begin[n.in[k] + 1];
      for (int o = 0; o < n.outputs; ++o) ++begin[n.out[o] + 1];
    }
    for (std::size_t v = 1; v <= values; ++v) begin[v] += begin[v - 1];
    nodes_ = list<std::int32_t>(std::size_t(begin[values]));
    list<std::int32_t> next_free = begin_;
    std::int32_t *const next = next_free.data(), *const near = nodes_.data();
    const std::int32_t* const at = order.size() == count ? order.data() : nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t id = at ? at[i] : std::int32_t(i);
      const node& n = nodes[id];
      for (int k = 0; k < n.inputs; ++k) near[next[n.in[k]]++] = id;
      for (int o = 0; o < n.outputs; ++o) near[next[n.out[o]]++] = id;
    }
  }
  constexpr bool empty() const { return begin_.empty(); }
  template <class Visit>
  constexpr void of(std::int32_t v, Visit visit) const {
    const std::int32_t* const node_of = nodes_.data();
    const std::int32_t end = begin_[std::size_t(v) + 1];
    for (std::int32_t i = begin_[std::size_t(v)]; i < end; ++i) visit(node_of[i]);
  }

 private:
  list<std::int32_t> begin_, nodes_;
};

}}}  // namespace gshard::v0::detail
