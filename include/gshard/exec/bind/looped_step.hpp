// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a looped einsum: devices send blocks around a ring while they compute (a collective matmul).

#include <gshard/core/base/bf16.hpp>
#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline kernel::precision precision_of(const node& einsum) {
  return einsum.attr.rounds_to_bf16 ? kernel::precision::bf16 : kernel::precision::full;
}

/// A looped einsum, bound to the memory of all devices that this process holds. One of its three tensors, the ring operand, is sharded
/// into one block per member of a group of n. Every member sends its block to the member before it. In iteration t, member m has this
/// block, modulo n:
///
///     m + t      of an operand, first its own: contracts it into the block of the result that depends on it
///     m + t + 1  of the result, last its own: adds the product of its operands to the partial sum
///
/// The other two tensors are read and written in place. Communication overlaps with computation: an operand's block is sent
/// while it is used, a partial sum while the device computes its own addend. A device receives as many bytes as in an all_gather or a
/// reduce_scatter. It needs buffers for two blocks of an operand, or three of a sum. Blocks are added in the order of the iterations.
/// Therefore sums may differ in rounding from an einsum of the gathered operand, but not between backends. Blocks of a tensor that is sent
/// in bf16 are rounded before they are sent. A device then also rounds its own block of an operand.
template <class T>
class looped_step {
 public:
  /// attr.axes is a mask of the cluster's axes, not of the plan's.
  looped_step(const node& step, const bound_plan& all)
      : n_(step),
        on_(all.on),
        axes_(step.attr.axes),
        sums_(ring_carries_sum(step)),
        rounds_(bf16_travels(step, all)),
        travels_(std::size_t(step.attr.ring_operand)),
        tensors_{&all.value(step.input(0)), &all.value(step.input(1)), &all.value(step.output())},
        parts_(on_.devices().size()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
  }

  /// After an error, the device still sends and receives blocks, because others wait for them. The error is thrown at the end.
  void operator()() {
    std::exception_ptr problem;
    const auto attempt = [&](auto f) {
      try {
        f();
      } catch (...) {
        if (!problem) problem = std::current_exception();
      }
    };
    const std::size_t last = parts_[0].turns.size() - 1;
    for (std::size_t t = 0; t <= last; ++t) {
      pending_exchange under_way;
      if (sums_ ? t > 0 : t < last) attempt([&] { under_way = travel(sums_ ? t - 1 : t); });
      attempt([&] {
        for (std::size_t i = 0; i < parts_.size(); ++i) compute(i, t);
      });
      attempt([&] { under_way.finish(); });
      if (sums_ && t > 0)
        for (std::size_t i = 0; i < parts_.size(); ++i) add_received(i, t);
    }
    if (problem) std::rethrow_exception(problem);
  }

 private:
  struct turn {
    std::optional<kernel::contraction<T>> product;  // none if a block is empty
    std::array<std::int64_t, 3> offset{};           // in bytes, of the elements used in each tensor's shard
    std::int64_t bytes = 0;                         // of this iteration's block
  };
  struct part {
    std::vector<turn> turns;
    bool clears = false;  // the result is zeroed first, because some products only add to it
    std::array<buffer, 2> room;
    std::array<buffer, 2> wire;  // blocks as sent: an operand's of iteration t in wire[t % 2]; a sum's: sent, received
    std::size_t before = 0, after = 0;  // the neighbors in the ring
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };

  node n_;
  any_cluster on_;
  std::uint32_t axes_;
  bool sums_, rounds_;
  std::size_t travels_;
  std::array<const bound_value*, 3> tensors_;
  std::vector<part> parts_;
  std::vector<exchange_part> exchange_;

  static bool bf16_travels(const node& step, const bound_plan& all) {
    const value& ring = all.plan.at(ring_operand(step));
    return sent(ring).type != ring.type && device_group(all.on.backend().extents(), step.attr.axes, 0).size() > 1;
  }
  std::int64_t bytes_on_wire(const turn& t) const {
    return rounds_ ? t.bytes / std::int64_t(sizeof(T)) * std::int64_t(sizeof(bf16)) : t.bytes;
  }

  const short_list& factors(std::size_t o) const { return o == 2 ? n_.rule.out[0] : n_.rule.in[o]; }

  /// The block of device i in iteration t; for sums, the device's own addend. Its own block is its shard, others are in `room`. Rounded
  /// operands are in `room[0]`.
  std::byte* block(std::size_t i, std::size_t t) {
    if (rounds_ && !sums_) return parts_[i].room[0].data();
    const std::size_t own = sums_ ? parts_[i].turns.size() - 1 : 0;
    return t == own ? tensors_[travels_]->data[i] : parts_[i].room[t % 2].data();
  }

  void prepare(std::size_t i) {
    part& p = parts_[i];
    const bound_value& moving = *tensors_[travels_];
    const device_group group(on_.backend().extents(), axes_, on_.devices()[i]);
    const auto members = std::size_t(group.size()), me = std::size_t(group.member());
    p.turns.resize(members);
    std::int64_t most = 0;
    std::vector<std::int64_t> written;  // offsets of blocks of the result
    std::int64_t elements = 0;
    for (std::size_t t = 0; t < members; ++t) {
      const std::size_t whose = (me + t + (sums_ ? 1 : 0)) % members;
      elements += make_turn(i, p.turns[t], place(moving, on_.backend().extents(), group.device(int(whose))), written);
      most = std::max(most, p.turns[t].bytes);
    }
    p.clears = !sums_ && elements < tensors_[2]->elements(i);
    const std::size_t first = sums_ ? 0 : 1;  // the first iteration whose block is in `room`
    if (rounds_ && !sums_) p.room[0] = buffer(most);
    else for (std::size_t t = first; t < std::min(first + 2, first + members - 1); ++t) p.room[t % 2] = buffer(most);
    if (rounds_ || (sums_ && members > 1)) p.wire[1] = buffer(most);
    if (rounds_) p.wire[0] = buffer(most);
    p.before = (me + members - 1) % members;
    p.after = (me + 1) % members;
    p.send.resize(members);
    p.recv.resize(members);
    exchange_.push_back({p.send, p.recv});
  }

  /// Binds the product for one block of the ring operand. The other tensors are restricted to the indices of this block. Returns the
  /// number of elements of the result's shard that this product writes first.
  std::int64_t make_turn(std::size_t i, turn& made, const kernel::placement& here, std::vector<std::int64_t>& written) const {
    made.bytes = kernel::element_count(here.rank, here.extent) * std::int64_t(sizeof(T));
    std::array<kernel::operand_dims, 3> dims;
    bool empty = false;
    for (std::size_t o = 0; o < 3; ++o) {
      const kernel::placement& at = o == travels_ ? here : tensors_[o]->places[i];
      dims[o].rank = at.rank;
      dims[o].extent = at.extent;
      dims[o].stride = kernel::row_major_strides(at.rank, at.extent);
      for (std::size_t d = 0; d < std::size_t(at.rank); ++d) {
        dims[o].factor[d] = factors(o)[int(d)];
        if (const int k = factors(travels_).find(dims[o].factor[d]); k >= 0) {
          dims[o].extent[d] = here.extent[std::size_t(k)];
          made.offset[o] += (here.offset[std::size_t(k)] - at.offset[d]) * (*dims[o].stride)[d] * std::int64_t(sizeof(T));
        }
        empty = empty || dims[o].extent[d] == 0;
      }
    }
    if (empty) return 0;
    // Blocks of the result are equal or disjoint. The first product of a contiguous block overwrites it; any other adds to it.
    const bool writes = sums_ || (is_in_one_piece(dims[2]) && std::find(written.begin(), written.end(), made.offset[2]) == written.end());
    made.product.emplace(dims[0], dims[1], dims[2], 1, !writes, precision_of(n_));
    if (!writes) return 0;
    written.push_back(made.offset[2]);
    return kernel::element_count(dims[2].rank, dims[2].extent);
  }
  static bool is_in_one_piece(const kernel::operand_dims& x) {
    const kernel::index_array packed = kernel::row_major_strides(x.rank, x.extent);
    for (std::size_t d = 0; d < std::size_t(x.rank); ++d)
      if (x.extent[d] > 1 && (*x.stride)[d] != packed[d]) return false;
    return true;
  }

  void compute(std::size_t i, std::size_t t) {
    part& p = parts_[i];
    const turn& now = p.turns[t];
    if (rounds_ && !sums_) unround(p.wire[t % 2].data(), block(i, t), now.bytes);
    if (t == 0 && p.clears) std::fill_n(tensors_[2]->data[i], tensors_[2]->bytes(i), std::byte(0));
    if (sums_ && !now.product) std::fill_n(block(i, t), now.bytes, std::byte(0));
    if (!now.product) return;
    std::array<std::byte*, 3> at{};
    for (std::size_t o = 0; o < 3; ++o) at[o] = (o == travels_ ? block(i, t) : tensors_[o]->data[i]) + now.offset[o];
    now.product->run(reinterpret_cast<const T*>(at[0]), reinterpret_cast<const T*>(at[1]), reinterpret_cast<T*>(at[2]));
  }

  /// Starts to send the block of each device in iteration t. It is received for iteration t + 1.
  pending_exchange travel(std::size_t t) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      const std::size_t sent = sums_ ? 0 : t % 2;
      if (rounds_ && (sums_ || t == 0)) round(sums_ ? block(i, t) : tensors_[travels_]->data[i], p.wire[sent].data(), p.turns[t].bytes);
      const std::int64_t received = bytes_on_wire(p.turns[t + 1]);
      p.send[p.before] = {rounds_ ? p.wire[sent].data() : block(i, t), std::size_t(bytes_on_wire(p.turns[t]))};
      p.recv[p.after] = {rounds_ || sums_ ? p.wire[1 - sent].data() : block(i, t + 1), std::size_t(received)};
      on_.backend().count(i, {1, received, 0, 0});
    }
    return on_.backend().start(axes_, exchange_);
  }

  void add_received(std::size_t i, std::size_t t) {
    part& p = parts_[i];
    T* const sum = reinterpret_cast<T*>(block(i, t));
    const auto add = [&]<class Sent>(const Sent* more) {
      const std::int64_t n = p.turns[t].bytes / std::int64_t(sizeof(T));
      std::transform(more, more + n, sum, sum, [](Sent x, T y) { return total<T>(from_wire(x), y); });
    };
    if (rounds_) add(reinterpret_cast<const bf16*>(p.wire[1].data()));
    else add(reinterpret_cast<const T*>(p.wire[1].data()));
  }

  static T from_wire(T x) { return x; }
  static T from_wire(bf16 x) { return T(to_float(x)); }
  /// `bytes`: the size of the elements as T.
  static void round(const std::byte* from, std::byte* to, std::int64_t bytes) {
    const auto* const x = reinterpret_cast<const T*>(from);
    if constexpr (std::is_floating_point_v<T>)
      std::transform(x, x + bytes / std::int64_t(sizeof(T)), reinterpret_cast<bf16*>(to), [](T y) { return to_bf16(float(y)); });
  }
  static void unround(const std::byte* from, std::byte* to, std::int64_t bytes) {
    const auto* const x = reinterpret_cast<const bf16*>(from);
    std::transform(x, x + bytes / std::int64_t(sizeof(T)), reinterpret_cast<T*>(to), [](bf16 y) { return from_wire(y); });
  }
};

}}}  // namespace gshard::v0::detail
