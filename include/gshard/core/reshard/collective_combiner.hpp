// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The collective combiner: joins moves of several tensors between the same devices into one collective.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Moves with equal keys can be combined. Exchanges need the same axes and element size. Sums need the same axes, collective, element type
/// and reduction.
constexpr std::uint32_t start_key(op_ref kind, std::uint32_t axes, const value& v, reduction pending) {
  return axes | (traits(kind).sums ? std::uint32_t(kind->id) << 24 | std::uint32_t(v.type) << 16 | std::uint32_t(pending) << 20
                      : std::uint32_t(size_of(v.type)) << 16);
}

/// The collectives that the moves of one node start, if they are combined.
struct start_set {
  std::array<std::uint32_t, sharding_rule::most_in * move_list::most> keys{};
  std::size_t count = 0;
  std::int64_t alone = 0;  // collectives, if none are combined
  std::int64_t moved = 0;  // bytes
  static constexpr std::uint32_t not_combined = 1u << 31;  // no start_key

  constexpr void add(std::uint32_t key, std::int64_t bytes) {
    ++alone;
    moved += bytes;
    for (std::size_t i = 0; i < count; ++i)
      if (keys[i] == key) return;
    keys[count++] = key;
  }
  constexpr void add(const move_list& way, const value& v, reduction pending) {
    for (const move& m : way) {
      for (int i = 0; traits(m.kind).ragged && i < 2; ++i) add(not_combined + std::uint32_t(count), 0);  // counts, and rows
      if (traits(m.kind).collective && !traits(m.kind).ragged) add(start_key(m.kind, m.axes, v, pending), 0);
    }
    moved += way.bytes;
  }
};

/// Adds communication steps to a plan. A move joins the last step with its key, which then starts once for several tensors, up to the
/// capacity of a node. The operand of the move must be made before that step. Alternatively, a move makes the operand, only moves are in
/// between, and that move can go before the step. A cast that makes the operand can always go there, if its own operand is made before that
/// step. Exchanges of different kinds become an all_to_all.
///
/// If extents are known, a combined step receives at most `most_bytes` per device, so that large moves can still overlap with computation.
/// If not, two moves are combined only if nothing is computed between them, so that no memory is held longer. Moves to and from a device
/// order, and ragged ones, are not combined. Combining does not change a bit of any result.
class collective_combiner {
 public:
  constexpr collective_combiner(list<node>& steps, list<value>& values, const list<window>& windows, const extents& e,
                                std::int64_t most_bytes)
      : steps_(steps), values_(values), windows_(windows), e_(e), most_bytes_(most_bytes) {}

  constexpr bool combines() const { return most_bytes_ > 0; }

  /// Later moves do not join earlier steps.
  constexpr void forget() { last_ = {}; }

  /// Adds a move of one tensor. An earlier step makes its operand.
  constexpr void add(const node& n) {
    const auto end = std::int32_t(steps_.size());
    const bool has_order = operand(n).layout.order || values_[std::size_t(n.out[0])].layout.order;
    if (!combines() || has_order || traits(n.kind).ragged) return steps_.push_back(n);
    const std::uint32_t key = key_of(n);
    for (std::int32_t& last : last_) {
      if (key_of(at(last)) != key) continue;
      if (at(last).inputs < most_moves) {
        const std::int32_t maker = operand(n).producer;
        const bool is_there = maker < last;
        const bool adjacent = (!is_there || known_bytes(n) < 0) && only_moves_after(last);
        const bool moves_up = !is_there && (adjacent || traits(at(maker).kind).converts) && may_go_before(maker, last);
        if ((is_there || moves_up) && scope_of(at(last)) == scope_of(n) && may_join(at(last), n, adjacent)) {
          if (!is_there) move_up(maker, last);
          return join(last, n);
        }
      }
      last = end;
      steps_.push_back(n);
      return;
    }
    last_.push_back(end);
    steps_.push_back(n);
  }

 private:
  list<node>& steps_;
  list<value>& values_;
  const list<window>& windows_;
  const extents& e_;
  std::int64_t most_bytes_;
  list<std::int32_t> last_;  // by key: the last step that moves can join

  constexpr node& at(std::int32_t step) { return steps_.data()[step]; }
  constexpr const value& operand(const node& n) const { return values_.data()[n.in[0]]; }

  constexpr std::uint32_t key_of(const node& n) const {
    const value& v = operand(n);
    return start_key(n.kind, n.attr.axes, v, v.layout.pending);
  }
  /// The remat scope of a move in the forward pass, or 0. A move in a scope may run again, so moves of other scopes must not join it.
  static constexpr std::int32_t scope_of(const node& n) { return n.place.gradient ? 0 : n.place.remat; }
  /// Bytes that a device receives, or -1 if extents are unknown.
  constexpr std::int64_t known_bytes(const node& n) const {
    std::uint32_t axes = n.attr.axes;
    for (int i = 0; i < n.inputs; ++i) {
      const value &before = values_[std::size_t(n.in[i])], &after = values_[std::size_t(n.out[i])];
      axes |= before.layout.used() | after.layout.used();
      for (int d = 0; d < before.rank(); ++d)
        if (!e_.knows_dim(before.dims[d])) return -1;
    }
    return axes & ~e_.known_axes ? -1 : bytes_received(n, values_, windows_, e_);
  }
  constexpr bool may_join(const node& step, const node& n, bool adjacent) const {
    const std::int64_t first = known_bytes(step), second = first < 0 ? -1 : known_bytes(n);
    return second < 0 ? adjacent : first + second <= most_bytes_;
  }
  constexpr bool only_moves_after(std::int32_t step) {
    for (auto k = std::int32_t(steps_.size()); --k > step;)
      if (const op_ref kind = at(k).kind; !traits(kind).reshards && !traits(kind).alias && !traits(kind).converts) return false;
    return true;
  }
  constexpr bool may_go_before(std::int32_t step, std::int32_t there) {
    const node& n = at(step);
    for (int i = 0; i < n.inputs; ++i)
      if (values_[std::size_t(n.in[i])].producer >= there) return false;
    return (traits(n.kind).reshards || traits(n.kind).converts) && step != there;
  }
  constexpr void set_producer(std::int32_t step) {
    for (int o = 0; o < at(step).outputs; ++o) values_[std::size_t(at(step).out[o])].producer = step;
  }
  constexpr void join(std::int32_t step, const node& n) {
    node& all = at(step);
    if (all.inputs == 1) set_operation_of_move(all, 0, all.kind);
    set_operation_of_move(all, all.inputs, n.kind);
    if (all.kind != n.kind) all.kind = op::all_to_all;
    all.in[all.inputs++] = n.in[0];
    all.out[all.outputs++] = n.out[0];
    set_producer(step);
  }
  /// Moves a step up to index `there`. The steps from there on move down by one.
  constexpr void move_up(std::int32_t step, std::int32_t there) {
    const node moved = at(step);
    for (std::int32_t k = step; k > there; --k) {
      at(k) = at(k - 1);
      set_producer(k);
    }
    at(there) = moved;
    set_producer(there);
    for (std::int32_t& last : last_) {
      const bool is_it = last == step;
      if (is_it) last = there;
      else if (last >= there && last < step) ++last;
    }
  }
};

}}}  // namespace gshard::v0::detail
