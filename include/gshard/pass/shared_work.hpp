// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/pass/versions.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// What follows from a way to share the work of a node among the devices of a mesh: how its operands are taken, how its results lie, and
/// what of them is still to be combined.
class shared_work : protected tensor_versions {
 protected:
  using tensor_versions::cost;

  constexpr shared_work(graph& g, const mesh_shape& mesh, const extents& e, strictness unsaid, std::int64_t combine_bytes)
      : tensor_versions(g, mesh, e, unsaid, combine_bytes), completed_(g.values.size(), 0), stays_(g.values.size(), 0) {}

  list<char> completed_;  // by value of the graph: somebody needs its sum
  list<char> stays_;      // by value of the graph: an output that may be pending, and nobody else has it

  static constexpr int factors = short_list::largest + 1;
  /// Axes by factor.
  struct cut_table {
    short_list by_factor[factors]{};
    constexpr short_list& operator[](int f) { return by_factor[f]; }
    constexpr const short_list& operator[](int f) const { return by_factor[f]; }
  };

  /// A way to share the work of a node: the factor that each axis cuts (or -1: none), and the axes of each factor.
  struct choice {
    int factor_of[max_axes]{-1, -1, -1, -1, -1, -1, -1, -1};
    cut_table cuts{};
    /// Of a convolution: axes that cut positions or taps of its second operand share out the elements of the first instead, which lies in
    /// blocks; of the second a device needs what reads its elements.
    bool by_elements = false;
    /// The order of the devices in which they share it.
    std::uint8_t order = 0;
  };

  /// Pending sums run through these.
  static constexpr bool is_linear(const node& n) {
    return n.kind == op::scale || n.kind == op::reshape || (n.kind == op::einsum && n.inputs == 1) ||
           (n.kind == op::map && n.attr.function->linear);
  }
  /// Parts of operands, and so of a result, that are still to be combined, over the axes of a mask: of all operands together, or of a
  /// product each of one.
  struct pending_parts {
    std::uint8_t axes = 0;
    reduction what = reduction::sum;
    bool each = false;        // the operands have some each
    std::uint8_t second = 0;  // then: those of operand 1; operand 0 has the others
    bool declared = false;    // of the result alone, as the program declares

    constexpr pending_parts of(int i) const {
      if (declared) return {};
      return each ? pending_parts{std::uint8_t(i == 0 ? axes & ~second : second), what} : *this;
    }
  };

  /// The axes whose devices a dim counts: cut over them, it has one index on each.
  constexpr std::uint32_t devices_counted(int dim) const {
    const gshard::dim& d = g_.dims[std::size_t(dim)];
    return d.what == dim::kind::blocks && d.number == 1 ? d.first : 0u;
  }
  /// Whether a device's block of a dim is what its block of another dim reads. The rows of two dims that are one are its blocks where the
  /// first dim counts them: they divide it, or the program is not bound.
  constexpr bool reads_own_block(const window& w, int dim, const short_list& axes) const {
    const bool rows = w.stride_dim != window::none && w.stride_dim == w.taps_dim;
    return (rows && !axes.empty() && devices_counted(w.over) == axes.mask()) || reads_its_block(w, dim, axes, e_);
  }

  /// The layout in which a node whose work is shared so takes or leaves a tensor.
  static constexpr sharding layout_of(const short_list& dims, const choice& c, const pending_parts& pending) {
    sharding s;
    s.rank = dims.count;
    for (int d = 0; d < dims.count; ++d)
      if (const short_list& axes = c.cuts.by_factor[dims[d]]; axes.count > 0) {
        s.axes[d] = axes;
        s.order = c.order;
      }
    s.partial = pending.axes;
    s.pending = pending.what;
    return s;
  }
  constexpr held_as operand_of(const node& n, int i, const choice& c, const pending_parts& pending) const {
    const short_list& loops = n.loops.in[i];
    held_as h{layout_of(loops, c, pending.of(i)), {}};
    if (n.loops.windows.empty()) return h;
    const dim_list& dims = g_.at(n.input(i)).dims;
    bool any = false, less = false;
    for (int d = 0; d < loops.size(); ++d) {
      const int w = n.kind == op::convolution ? row_of_read(n, i, d, c, h.layout[d]) : window_row(n, i, d);
      const bool whole = h.layout[d].empty();
      const window& read = g_.windows[std::size_t(w)];
      const bool needed = w && (whole ? reads_less(read, dims[d], e_) : !reads_own_block(read, dims[d], h.layout[d]));
      h.windows.push_back(needed ? w : 0);
      (whole ? less : any) |= needed;
    }
    if (any) return h;
    // What is read of dims that are whole is less to receive, but where all of them is there already.
    if (std::int32_t from = -1; !less || cost(n.input(i), h, from) >= cost(n.input(i), h.layout)) h.windows = {};
    return h;
  }
  /// The row of the window through which a convolution reads a dim of an operand, and the axes that cut the dim: those of its factor, if
  /// it has some.
  constexpr int row_of_read(const node& n, int i, int d, const choice& c, short_list& axes) const {
    const int tap = tap_factor(n, i, d);
    if (tap >= 0) {
      const short_list& second = c.cuts[factor_of_second(n, d)];
      if (c.by_elements && !second.empty()) {
        axes = second;
        return 0;
      }
      if (axes.empty() && !c.cuts[tap].empty()) {
        axes = c.cuts[tap];
        return row(read_by(n, d).by_taps());
      }
    }
    if (i == 1 && c.by_elements && !axes.empty())
      for (int k = 0; k < n.loops.in[0].size(); ++k)
        if (const int t = tap_factor(n, 0, k), f = n.loops.in[1][d]; t >= 0 && factor_of_second(n, k) == f)
          return row((f == t ? read_by(n, k).by_taps() : read_by(n, k)).inverse(g_.at(n.input(0)).dims[k]));
    return window_row(n, i, d);
  }
  constexpr const window& read_by(const node& n, int d) const { return g_.windows[std::size_t(window_row(n, 0, d))]; }
  /// What a convolution's second operand has of the positions and taps at which dim d of the first is read.
  static constexpr int factor_of_second(const node& n, int d) {
    const int tap = tap_factor(n, 0, d);
    return n.loops.in[1].contains(tap) ? tap : n.loops.in[0][d];
  }
  /// Whether both operands of a convolution with these cuts would be cut along a windowed dim.
  constexpr bool may_share_elements(const node& n, const choice& c) const {
    const sharding& first = version(first_[std::size_t(n.in[0])]).layout;
    for (int d = 0; d < first.rank; ++d)
      if (tap_factor(n, 0, d) >= 0 && !first[d].empty() && !c.cuts[factor_of_second(n, d)].empty()) return true;
    return false;
  }
  /// Whether devices that share elements need so much of the second operand that they share no work: most of what they read is elsewhere.
  constexpr bool repeats_elements(const node& n, const choice& c, const pending_parts& pending) const {
    const held_as h = operand_of(n, 1, c, pending);
    value v = g_.at(n.input(1));
    const std::int64_t share = shard_elements(v.dims, h.layout, e_);
    v.layout = h.layout;
    v.windows = h.windows;
    return shard_elements(v, g_.windows, e_) >= 2 * share;
  }
  constexpr int row(const window& w) const {
    const int r = row_of(g_.windows, w);
    if (r == 0) g_.problem.report(fault::too_many_dims, "window");
    return r;
  }
  /// The factors of taps, a bit each.
  static constexpr std::uint32_t taps_of(const node& n) {
    std::uint32_t taps = 0;
    if (n.kind != op::convolution) return taps;
    for (int d = 0; d < n.loops.in[0].size(); ++d)
      if (const int tap = tap_factor(n, 0, d); tap >= 0) taps |= 1u << tap;
    return taps;
  }
  constexpr std::int64_t operand_cost(const node& n, int i, const choice& c, const pending_parts& pending) const {
    if (n.loops.windows.empty()) return cost(n.in[i], layout_of(n.loops.in[i], c, pending.of(i)));
    const held_as h = operand_of(n, i, c, pending);
    std::int32_t from = -1;
    return h.windows.empty() ? cost(n.input(i), h.layout) : cost(n.input(i), h, from);
  }
  /// Two dims that become one, the first of them cut: a device then has what its block of the first reads of the result.
  constexpr dim_list windows_of_result(const node& n, const sharding& made) const {
    dim_list windows;
    if (n.kind != op::reshape || n.attr.integer[1] != 1) return windows;
    const int at = n.attr.integer[0], w = n.attr.integer[2];
    if (made[at].empty() || reads_own_block(g_.windows[std::size_t(w)], g_.at(n.output()).dims[at], made[at])) return windows;
    for (int d = 0; d < made.rank; ++d) windows.push_back(d == at ? w : 0);
    return windows;
  }
  /// An axis that cuts a factor which the result lacks leaves a pending sum over it.
  constexpr sharding result_layout(const node& n, int o, const choice& c, const pending_parts& pending) const {
    const short_list& dims = n.loops.out[o];
    sharding s = layout_of(dims, c, pending);
    for (int a = 0; a < axes_; ++a)
      if (c.factor_of[a] >= 0 && !dims.contains(c.factor_of[a])) s.partial = std::uint8_t(s.partial | (1u << a));
    if (s.partial != pending.axes)
      s.pending = n.kind == op::reduce   ? reduction(n.attr.integer[0])
                  : n.kind == op::argmax ? reduction::min
                                         : reduction::sum;
    return s;
  }

  /// Pending sums that run through a node: it is linear in all its operands together, they all have the same, and nobody needs one
  /// of them complete anyway.
  constexpr pending_parts pending_through(const node& n) const {
    if (n.kind == op::scatter_add) return pending_into_sum(n);
    if (!is_linear(n)) return {};
    for (int i = 0; i < n.inputs; ++i)
      if (completed_[std::size_t(n.input(i))]) return {};
    const sharding& first = version(first_[std::size_t(n.input(0))]).layout;
    for (int i = 1; i < n.inputs; ++i)
      if (const sharding& s = version(first_[std::size_t(n.in[i])]).layout;
          s.partial != first.partial || s.pending != first.pending)
        return {};
    if (first.partial == 0 || (first.pending != reduction::sum && n.kind != op::reshape)) return {};
    return {first.partial, first.pending};
  }

  /// The pending sums of the rows of a scatter, if they are then added to another tensor that has the same.
  constexpr pending_parts pending_into_sum(const node& n) const {
    const std::uint8_t axes = pending_sums(n.in[1]);
    const std::int32_t made = n.output();
    if (axes == 0 || completed_[std::size_t(made)]) return {};
    for (const node& next : g_.nodes) {
      if (next.kind != op::map || next.inputs != 2 || (next.in[0] != made && next.in[1] != made)) continue;
      const std::int32_t other = next.in[next.in[0] == made ? 1 : 0];
      if (first_[std::size_t(other)] >= 0 && !completed_[std::size_t(other)] && pending_sums(other) == axes)
        return {.axes = axes, .each = true, .second = axes};
    }
    return {};
  }
  constexpr std::uint8_t pending_sums(std::int32_t v) const {
    const sharding& s = version(first_[std::size_t(v)]).layout;
    return s.pending == reduction::sum ? s.partial : std::uint8_t(0);
  }
  /// Linear in each of its two operands alone, of a gather and a scatter in the one that has elements.
  static constexpr bool is_product(op kind) { return kind == op::einsum || kind == op::gather || kind == op::scatter_add; }
};

}}}  // namespace gshard::v0::detail
