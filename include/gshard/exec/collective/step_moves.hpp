// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The tensors that one communication step moves, with their shards and groups of devices.

#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/collective/moves.hpp>
#include <gshard/exec/collective/replica_shares.hpp>
#include <gshard/exec/reduce/combine_operands.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// How a step that reshards moves elements between devices. Other moves of plans are exchanges, such as all_to_all.
enum class move_kind : std::uint8_t { exchange, gather, all_reduce, reduce_scatter, ragged };
inline constexpr std::size_t move_kinds = 5;
constexpr move_kind move_kind_of(op_ref kind) {
  if (traits(kind).ragged) return move_kind::ragged;
  return kind == op::all_gather       ? move_kind::gather
         : kind == op::all_reduce     ? move_kind::all_reduce
         : kind == op::reduce_scatter ? move_kind::reduce_scatter
                                      : move_kind::exchange;
}

/// A tensor before and after a communication step.
struct moved_tensor {
  bound_value in, out;
};

/// The data movement of a communication step (or slice) of a plan: the pieces of its new shards that a device receives from each member of
/// its group. Computed from the shardings of operands and results.
class step_moves {
 public:
  /// `axes`: a mask of the cluster's axes. All tensors have elements of one size.
  step_moves(op_ref kind, const any_cluster& on, std::uint32_t axes, std::vector<moved_tensor> tensors)
      : kind_(kind), on_(on), axes_(axes), tensors_(std::move(tensors)) {
    if (!traits(kind).reshards)
      throw error("executor: a plan step of kind " + std::string(name(kind)) + " cannot be run");
    bool reads = false;
    for (const moved_tensor& t : tensors_) {
      const kernel::placement first = place_of(t.in, 0);  // no shard is larger, except with windows or a device order
      most_ += kernel::element_count(first.rank, first.extent);
      reads = reads || !t.in.windows.empty() || !t.out.windows.empty() || !t.in.positions.empty() || !t.out.positions.empty();
    }
    stays_ = !traits(kind).collective || group(0).size() == 1 || (reads && nothing_moves());
  }

  /// The moves of a step of a plan.
  step_moves(const node& step, const bound_plan& bound)
      : step_moves(step.kind, bound.on, bound.axes.mask(step.attr.axes), tensors_of(step, bound)) {
    if (traits(step.kind).ragged) row_counts_ = moved_tensor{bound.value(step.input(1)), bound.value(step.output(1))};
  }

  op_ref operation() const { return kind_; }
  move_kind kind() const { return move_kind_of(kind_); }
  bool gathers() const { return kind() == move_kind::gather; }
  bool all_reduces() const { return kind() == move_kind::all_reduce; }
  bool reduce_scatters() const { return kind() == move_kind::reduce_scatter; }
  const any_cluster& cluster() const { return on_; }
  std::uint32_t axes() const { return axes_; }
  std::span<const moved_tensor> tensors() const { return tensors_; }
  std::int64_t width() const { return size_of(tensors_[0].in.type); }
  /// The number of real numbers in an element: two if it is complex.
  std::int64_t parts() const { return width() / size_of(traits(tensors_[0].in.type).part); }
  /// How pending partial results are combined. A complex tensor counts as a tensor of its real and imaginary parts.
  combination how() const { return {traits(tensors_[0].in.type).part, tensors_[0].in.layout.pending}; }
  /// The devices that this process holds.
  std::size_t devices() const { return on_.devices().size(); }
  /// The largest number of elements of all operands on one device of the mesh.
  std::int64_t most() const { return most_; }
  /// Elements of all operands on a held device.
  std::int64_t elements(std::size_t i) const {
    std::int64_t n = 0;
    for (const moved_tensor& t : tensors_) n += t.in.elements(i);
    return n;
  }
  /// For a ragged exchange: the counts of rows in use. Otherwise null.
  const moved_tensor* row_counts() const { return row_counts_ ? &*row_counts_ : nullptr; }
  /// True if no data move between devices. All processes compute the same answer, and none calls the backend.
  bool stays() const { return stays_; }

  device_group group(std::size_t i) const { return device_group(on_.backend().extents(), axes_, on_.devices()[i]); }
  kernel::placement place_of(const bound_value& v, int device) const { return place(v, on_.backend().extents(), device); }

  /// The shares of groups of replicas in a sum. Small sums have no shares, because they are gathered at once.
  replica_shares shares() const {
    const bool small = all_reduces() && most_ * width() * group(0).size() <= small_sum_bytes;
    if (!has_levels() || may_hop() || small) return {};
    const std::uint32_t replicas = replica_axes();
    return replicas == 0 ? replica_shares() : replica_shares(on_.backend(), axes_, replicas);
  }

  /// The pieces of its new shards that a held device already has.
  std::vector<piece> kept(std::size_t i) const { return summed(i, on_.devices()[i]); }
  /// The pieces of another device's new shards that a held device has.
  std::vector<piece> summed(std::size_t i, int device) const {
    std::vector<piece> all;
    for (std::size_t t = 0; t < tensors_.size(); ++t) append(all, common(t, tensors_[t].in.places[i], place_of(tensors_[t].out, device)));
    return all;
  }
  /// Calls f(from, to, pieces) if member `to` of a group receives pieces from member `from`, or keeps them (from == to).
  void for_each_origin(const device_group& members, user_of_pieces f) const {
    const std::vector<int>& nodes = on_.backend().nodes().node;
    std::vector<int> node(std::size_t(members.size()), 0);
    for (std::size_t m = 0; m < node.size() && !nodes.empty(); ++m) node[m] = nodes[std::size_t(members.device(int(m)))];
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      detail::for_each_origin(t, places_of(tensors_[t].in, members), places_of(tensors_[t].out, members), node, hop_, f);
  }

  /// The same moves, in groups that extend along mesh axes with replicas, if nodes then receive fewer bytes. All groups that are part of
  /// one extended group make the same choice.
  step_moves spread_over_replicas() const {
    const std::uint32_t replicas = may_hop() ? replica_axes() : 0;
    if (replicas == 0) return *this;
    step_moves wide = as_exchange(hop::only);
    wide.axes_ |= replicas;
    return wide.bytes_between_nodes(wide.axes_) < bytes_between_nodes(wide.axes_) ? wide : *this;
  }
  /// True if members of a held device's group receive equal elements from other nodes. Hops then save bytes between nodes.
  bool has_hops() const {
    if (!may_hop() || gathers_whole_shards()) return false;
    bool passes = false;
    const step_moves second = as_exchange(hop::second);
    for (std::size_t i = 0; i < devices() && !passes; ++i)
      second.for_each_origin(group(i), [&](std::size_t, std::size_t, const std::vector<piece>&) { passes = true; });
    return passes;
  }
  /// The moves of one hop, as an exchange.
  step_moves as_exchange(hop which) const {
    step_moves part = *this;
    part.kind_ = op::all_to_all;
    part.hop_ = which;
    return part;
  }
  /// True if operands are sent from new shards, in the second hop.
  bool passes_on() const { return hop_ == hop::second; }
  /// Operand t in the shards of its senders.
  const bound_value& sent(std::size_t t) const { return passes_on() ? tensors_[t].out : tensors_[t].in; }

  /// True if every member of the groups receives the whole old shards of all other members.
  bool gathers_whole_shards() const {
    for (std::size_t i = 0; i < devices(); ++i) {
      const device_group members = group(i);
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const std::vector<kernel::placement> before = places_of(tensors_[t].in, members), after = places_of(tensors_[t].out, members);
        for (std::size_t from = 0; from < before.size(); ++from)
          for (std::size_t to = 0; to < after.size(); ++to)
            if (from != to && !is_sent_whole(t, before[from], before[to], after[to])) return false;
      }
    }
    return true;
  }

  /// Copies pieces from a held device's shards to its new ones.
  void copy(std::span<const piece> pieces, std::size_t i) const {
    for (const piece& b : pieces) copy(b, sent(b.tensor).data[i], sent(b.tensor).places[i], i);
  }
  /// Copies a piece from a shard with placement `home` to a held device's new shard.
  void copy(const piece& b, const std::byte* shard, const kernel::placement& home, std::size_t i) const {
    const bound_value& out = tensors_[b.tensor].out;
    const std::byte* const from = shard + inside(home, b.from) * width();
    std::byte* const to = out.data[i] + inside(out.places[i], b.to) * width();
    if (from != to)
      kernel::copy_block(from, kernel::row_major_strides(home.rank, home.extent), to,
                         kernel::row_major_strides(home.rank, out.places[i].extent), b.to.extent, home.rank, width());
  }

 private:
  op_ref kind_;
  any_cluster on_;
  std::uint32_t axes_;
  std::vector<moved_tensor> tensors_;
  std::int64_t most_ = 0;
  bool stays_ = false;
  hop hop_ = hop::only;
  std::optional<moved_tensor> row_counts_;

  static std::vector<moved_tensor> tensors_of(const node& step, const bound_plan& bound) {
    std::vector<moved_tensor> tensors;
    for (int i = 0; i < (traits(step.kind).ragged ? 1 : step.inputs); ++i)
      tensors.push_back({bound.value(step.input(i)), bound.value(step.output(i))});
    return tensors;
  }

  bool has_levels() const {
    const node_map& nodes = on_.backend().nodes();
    return hop_ == hop::only && !stays_ && !nodes.node.empty() && nodes.levels;
  }
  bool may_hop() const { return has_levels() && !all_reduces() && !reduce_scatters() && !row_counts_; }
  /// The other mesh axes along which devices hold replicas: of a tensor that is moved, or of all tensors of a sum.
  std::uint32_t replica_axes() const {
    replicas_of_step replicas(all_reduces() || reduce_scatters());
    for (const moved_tensor& t : tensors_) replicas.add(t.in.layout, t.out.layout);
    const std::span<const int> mesh = on_.backend().extents();
    std::uint32_t many = 0;
    for (std::size_t a = 0; a < mesh.size(); ++a)
      if (mesh[a] > 1) many |= 1u << a;
    return replicas.between_groups(axes_, many);
  }
  /// The bytes that nodes receive from others if equal elements are sent once. Adds up all groups that are part of a held device's group
  /// along `wide`.
  std::int64_t bytes_between_nodes(std::uint32_t wide) const {
    const backend& on = on_.backend();
    const step_moves moves = as_exchange(hop::first);
    std::vector<char> counted(std::size_t(device_count(on.extents())), 0);
    std::int64_t bytes = 0;
    for (const int held : on_.devices()) {
      const device_group all(on.extents(), wide, held);
      for (int k = 0; k < all.size(); ++k) {
        const device_group members(on.extents(), axes_, all.device(k));
        if (members.member() != 0 || std::exchange(counted[std::size_t(all.device(k))], char(1))) continue;
        moves.for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& pieces) {
          const auto node_of = [&](std::size_t m) { return on.nodes().node[std::size_t(members.device(int(m)))]; };
          if (node_of(from) != node_of(to))
            for (const piece& p : pieces) bytes += p.elements * width();
        });
      }
    }
    return bytes;
  }
  std::vector<kernel::placement> places_of(const bound_value& v, const device_group& members) const {
    std::vector<kernel::placement> places;
    for (int m = 0; m < members.size(); ++m) places.push_back(place_of(v, members.device(m)));
    return places;
  }
  static bool is_sent_whole(std::size_t t, const kernel::placement& from, const kernel::placement& before, const kernel::placement& after) {
    const std::int64_t elements = kernel::element_count(from.rank, from.extent);
    if (elements == 0) return true;
    const std::vector<piece> both = common(t, from, after);
    return !equal(from, before) && both.size() == 1 && both[0].elements == elements;
  }
  bool nothing_moves() const {
    const std::span<const int> mesh = on_.backend().extents();
    for (int device = 0; device < device_count(mesh); ++device) {
      const device_group members(mesh, axes_, device);
      bool moves = false;
      if (members.member() == 0)
        for_each_origin(members, [&](std::size_t from, std::size_t to, const auto&) { moves = moves || from != to; });
      if (moves) return false;
    }
    return true;
  }
};

}}}  // namespace gshard::v0::detail
