// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Loads the blocks of a checkpoint on any mesh: every process reads and verifies an equal share, then an
// exchange moves them to the shards.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/tiling.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/checkpoint/part_plan.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/disks.hpp>
#include <gshard/survive/files/packets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A block, the part that has it, and the device that reads it.
struct loaded_block : stored_block {
  std::size_t part = 0;
  int reader = 0;
};

/// An error text unless the blocks of every tensor tile it.
inline std::string problem_of_blocks(const std::vector<saved_tensor>& tensors, const std::vector<loaded_block>& blocks) {
  std::vector<std::vector<owned_block>> of(tensors.size());
  std::vector<std::int64_t> elements(tensors.size());
  for (const loaded_block& b : blocks) {
    of[b.tensor].push_back({int(b.part), std::int64_t(of[b.tensor].size()), b.at});
    if (__builtin_add_overflow(elements[b.tensor], b.elements(), &elements[b.tensor]))
      return in_quotes(tensors[b.tensor].name) + " has too many blocks";
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    kernel::placement whole;
    whole.rank = tensors[t].rank();
    std::copy(tensors[t].extents.begin(), tensors[t].extents.end(), whole.extent.begin());
    whole.global = whole.extent;
    const std::int64_t wanted = tensors[t].bytes() / size_of(tensors[t].type);
    if (elements[t] != wanted)
      return "the blocks of " + in_quotes(tensors[t].name) + " have " + std::to_string(elements[t]) + " elements, the tensor " +
             std::to_string(wanted);
    if (const std::string fault = problem_of_tiling(whole, of[t]); !fault.empty())
      return "the blocks of " + in_quotes(tensors[t].name) + ": " + fault;
  }
  return {};
}

/// Sets the readers of blocks, which are sorted by part. `can_read[part]`: the devices that can read it. If all devices can read all parts,
/// each gets an equal share, up to a block, that is contiguous in the parts. Otherwise blocks with few possible readers are assigned first.
inline void assign_readers(std::vector<loaded_block>& blocks, const std::vector<std::vector<int>>& can_read, int devices) {
  const auto all = [&](const std::vector<int>& d) { return int(d.size()) == devices; };
  if (std::ranges::all_of(can_read, all)) {
    std::int64_t total = 0, before = 0;
    for (const loaded_block& b : blocks) total += b.bytes;
    for (loaded_block& b : blocks) {
      b.reader = int(double(before) + double(b.bytes) / 2 < double(total) ? (double(before) + double(b.bytes) / 2) * devices / double(total)
                                                                          : devices - 1);
      b.reader = std::clamp(b.reader, 0, devices - 1);
      before += b.bytes;
    }
    return;
  }
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return can_read[blocks[i].part].size(); });
  std::vector<std::int64_t> load(std::size_t(devices), 0);
  const auto load_of = [&](int d) -> std::int64_t& { return load[std::size_t(d)]; };
  for (const std::size_t i : order) {
    blocks[i].reader = *std::ranges::min_element(can_read[blocks[i].part], {}, load_of);
    load_of(blocks[i].reader) += blocks[i].bytes;
  }
  bool moved = true;  // each move makes the loads more equal
  for (int pass = 0; moved && pass < 100; ++pass) {
    moved = false;
    for (loaded_block& b : blocks) {
      const int other = *std::ranges::min_element(can_read[b.part], {}, load_of);
      if (load_of(b.reader) - load_of(other) <= b.bytes) continue;
      load_of(b.reader) -= b.bytes;
      load_of(other) += b.bytes;
      b.reader = other;
      moved = true;
    }
  }
}

/// Reads and verifies the blocks of this process, then moves all blocks to the shards of a store.
class block_loader {
 public:
  block_loader(parameter_store store, const std::vector<saved_tensor>& tensors, std::vector<loaded_block> blocks)
      : store_(std::move(store)), on_(store_.cluster().backend()), blocks_(std::move(blocks)), data_(blocks_.size()) {
    for (const saved_tensor& t : tensors) values_.push_back(&store_.find(t.name)->value);
  }

  /// Reads the blocks of this process that it has not read. Returns unreadable parts with reasons. Local.
  std::map<std::size_t, std::string> read(const std::optional<directory>& in) {
    std::map<std::size_t, std::string> bad;
    std::optional<descriptor> file;
    std::size_t open = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const loaded_block& b = blocks_[i];
      if (!is_mine(b.reader) || data_[i].size() > 0 || bad.contains(b.part)) continue;
      const std::string name = part_name(b.part);
      const process_error problem = problem_of([&] {
        if (!in) throw error(name + ": the checkpoint has no directory here");
        if (!file || open != b.part) file.emplace(in->read(name).first);
        open = b.part;
        buffer to(b.bytes);
        bytes_read += b.bytes;
        read_block(*file, in->path_of(name), b, {to.data(), std::size_t(to.size())});
        data_[i] = std::move(to);
      });
      if (!problem.empty()) {
        bad[b.part] = problem.text;
        file.reset();
      }
    }
    return bad;
  }
  /// Assigns readers again, after some could not read.
  void reassign(const std::vector<std::vector<int>>& can_read) {
    assign_readers(blocks_, can_read, device_count(on_.extents()));
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (!is_mine(blocks_[i].reader)) data_[i] = buffer();
  }
  std::int64_t bytes_read = 0;

  /// Moves all blocks to the shards, some at a time. Collective. Communicates: the elements that other
  /// devices have read.
  void scatter(std::int64_t round_bytes) {
    const int devices = device_count(on_.extents());
    std::vector<std::int64_t> before(std::size_t(devices), 0);
    std::vector<std::vector<std::size_t>> rounds;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      std::int64_t& read = before[std::size_t(blocks_[i].reader)];
      const auto round = std::size_t(read / round_bytes);
      read += blocks_[i].bytes;
      if (rounds.size() <= round) rounds.resize(round + 1);
      rounds[round].push_back(i);
    }
    for (const std::vector<std::size_t>& round : rounds) scatter_round(round);
  }

 private:
  struct piece {
    std::size_t block;
    kernel::placement at;
  };
  struct message {
    std::vector<piece> pieces;
    std::vector<std::byte> bytes;
  };

  bool is_mine(int device) const { return std::ranges::binary_search(on_.devices(), device); }
  std::int64_t width(std::size_t block) const { return size_of(values_[blocks_[block].tensor]->type); }
  void copy(const piece& p, std::byte* from, const kernel::placement& from_at, std::byte* to, const kernel::placement& to_at) const {
    const kernel::index_array from_stride = kernel::row_major_strides(from_at.rank, from_at.extent);
    const kernel::index_array to_stride = kernel::row_major_strides(to_at.rank, to_at.extent);
    const std::int64_t w = width(p.block);
    kernel::copy_block(from + kernel::offset_of(p.at, from_at, from_stride) * w, from_stride,
                       to + kernel::offset_of(p.at, to_at, to_stride) * w, to_stride, p.at.extent, p.at.rank, w);
  }
  std::int64_t bytes_of(const piece& p) const { return kernel::element_count(p.at.rank, p.at.extent) * width(p.block); }

  void scatter_round(const std::vector<std::size_t>& round) {
    const std::span<const int> mine = on_.devices();
    std::vector<std::vector<message>> send, recv;  // by device of this process and of the cluster
    std::vector<std::vector<piece>> own;
    std::vector<std::vector<std::span<const std::byte>>> sent(mine.size());
    std::vector<std::vector<std::span<std::byte>>> received(mine.size());
    std::vector<exchange_part> parts;
    const process_error problem = problem_of([&] {
      find_messages(round, send, recv, own);
      for (std::size_t k = 0; k < mine.size(); ++k) {
        for (message& m : send[k]) {
          std::byte* to = m.bytes.data();
          for (const piece& p : m.pieces) {
            copy(p, data_[p.block].data(), blocks_[p.block].at, to, p.at);
            to += bytes_of(p);
          }
          sent[k].push_back(m.bytes);
        }
        for (message& m : recv[k]) received[k].push_back(m.bytes);
        parts.push_back({sent[k], received[k]});
      }
    });
    on_.agree({}, problem);
    on_.exchange(all_axes(on_), parts);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const auto shard = [&](const piece& p) { return values_[blocks_[p.block].tensor]; };
      for (const piece& p : own[k]) copy(p, data_[p.block].data(), blocks_[p.block].at, shard(p)->data[k], shard(p)->places[k]);
      for (message& m : recv[k]) {
        std::byte* from = m.bytes.data();
        for (const piece& p : m.pieces) {
          copy(p, from, p.at, shard(p)->data[k], shard(p)->places[k]);
          from += bytes_of(p);
        }
      }
    }
    for (const std::size_t i : round) data_[i] = buffer();
  }

  void find_messages(const std::vector<std::size_t>& round, std::vector<std::vector<message>>& send,
                     std::vector<std::vector<message>>& recv, std::vector<std::vector<piece>>& own) const {
    const std::span<const int> mine = on_.devices(), mesh = on_.extents();
    const auto devices = std::size_t(device_count(mesh));
    send.assign(mine.size(), std::vector<message>(devices));
    recv = send;
    own.resize(mine.size());
    const auto add = [&](message& m, const piece& p) {
      m.pieces.push_back(p);
      m.bytes.resize(m.bytes.size() + std::size_t(bytes_of(p)));
    };
    for (const std::size_t i : round) {
      const loaded_block& b = blocks_[i];
      const bound_value& v = *values_[b.tensor];
      for (std::size_t k = 0; k < mine.size(); ++k)  // for shards of this process
        if (const piece p{i, intersection(b.at, v.places[k])}; bytes_of(p) > 0) {
          if (mine[k] == b.reader)
            own[k].push_back(p);
          else
            add(recv[k][std::size_t(b.reader)], p);
        }
      const auto reader = std::ranges::lower_bound(mine, b.reader);
      if (reader == mine.end() || *reader != b.reader) continue;
      for (std::size_t d = 0; d < devices; ++d)  // for shards of other devices
        if (const piece p{i, intersection(b.at, place(v, mesh, int(d)))}; int(d) != b.reader && bytes_of(p) > 0)
          add(send[std::size_t(reader - mine.begin())][d], p);
    }
  }

  parameter_store store_;
  backend& on_;
  std::vector<loaded_block> blocks_;
  std::vector<buffer> data_;                // by block; empty if this process has not read it
  std::vector<const bound_value*> values_;  // by tensor
};

}}}  // namespace gshard::v0::detail
