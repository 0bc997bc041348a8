// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Moves elements between the shards of a tensor and the blocks of any other decomposition, in one exchange.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/shard_table.hpp>
#include <gshard/exec/tensor/tiling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A block in the memory of one of this process's devices. Strides count elements.
struct placed_block {
  std::byte* data = nullptr;
  std::size_t device = 0;
  kernel::placement at;
  kernel::index_array stride{};
};

/// A block of the caller with its placement. `number`: its position among the caller's blocks, for errors. Throws `gshard::error` if the
/// block is not inside the array.
placed_block place_block(std::size_t number, std::byte* data, std::size_t device, std::span<const std::int64_t> offset,
                         std::span<const std::int64_t> extent, std::span<const std::int64_t> stride,
                         std::span<const std::int64_t> array, const any_cluster& on);

/// The messages between the blocks and the shards of an array, bound to the memory of the blocks. A device receives the elements that it
/// lacks, each once. If several devices have equal shards, the one with the receiver's coordinates along the other axes sends.
class block_exchange {
 public:
  /// `mine`: the blocks of this process. `width`: bytes of an element, of the type `element`. `problem`: an error of the caller on this
  /// process, or empty. Collective. Communicates: the placement of each block, to the devices whose shards it overlaps.
  /// Throws `gshard::error`, on every process: for a `problem`; if the blocks do not tile the array; if the processes differ in the array.
  block_exchange(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& spec, std::int64_t width,
                 std::string_view element, std::vector<placed_block> mine, process_error problem);
  block_exchange(const block_exchange&) = delete;
  block_exchange(block_exchange&&) = default;

  /// Copies the elements of the blocks to the shards (or back). `shards`: the memory of this process's shards. `problem`: an error of the
  /// caller on this process, or empty; all processes throw it. Collective. Communicates: the elements of a shard (or a block) that its
  /// device lacks.
  void move(bool to_shards, std::span<std::byte* const> shards, const process_error& problem);

  /// The memory of the block that is the complete shard of a device, row-major and contiguous; null if there is none.
  std::byte* shard_in_place(std::size_t device) const;
  /// The bytes that a device of this process receives in a call.
  std::int64_t bytes_received(bool to_shards, std::size_t device) const;

 private:
  /// Elements that a block and a shard have in common.
  struct piece {
    kernel::placement at;
    const placed_block* block;  // null: the block of another device
  };
  struct message {
    std::vector<piece> pieces;
    std::int64_t bytes = 0;
    std::int64_t slot = 0;  // its offset in `packed`, if it is not one contiguous piece
  };
  struct messages {
    std::vector<message> send, recv;  // by device of the cluster
    std::vector<std::span<const std::byte>> sent;
    std::vector<std::span<std::byte>> received;
    buffer packed;
  };
  struct local_device {
    kernel::placement shard;
    std::vector<piece> own;  // common to its blocks and its shard
    messages to_shards, to_blocks;
  };
  /// Memory with strides that has the elements of a piece.
  struct strided {
    std::byte* data;
    kernel::index_array stride;
  };

  any_cluster on_;
  std::int64_t width_;
  shard_table shards_;
  std::vector<placed_block> blocks_;
  std::vector<local_device> devices_;
  std::uint64_t number_ = 0;  // of the call that made it

  std::vector<std::vector<owned_block>> find_blocks() const;
  template <class Sent, class Received>
  void exchange_lists(Sent sent, Received received) const;
  void find_messages(std::size_t device, const std::vector<owned_block>& overlapping);
  void find_room(messages& all) const;

  std::uint32_t all_axes() const { return (1u << on_.mesh().rank()) - 1; }
  std::int64_t bytes_of_piece(const piece& p) const { return kernel::element_count(p.at.rank, p.at.extent) * width_; }
  strided in_block(const piece& p) const;
  strided in_shard(const piece& p, std::byte* data, const kernel::placement& shard) const;
  static bool is_run(const piece& p, const kernel::index_array& stride) { return kernel::is_row_major(p.at.rank, p.at.extent, stride); }
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE placed_block place_block(std::size_t number, std::byte* data, std::size_t device, std::span<const std::int64_t> offset,
                                       std::span<const std::int64_t> extent, std::span<const std::int64_t> stride,
                                       std::span<const std::int64_t> array, const any_cluster& on) {
  const auto refuse = [&](const std::string& why) { throw error("local block " + std::to_string(number) + why); };
  if (offset.size() != array.size() || extent.size() != array.size() || (!stride.empty() && stride.size() != array.size()))
    refuse(": an offset of " + std::to_string(offset.size()) + " dims, an extent of " + std::to_string(extent.size()) +
           (stride.empty() ? "" : ", a stride of " + std::to_string(stride.size())) + ", for an array of " + std::to_string(array.size()));
  if (device >= on.devices().size())
    refuse(" is on device " + std::to_string(device) + " of a process with " + std::to_string(on.devices().size()));
  placed_block b{data, device, {int(array.size()), {}, {}, {}}, {}};
  for (std::size_t d = 0; d < array.size(); ++d) {
    if (offset[d] < 0 || extent[d] < 0 || extent[d] > array[d] || offset[d] > array[d] - extent[d])
      refuse(" at " + extents_text(offset) + " with extents " + extents_text(extent) + " is not inside the array " + extents_text(array));
    b.at.offset[d] = offset[d];
    b.at.extent[d] = extent[d];
    b.at.global[d] = array[d];
  }
  b.stride = kernel::row_major_strides(b.at.rank, b.at.extent);
  std::copy(stride.begin(), stride.end(), b.stride.begin());
  if (data == nullptr && kernel::element_count(b.at.rank, b.at.extent) > 0) refuse(" has elements and no address");
  return b;
}

GSHARD_INLINE block_exchange::block_exchange(const any_cluster& on, std::span<const std::int64_t> extents, const named_sharding& spec,
                                             std::int64_t width, std::string_view element, std::vector<placed_block> mine,
                                             process_error problem)
    : on_(on), width_(width), blocks_(std::move(mine)) {
  const thread_rule::use in_use = on_.backend().enter();
  if (problem.empty())
    problem = problem_of([&] {
      shards_ = shard_table(on_, extents, spec, width_);
      for (const int device : on_.devices()) devices_.push_back({shards_[device], {}, {}, {}});
    });
  on_.backend().begin(std::vector<fact>{{"the call", "an exchange with local blocks"},
                                        {"the extents of the array", extents_text(extents)},
                                        {"the element type of the array", std::string(element)},
                                        shards_.places()},
                 problem);
  number_ = on_.backend().calls();
  const std::vector<std::vector<owned_block>> overlapping = find_blocks();
  problem = problem_of([&] {
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (const std::string fault = problem_of_tiling(devices_[i].shard, overlapping[i]); !fault.empty())
        throw error("local blocks do not tile the array " + extents_text(extents) + ": " + fault);
    for (std::size_t i = 0; i < devices_.size(); ++i) find_messages(i, overlapping[i]);
  });
  on_.backend().agree({}, problem);
}

/// Sends sent(i, m) from device i of this process to device m of the cluster, and receives received(i, m) from there.
template <class Sent, class Received>
void block_exchange::exchange_lists(Sent sent, Received received) const {
  std::vector<std::vector<std::span<const std::byte>>> send(devices_.size());
  std::vector<std::vector<std::span<std::byte>>> recv(devices_.size());
  std::vector<exchange_part> parts;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    for (std::size_t m = 0; m < std::size_t(shards_.devices()); ++m) {
      send[i].push_back(std::as_bytes(std::span(sent(i, m))));
      recv[i].push_back(std::as_writable_bytes(std::span(received(i, m))));
    }
    parts.push_back({send[i], recv[i]});
  }
  on_.backend().exchange(all_axes(), parts);
}

/// For every device of this process: the intersections of its shard with the blocks of all devices.
GSHARD_INLINE std::vector<std::vector<owned_block>> block_exchange::find_blocks() const {
  using lists = std::vector<std::vector<std::vector<std::int64_t>>>;  // by device of this process and of the cluster
  const std::size_t n = std::size_t(shards_.devices()), rank = std::size_t(shards_[0].rank), width = 1 + 2 * rank;
  lists mine(devices_.size(), lists::value_type(n)), my_sizes = mine, sizes = mine, theirs = mine;
  std::vector<std::int64_t> numbers(devices_.size(), 0);
  for (const placed_block& b : blocks_) {
    const std::int64_t number = numbers[b.device]++;
    for (std::size_t m = 0; m < n; ++m) {
      const kernel::placement both = intersection(b.at, shards_[int(m)]);
      if (kernel::element_count(both.rank, both.extent) == 0) continue;
      std::vector<std::int64_t>& list = mine[b.device][m];
      list.push_back(number);
      list.insert(list.end(), both.offset.begin(), both.offset.begin() + std::ptrdiff_t(rank));
      list.insert(list.end(), both.extent.begin(), both.extent.begin() + std::ptrdiff_t(rank));
    }
  }
  for (std::size_t i = 0; i < devices_.size(); ++i)
    for (std::size_t m = 0; m < n; ++m) {
      my_sizes[i][m] = {std::int64_t(mine[i][m].size())};
      sizes[i][m] = {0};
    }
  exchange_lists([&](std::size_t i, std::size_t m) -> auto& { return my_sizes[i][m]; },
                 [&](std::size_t i, std::size_t m) -> auto& { return sizes[i][m]; });
  for (std::size_t i = 0; i < devices_.size(); ++i)
    for (std::size_t m = 0; m < n; ++m) theirs[i][m].resize(std::size_t(sizes[i][m][0]));
  exchange_lists([&](std::size_t i, std::size_t m) -> auto& { return mine[i][m]; },
                 [&](std::size_t i, std::size_t m) -> auto& { return theirs[i][m]; });

  std::vector<std::vector<owned_block>> found(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i)
    for (std::size_t m = 0; m < n; ++m)
      for (auto at = theirs[i][m].begin(); at != theirs[i][m].end(); at += std::ptrdiff_t(width)) {
        owned_block b{int(m), *at, devices_[i].shard};
        std::copy_n(at + 1, rank, b.at.offset.begin());
        std::copy_n(at + 1 + std::ptrdiff_t(rank), rank, b.at.extent.begin());
        found[i].push_back(b);
      }
  return found;
}

/// Sender and receiver list the pieces of a message in the order of the block numbers.
GSHARD_INLINE void block_exchange::find_messages(std::size_t device, const std::vector<owned_block>& overlapping) {
  local_device& here = devices_[device];
  const int me = on_.devices()[device];
  for (messages* all : {&here.to_shards, &here.to_blocks}) {
    all->send.resize(std::size_t(shards_.devices()));
    all->recv.resize(std::size_t(shards_.devices()));
  }
  const auto add = [this](message& to, const piece& p) {
    to.pieces.push_back(p);
    to.bytes += bytes_of_piece(p);
  };
  for (const placed_block& b : blocks_)
    for (int m = 0; b.device == device && m < shards_.devices(); ++m) {
      const piece p{intersection(b.at, shards_[m]), &b};
      if (bytes_of_piece(p) == 0) continue;
      if (m == me) {
        here.own.push_back(p);
        continue;
      }
      add(here.to_shards.send[std::size_t(m)], p);
      if (shards_.are_aligned(m, me)) add(here.to_blocks.recv[std::size_t(m)], p);
    }
  for (const owned_block& b : overlapping) {
    if (b.device == me) continue;
    add(here.to_shards.recv[std::size_t(b.device)], {b.at, nullptr});
    if (shards_.are_aligned(me, b.device)) add(here.to_blocks.send[std::size_t(b.device)], {b.at, nullptr});
  }
  find_room(here.to_shards);
  find_room(here.to_blocks);
}

GSHARD_INLINE void block_exchange::find_room(messages& all) const {
  std::int64_t end = 0;
  for (std::vector<message>* of_side : {&all.send, &all.recv})
    for (message& m : *of_side) {
      m.slot = end;
      end += m.bytes;
    }
  all.packed = buffer(end);
}

GSHARD_INLINE block_exchange::strided block_exchange::in_block(const piece& p) const {
  return {p.block->data + kernel::offset_of(p.at, p.block->at, p.block->stride) * width_, p.block->stride};
}
GSHARD_INLINE block_exchange::strided block_exchange::in_shard(const piece& p, std::byte* data, const kernel::placement& shard) const {
  const kernel::index_array stride = kernel::row_major_strides(shard.rank, shard.extent);
  return {data + kernel::offset_of(p.at, shard, stride) * width_, stride};
}

GSHARD_INLINE std::byte* block_exchange::shard_in_place(std::size_t device) const {
  const local_device& here = devices_[device];
  if (here.own.size() != 1 || here.own[0].at.extent != here.shard.extent) return nullptr;
  const strided memory = in_block(here.own[0]);
  return is_run(here.own[0], memory.stride) ? memory.data : nullptr;
}

GSHARD_INLINE std::int64_t block_exchange::bytes_received(bool to_shards, std::size_t device) const {
  std::int64_t bytes = 0;
  for (const message& m : to_shards ? devices_[device].to_shards.recv : devices_[device].to_blocks.recv) bytes += m.bytes;
  return bytes;
}

GSHARD_INLINE void block_exchange::move(bool to_shards, std::span<std::byte* const> shards, const process_error& problem) {
  const thread_rule::use in_use = on_.backend().enter();
  on_.backend().begin(std::vector<fact>{{"the call", "an exchange with the local blocks of call " + std::to_string(number_)},
                                        {"the direction of the exchange", to_shards ? "from blocks to shards" : "from shards to blocks"}},
                 problem);
  const auto copy = [this](const piece& p, const strided& from, const strided& to) {
    if (from.data != to.data) kernel::copy_block(from.data, from.stride, to.data, to.stride, p.at.extent, p.at.rank, width_);
  };
  const auto packed = [](const piece& p, std::byte* data) { return strided{data, kernel::row_major_strides(p.at.rank, p.at.extent)}; };
  std::vector<exchange_part> parts;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    local_device& here = devices_[i];
    messages& all = to_shards ? here.to_shards : here.to_blocks;
    const auto memory = [&](const piece& p) { return p.block ? in_block(p) : in_shard(p, shards[i], here.shard); };
    const auto address = [&](const message& m) {
      if (m.pieces.size() == 1)
        if (const strided at = memory(m.pieces[0]); is_run(m.pieces[0], at.stride)) return at.data;
      return all.packed.data() + m.slot;
    };
    all.sent.clear();
    all.received.clear();
    for (const message& m : all.send) {
      std::byte* const at = m.bytes > 0 ? address(m) : nullptr;
      std::byte* next = at;
      for (const piece& p : m.pieces) {
        copy(p, memory(p), packed(p, next));
        next += bytes_of_piece(p);
      }
      all.sent.emplace_back(at, std::size_t(m.bytes));
    }
    for (const message& m : all.recv) all.received.emplace_back(m.bytes > 0 ? address(m) : nullptr, std::size_t(m.bytes));
    parts.push_back({all.sent, all.received});
  }
  const bool alone = shards_.devices() == 1;
  pending_exchange others = alone ? pending_exchange() : on_.backend().start(all_axes(), parts);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!alone) on_.backend().count(i, {1, bytes_received(to_shards, i), 0, 0});
    for (const piece& p : devices_[i].own) {
      const strided block = in_block(p), shard = in_shard(p, shards[i], devices_[i].shard);
      copy(p, to_shards ? block : shard, to_shards ? shard : block);
    }
  }
  others.finish();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    local_device& here = devices_[i];
    const messages& all = to_shards ? here.to_shards : here.to_blocks;
    for (std::size_t m = 0; m < all.recv.size(); ++m) {
      const std::byte* next = all.received[m].data();
      for (const piece& p : all.recv[m].pieces) {
        const strided at = p.block ? in_block(p) : in_shard(p, shards[i], here.shard);
        copy(p, packed(p, const_cast<std::byte*>(next)), at);
        next += bytes_of_piece(p);
      }
    }
  }
}

#endif

}}}  // namespace gshard::v0::detail
