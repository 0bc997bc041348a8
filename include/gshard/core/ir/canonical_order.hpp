// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An order of the nodes of a graph that depends on the graph alone. Therefore gradients and plans do not depend on the order of independent
// statements in a program.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The canonical order: by level, then by the rank of the result, then by a hash of a node's computation, operands and readers. Levels
/// follow the longest chains of nodes from a node to the end. Nodes of loops separate levels: no node passes them.
// Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
class canonical_order {
 public:
  /// `some`: by node, whether it is sorted; empty: all are. The order of some nodes depends on no others, except the nodes that they read.
  constexpr explicit canonical_order(const graph& g, list_view<char> some = {})
      : g_(g), some_(some.empty() ? nullptr : some.data()), levels_(g.nodes.size(), 0), keys_(g.nodes.size(), 0) {
    find_levels();
    hash_operands();
    hash_readers();
    sort();
  }

  constexpr std::int32_t* begin() { return order_.begin(); }
  constexpr const std::int32_t* begin() const { return order_.begin(); }
  constexpr const std::int32_t* end() const { return order_.end(); }
  constexpr std::size_t size() const { return order_.size(); }

 private:
  const graph& g_;
  const char* const some_;
  list<std::int32_t> levels_;  // by node
  list<std::uint64_t> keys_;   // by node
  list<std::int32_t> order_;
  std::int32_t top_ = 0;  // above all levels

  // Odd multipliers, which spread the bits of a hash.
  static constexpr std::uint64_t first = 0x9e3779b97f4a7c15, second = 0xc2b2ae3d27d4eb4f, third = 0x165667b19e3779f9,
                                 fourth = 0xd6e8feb86659fd93;

  /// Counts levels from the end, so that a node comes right before its first reader, as in most programs.
  constexpr void find_levels() {
    list<std::int32_t> below_list(g_.values.size(), 0);  // by value: the least level of its maker
    list<std::int32_t> root_list, read_list, written_list;  // by value, if parameters are updated: see below
    const node* const nodes = g_.nodes.data();
    const char* const some = some_;
    const std::size_t count = g_.nodes.size();
    bool updates = false;
    for (std::size_t i = 0; i < count && !updates; ++i) updates = nodes[i].in_place > 0;
    if (updates) {
      root_list = storage_roots(g_.nodes, g_.values.size());
      read_list = list<std::int32_t>(g_.values.size(), 0);     // of a storage: the least level of an update before its readers
      written_list = list<std::int32_t>(g_.values.size(), 0);  // of a storage: the least level of a reader before its updates
    }
    const std::int32_t* const root = root_list.data();
    std::int32_t *const below = below_list.data(), *const read = read_list.data(), *const written = written_list.data(),
                 *const levels = levels_.data();
    std::int32_t floor = 0, top = 0;
    for (std::size_t i = count; i-- > 0;) {
      if (some && !some[i]) continue;
      const node& n = nodes[i];
      const bool of_loop = g_.while_loops != 0 && is_of_loop(n.kind);
      std::int32_t level = of_loop ? top : floor;
      for (int o = 0; o < n.outputs; ++o)
        if (below[n.out[o]] > level) level = below[n.out[o]];
      if (updates) {
        for (int k = 0; k < n.inputs; ++k) {
          const std::int32_t r = root[n.in[k]];
          if (written[r] > level) level = written[r];
          if (k < n.in_place && read[r] > level) level = read[r];
        }
        for (int k = 0; k < n.inputs; ++k) {
          const std::int32_t r = root[n.in[k]];
          if (read[r] <= level) read[r] = level + 1;
          if (k < n.in_place) written[r] = level + 1;
        }
      }
      for (int k = 0; k < n.inputs; ++k)
        if (below[n.in[k]] <= level) below[n.in[k]] = level + 1;
      levels[i] = level;
      if (level >= top) top = level + 1;
      if (of_loop) floor = top;
    }
    top_ = top;
    for (std::size_t i = 0; i < count; ++i) levels[i] = top - 1 - levels[i];
  }
  /// Hashes of dims. They do not depend on the order in which a program makes derived dims.
  constexpr list<std::uint64_t> hash_dims() const {
    list<std::uint64_t> found;
    found.reserve(g_.dims.size());
    for (const dim& d : g_.dims) {
      std::uint64_t h = std::uint64_t(d.what) * first + std::uint64_t(d.letter) * second + std::uint64_t(d.number) * third +
                        std::uint64_t(d.divisor) * fourth + std::uint64_t(d.first_times) * (first + 2) +
                        std::uint64_t(d.second_times) * (second + 2);
      const bool derived = d.what != dim::kind::bound && d.what != dim::kind::fixed && d.what != dim::kind::blocks;
      h += (derived && d.first < found.size() ? found[d.first] : d.first) * (third + 2);
      h += (derived && d.second < found.size() ? found[d.second] : d.second) * (fourth + 2);
      found.push_back(h ^ h >> 29);
    }
    return found;
  }
  /// Nodes whose hashes are needed: if only some are sorted, these and all nodes that they depend on.
  constexpr list<char> hashed_nodes() const {
    list<char> hashed(g_.nodes.size(), some_ ? char(0) : char(1));
    if (!some_) return hashed;
    list<char> read_list(g_.values.size(), 0);
    char *const read = read_list.data(), *const found = hashed.data();
    const node* const nodes = g_.nodes.data();
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      const node& n = nodes[i];
      bool is_read = some_[i] != 0;
      for (int o = 0; o < n.outputs; ++o) is_read = is_read || read[n.out[o]];
      if (!is_read) continue;
      found[i] = 1;
      for (int k = 0; k < n.inputs; ++k) read[n.in[k]] = 1;
    }
    return hashed;
  }
  constexpr void hash_operands() {
    const list<std::uint64_t> dims_list = hash_dims();
    const list<char> hashed_list = hashed_nodes();
    const char* const hashed = hashed_list.data();
    list<std::uint64_t> made_list(g_.values.size(), 0);  // by value: a hash of its producer
    const std::uint64_t* const dims = dims_list.data();
    const node* const nodes = g_.nodes.data();
    const value* const values = g_.values.data();
    std::uint64_t *const made = made_list.data(), *const keys = keys_.data();
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) made[g_.inputs[i].value] = (i + 1) * first;
    for (std::size_t i = 0; i < g_.parameters.size(); ++i) made[g_.parameters[i].value] = (i + 1) * second;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      if (!hashed[i]) continue;
      const node& n = nodes[i];
      const attributes& a = n.attr;
      const std::uint64_t flags = std::uint64_t(n.kind->id) << 32 | std::uint64_t(n.inputs) << 24 | std::uint64_t(a.combine) << 16 |
                                  std::uint64_t(a.change) << 8 | std::uint64_t(a.may_move) << 1 | std::uint64_t(n.place.gradient);
      std::uint64_t h = flags * first + (std::uint64_t(n.rule.blocked) << 32 | std::uint64_t(a.dim)) * second;
      if (traits(n.kind).linear == linearity::of_function)
        h += (std::uint64_t(a.function->own + 2) << 1 | std::uint64_t(a.function->linear)) * fourth;
      for (int k = 0; k < n.inputs; ++k) h = (h ^ h >> 31) * first + made[n.in[k]] + n.rule.in[k].bits * second;
      for (int o = 0; o < n.outputs; ++o) {
        const value& v = values[n.out[o]];
        h = (h ^ h >> 31) * third + n.rule.out[o].bits * second + std::uint64_t(v.type);
        for (int d = 0; d < v.dims.count; ++d) h = h * fourth + dims[v.dims[d]] + v.layout.axes[d].bits * first;
      }
      for (int d = 0; d < n.rule.windows.count; ++d)
        if (const int row = n.rule.windows[d]; row != 0) {
          const window& w = g_.windows[std::size_t(row)];
          h = h * fourth + std::uint64_t(w.stride) * first + std::uint64_t(w.low) * second + std::uint64_t(w.step) * third +
              std::uint64_t(w.dilation) * (first + 2) + std::uint64_t(w.wrap);
        }
      h = (h ^ h >> 31) * second;
      h ^= h >> 29;
      keys[i] = h;
      for (int o = 0; o < n.outputs; ++o) made[n.out[o]] = h + std::uint64_t(o) * third;
    }
  }
  /// Adds to each node's key a hash of the nodes that read its results.
  constexpr void hash_readers() {
    list<std::uint64_t> readers_list(g_.values.size(), 0);
    const node* const nodes = g_.nodes.data();
    const value* const values = g_.values.data();
    std::uint64_t *const readers = readers_list.data(), *const keys = keys_.data();
    const char* const some = some_;
    for (std::size_t i = 0; i < g_.outputs.size() && !some; ++i) readers[g_.outputs[i].value] += (i + 1) * third;
    for (std::size_t i = 0; i < g_.parameters.size() && !some; ++i)
      if (g_.parameters[i].updated >= 0) readers[g_.parameters[i].updated] += (i + 1) * fourth;
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      if (some && !some[i]) continue;
      const node& n = nodes[i];
      std::uint64_t h = keys[i];
      for (int o = 0; o < n.outputs; ++o) h = (h ^ h >> 31) * fourth + readers[n.out[o]];
      h = (h ^ h >> 31) * first;
      h ^= h >> 29;
      keys[i] = h;
      for (int k = 0; k < n.inputs; ++k) readers[n.in[k]] += (h + std::uint64_t(k)) * second;
      // Results of higher rank first: they are larger, and tensors that are resharded with them need no reshard of their own.
      keys[i] = h >> 4 | std::uint64_t(15 - values[n.out[0]].dims.count) << 60;
    }
  }
  /// Puts nodes into their levels, and sorts each level.
  constexpr void sort() {
    list<std::int32_t> begin_list(std::size_t(top_) + 1, 0);
    std::int32_t* const begin = begin_list.data();
    const std::int32_t* const levels = levels_.data();
    const std::uint64_t* const keys = keys_.data();
    const char* const some = some_;
    const auto count = std::int32_t(g_.nodes.size());
    for (std::int32_t i = 0; i < count; ++i)
      if (!some || some[i]) ++begin[levels[i] + 1];
    for (std::int32_t l = 0; l < top_; ++l) begin[l + 1] += begin[l];
    order_ = list<std::int32_t>(std::size_t(begin[top_]), 0);
    std::int32_t* const order = order_.data();
    for (std::int32_t i = 0; i < count; ++i)
      if (!some || some[i]) order[begin[levels[i]]++] = i;  // now begin[l] is the begin of level l + 1
    for (std::int32_t l = 0, from = 0; l < top_; from = begin[l++]) {
      const std::int32_t to = begin[l];
      std::int32_t gap = 1;
      while (gap < (to - from) / 3) gap = 3 * gap + 1;
      for (; gap > 0; gap /= 3)  // shellsort
        for (std::int32_t i = from + gap; i < to; ++i) {
          const std::int32_t n = order[i];
          const std::uint64_t key = keys[n];
          std::int32_t at = i;
          for (; at - gap >= from && (keys[order[at - gap]] > key || (keys[order[at - gap]] == key && order[at - gap] > n)); at -= gap)
            order[at] = order[at - gap];
          order[at] = n;
        }
    }
  }
};

}}}  // namespace gshard::v0::detail
