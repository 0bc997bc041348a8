// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses which device writes which block of a checkpoint. The blocks of replicated shards are divided among the devices that hold them.

#include <gshard/core/ir/dtype.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/parameters.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A tensor of a checkpoint.
struct saved_tensor {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::int64_t> extents;
  bool trainable = true;

  int rank() const { return int(extents.size()); }
  std::int64_t bytes() const {
    std::int64_t n = size_of(type);
    for (const std::int64_t e : extents) n *= e;
    return n;
  }
  bool operator==(const saved_tensor&) const = default;
};

/// A block of a tensor, contiguous in the shard of its writer.
struct saved_block {
  std::size_t tensor = 0;  // its index in the list of tensors
  kernel::placement at;    // in the whole tensor

  std::int64_t elements() const { return kernel::element_count(at.rank, at.extent); }
};

/// A block that a device writes.
struct planned_block : saved_block {
  std::int64_t bytes = 0;
  std::int64_t in_shard = 0;  // offset of its first byte in the device's shard
  std::int64_t in_part = 0;   // offset of its first byte in the data of the device's part
};

struct part_plan {
  std::vector<saved_tensor> tensors;               // by name
  std::vector<std::vector<planned_block>> blocks;  // by device
  std::vector<std::int64_t> bytes;                 // of data, by device
};

/// Calls f(block, index of its first element in the shard) for blocks of at most `most` elements that tile a shard. Each is contiguous in
/// the row-major shard.
template <class F>
void for_each_slab(const kernel::placement& shard, std::int64_t most, F f) {
  const std::int64_t all = kernel::element_count(shard.rank, shard.extent);
  if (all == 0) return;
  most = std::max<std::int64_t>(1, most);
  int d = 0;  // the dim that is split: a block has one index of each dim before it, and all of dims after it
  std::int64_t row = all;
  for (; d < shard.rank; ++d) {
    row /= shard.extent[std::size_t(d)];
    if (row <= most || d + 1 == shard.rank) break;
  }
  if (shard.rank == 0) return f(shard, std::int64_t(0));
  const auto cut = std::size_t(d);
  const std::int64_t rows = shard.extent[cut],
                     cuts = (rows + std::max<std::int64_t>(1, most / row) - 1) / std::max<std::int64_t>(1, most / row);
  const std::int64_t outer = all / (rows * row);
  for (std::int64_t o = 0; o < outer; ++o) {
    kernel::placement block = shard;
    std::int64_t rest = o;
    for (std::size_t k = cut; k-- > 0; rest /= shard.extent[k]) {
      block.offset[k] = shard.offset[k] + rest % shard.extent[k];
      block.extent[k] = 1;
    }
    for (std::int64_t c = 0; c < cuts; ++c) {
      const std::int64_t first = rows * c / cuts, last = rows * (c + 1) / cuts;
      block.offset[cut] = shard.offset[cut] + first;
      block.extent[cut] = last - first;
      f(block, (o * rows + first) * row);
    }
  }
}

/// Smaller blocks would cost more in the header than they gain by equal shares.
inline constexpr std::int64_t least_block = std::int64_t(1) << 12;

/// The bytes of a block: small enough that any number of processes can read equal shares, large enough that headers stay small.
inline std::int64_t block_bytes(std::int64_t total, int devices) {
  constexpr std::int64_t least = std::int64_t(1) << 14, most = std::int64_t(1) << 20, most_of_part = 60000;
  return std::max(std::clamp(total / 256, least, most), total / devices / most_of_part);
}

/// Divides the tensors of a store, without caches. The result is the same on all processes. Throws `gshard::error` if a tensor is a partial
/// sum or has windows.
inline part_plan plan_parts(const parameter_store& store) {
  const std::span<const int> mesh = store.cluster().backend().extents();
  const int devices = device_count(mesh);
  part_plan plan;
  std::int64_t total = 0;
  for (const auto& [name, entry] : store.saved()) {
    const bound_value& v = entry.value;
    const auto has_window = [](const held_window& w) { return w.over >= 0; };
    if (v.layout.partial != 0) throw error("checkpoint: \"" + name + "\" is a partial sum");
    if (std::ranges::any_of(v.windows, has_window)) throw error("checkpoint: \"" + name + "\" has windows");
    plan.tensors.push_back({name, v.type, v.extents, entry.trainable});
    total += plan.tensors.back().bytes();
  }
  plan.blocks.resize(std::size_t(devices));
  plan.bytes.assign(std::size_t(devices), 0);
  const std::int64_t wanted = block_bytes(total, devices);
  std::size_t number = 0;
  for (const auto& [name, entry] : store.saved()) {
    const bound_value& v = entry.value;
    std::map<std::array<int, max_axes>, std::vector<int>>
        copies;  // the devices with equal shards, by coordinates along the axes that shard
    for (int device = 0; device < devices; ++device) {
      auto at = coordinates_of(mesh, v.position(device));
      for (std::size_t a = 0; a < mesh.size(); ++a)
        if ((v.layout.used() >> a & 1u) == 0) at[a] = 0;
      copies[at].push_back(device);
    }
    for (const auto& [at, holders] : copies) {
      const kernel::placement shard = place(v, mesh, holders[0]);
      const std::int64_t each = kernel::element_count(shard.rank, shard.extent) * size_of(v.type) / std::int64_t(holders.size()) + 1;
      for_each_slab(shard, std::clamp(each, std::min(least_block, wanted), wanted) / size_of(v.type),
                    [&](const kernel::placement& block, std::int64_t first) {
                      const auto less = [&](int a, int b) { return plan.bytes[std::size_t(a)] < plan.bytes[std::size_t(b)]; };
                      const auto writer = std::size_t(*std::ranges::min_element(holders, less));
                      const std::int64_t bytes = kernel::element_count(block.rank, block.extent) * size_of(v.type);
                      plan.blocks[writer].push_back({{number, block}, bytes, first * size_of(v.type), plan.bytes[writer]});
                      plan.bytes[writer] += bytes;
                    });
    }
    ++number;
  }
  return plan;
}

}}}  // namespace gshard::v0::detail
