// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sorts the nodes of a graph into an order that depends on the graph alone. So a plan does not depend on the order of independent
// statements in a program.

#include <gshard/base/hash.hpp>
#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/pass/live_nodes.hpp>
#include <gshard/pass/schedule/update_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The canonical order: by level, then by a hash of what a node computes, from which operands, and who reads it. The level of a node is the
/// length of the longest chain of nodes before it. Nodes of loops separate levels: no node passes them.
class canonical_order {
 public:
  constexpr explicit canonical_order(const graph& g)
      : g_(g), levels_(g.nodes.size(), 0), made_(g.values.size(), 0), keys_(g.nodes.size(), 0) {
    find_levels();
    hash_operands();
    hash_readers();
    order_.reserve(g.nodes.size());
    for (std::size_t i = 0; i < g.nodes.size(); ++i) order_.push_back(std::int32_t(i));
    const std::int32_t* const levels = levels_.data();
    const std::uint64_t* const keys = keys_.data();
    std::sort(order_.begin(), order_.end(), [levels, keys](std::int32_t a, std::int32_t b) {
      if (levels[a] != levels[b]) return levels[a] < levels[b];
      return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
    });
  }

  constexpr const std::int32_t* begin() const { return order_.begin(); }
  constexpr const std::int32_t* end() const { return order_.end(); }

 private:
  using hash = fnv1a<std::uint64_t>;

  const graph& g_;
  list<std::int32_t> levels_;  // by node
  list<std::uint64_t> made_;   // by value: a hash of what makes it
  list<std::uint64_t> keys_;   // by node
  list<std::int32_t> order_;

  constexpr void find_levels() {
    list<std::int32_t> above_list(g_.values.size(), 0);  // by value: the least level of a reader
    list<std::int32_t> root_list, read_list, written_list;  // by value, if parameters are updated: see below
    bool updates = false;
    for (const node& n : g_.nodes) updates = updates || updates_parameters(n);
    if (updates) {
      root_list.reserve(g_.values.size());
      for (std::size_t v = 0; v < g_.values.size(); ++v) root_list.push_back(std::int32_t(v));
      read_list = list<std::int32_t>(g_.values.size(), 0);     // of a storage: the least level of an update
      written_list = list<std::int32_t>(g_.values.size(), 0);  // of a storage: the least level of a reader after its last update
    }
    std::int32_t *const above = above_list.data(), *const root = root_list.data(), *const read = read_list.data(),
                 *const written = written_list.data(), *const levels = levels_.data();
    std::int32_t floor = 0, top = 0;
    std::size_t i = 0;
    for (const node& n : g_.nodes) {
      std::int32_t level = is_of_loop(n.kind) ? top : floor;
      for (int k = 0; k < n.inputs; ++k) level = std::max(level, above[n.in[k]]);
      for (int k = 0; updates && k < n.inputs; ++k) {
        const std::int32_t r = root[n.in[k]];
        level = std::max(level, k < n.in_place ? std::max(read[r], written[r]) : written[r]);
      }
      for (int k = 0; updates && k < n.inputs; ++k) {
        const std::int32_t r = root[n.in[k]];
        read[r] = std::max(read[r], level + 1);
        if (k < n.in_place) written[r] = level + 1;
      }
      for (int o = 0; o < n.outputs; ++o) {
        above[n.out[o]] = level + 1;
        if (updates && (o < n.in_place || (o == 0 && traits(n.kind).alias))) root[n.out[o]] = root[n.in[o]];
      }
      levels[i++] = level;
      top = std::max(top, level + 1);
      if (is_of_loop(n.kind)) floor = top;
    }
  }
  /// Hashes of dims: the order in which a program makes derived dims makes no difference.
  constexpr list<std::uint64_t> hash_dims() const {
    list<std::uint64_t> found;
    found.reserve(g_.dims.size());
    for (const dim& d : g_.dims) {
      hash h;
      h.add(std::uint64_t(d.what) << 32 | std::uint64_t(d.letter)).add(std::uint64_t(d.number)).add(std::uint64_t(d.divisor));
      h.add(std::uint64_t(d.first_times)).add(std::uint64_t(d.second_times));
      const bool derived = d.what != dim::kind::bound && d.what != dim::kind::fixed && d.what != dim::kind::blocks;
      for (const std::size_t of : {std::size_t(d.first), std::size_t(d.second)}) h.add(derived && of < found.size() ? found[of] : of);
      found.push_back(h.value());
    }
    return found;
  }
  constexpr void hash_operands() {
    const list<std::uint64_t> dims_list = hash_dims();
    const std::uint64_t* const dims = dims_list.data();
    std::uint64_t* const made = made_.data();
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) made[g_.inputs[i].value] = hash().add(1).add(i).value();
    for (std::size_t i = 0; i < g_.parameters.size(); ++i) made[g_.parameters[i].value] = hash().add(2).add(i).value();
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const node& n = g_.nodes[i];
      hash h = of(n);
      for (int d = 0; d < n.rule.windows.size(); ++d)
        if (const int row = n.rule.windows[d]; row != 0) add(h, g_.windows[std::size_t(row)], dims);
      for (int k = 0; k < n.inputs; ++k) h.add(made[n.in[k]]).add(n.rule.in[k].bits);
      for (int o = 0; o < n.outputs; ++o) {
        const value& v = g_.at(n.out[o]);
        h.add(n.rule.out[o].bits).add(std::uint64_t(v.type));
        for (int d = 0; d < v.rank(); ++d) h.add(dims[v.dims[d]]).add(v.layout.axes[d].bits);
      }
      keys_[i] = h.value();
      for (int o = 0; o < n.outputs; ++o) made[n.out[o]] = hash(h).add(std::uint64_t(o)).value();
    }
  }
  /// Of what the node computes: what planning depends on.
  static constexpr hash of(const node& n) {
    const attributes& a = n.attr;
    hash h;
    h.add(std::uint64_t(n.kind) << 32 | std::uint64_t(n.inputs) << 16 | std::uint64_t(n.outputs) << 8 | n.rule.blocked);
    h.add(std::uint64_t(a.dim) << 32 | std::uint64_t(a.combine) << 16 | std::uint64_t(a.change) << 8 | std::uint64_t(a.may_move) << 1 |
          std::uint64_t(a.function != nullptr && a.function->linear));
    if (a.function != nullptr) h.add(std::uint64_t(a.function->own + 1));
    h.add(std::uint64_t(n.place.remat) << 1 | std::uint64_t(n.place.gradient));
    return h;
  }
  static constexpr void add(hash& h, const window& w, const std::uint64_t* dims) {
    if (w.over >= 0) h.add(dims[w.over]);
    for (const std::int32_t number : {w.stride, w.low, w.step, w.dilation, std::int32_t(w.wrap)}) h.add(std::uint64_t(number));
  }
  /// Adds to each node's key a hash of the nodes that read its results.
  constexpr void hash_readers() {
    list<std::uint64_t> readers_list(g_.values.size(), 0);
    std::uint64_t* const readers = readers_list.data();
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) readers[g_.outputs[i].value] += hash().add(3).add(i).value();
    for (std::size_t i = 0; i < g_.parameters.size(); ++i)
      if (g_.parameters[i].updated >= 0) readers[g_.parameters[i].updated] += hash().add(4).add(i).value();
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      const node& n = g_.nodes[i];
      hash h;
      h.add(keys_[i]);
      for (int o = 0; o < n.outputs; ++o) h.add(readers[n.out[o]]);
      keys_[i] = h.value();
      for (int k = 0; k < n.inputs; ++k) readers[n.in[k]] += hash(h).add(std::uint64_t(k)).value();
    }
  }
};

/// Sorts the nodes of a graph. Their `place.position` says where they were, with updates of parameters where devices run them.
/// @see step_order
constexpr void sort_nodes(graph& g) {
  std::int32_t position = 0;
  for (const std::int32_t i : update_order(g, live_nodes(g))) g.nodes[std::size_t(i)].place.position = position++;
  const canonical_order order(g);
  list<node> sorted;
  sorted.reserve(g.nodes.size());
  for (const std::int32_t i : order) {
    const node& n = g.nodes[std::size_t(i)];
    for (int o = 0; o < n.outputs; ++o) g.at(n.out[o]).producer = std::int32_t(sorted.size());
    sorted.push_back(n);
  }
  g.nodes.swap(sorted);
}

}}}  // namespace gshard::v0::detail
