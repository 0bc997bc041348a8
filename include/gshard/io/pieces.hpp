// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Splits a distributed tensor into pieces of complete rows, which are gathered, scattered and stored one at a time.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

// A row is an index of the first dim; a scalar has one row.

struct row_range {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

/// Bytes of one row of the global tensor.
inline std::int64_t row_bytes(const bound_value& v) {
  std::int64_t n = size_of(v.type);
  for (int d = 1; d < v.rank(); ++d) n *= v.extents[std::size_t(d)];
  return n;
}

/// The pieces of a tensor: as many rows as fit into `piece_bytes`, at least one. None if the tensor has no elements.
inline std::vector<row_range> pieces_of(const bound_value& v, std::int64_t piece_bytes) {
  const std::int64_t rows = v.rank() == 0 ? 1 : v.extents[0], bytes = row_bytes(v);
  std::vector<row_range> pieces;
  if (bytes == 0) return pieces;
  const std::int64_t step = std::max<std::int64_t>(1, piece_bytes / bytes);
  for (std::int64_t at = 0; at < rows; at += step) pieces.push_back({at, std::min(rows, at + step)});
  return pieces;
}

/// The intersection of a shard and a piece: its placement in the piece, and its offset in the shard, in elements.
struct part_of_piece {
  kernel::placement at;
  std::int64_t begin = 0;

  std::int64_t elements() const { return kernel::element_count(at.rank, at.extent); }
};

inline part_of_piece part(kernel::placement shard, row_range rows) {
  if (shard.rank == 0) return {shard, 0};
  const std::int64_t first = std::clamp(shard.offset[0], rows.first, rows.last);
  const std::int64_t last = std::clamp(shard.offset[0] + shard.extent[0], rows.first, rows.last);
  const std::int64_t skipped = last > first ? first - shard.offset[0] : 0;
  shard.extent[0] = last - first;
  shard.offset[0] = first - rows.first;
  shard.global[0] = rows.count();
  return {shard, skipped * kernel::row_major_strides(shard.rank, shard.extent)[0]};
}

/// True for the first of the devices that hold replicas of the same shard.
inline bool holds_first_copy(const bound_value& v, std::span<const int> mesh, int device) {
  const auto coordinates = coordinates_of(mesh, v.position(device));
  for (std::size_t a = 0; a < mesh.size(); ++a)
    if ((v.layout.used() >> a & 1u) == 0 && coordinates[a] != 0) return false;
  return true;
}

/// The parts of a piece on this process: for every part, the device as int64, then its elements.
inline std::vector<std::byte> pack(const bound_value& v, row_range rows, const backend& on) {
  std::vector<std::byte> packet;
  for (std::size_t i = 0; i < on.devices().size(); ++i) {
    const part_of_piece p = part(v.places[i], rows);
    if (p.elements() == 0 || !holds_first_copy(v, on.extents(), on.devices()[i])) continue;
    const std::int64_t device = on.devices()[i];
    const auto name = std::as_bytes(std::span(&device, 1));
    packet.insert(packet.end(), name.begin(), name.end());
    const std::byte* data = v.data[i] + p.begin * size_of(v.type);
    packet.insert(packet.end(), data, data + p.elements() * size_of(v.type));
  }
  return packet;
}

/// Assembles a piece from the packets of all processes.
inline std::vector<std::byte> unpack(const bound_value& v, row_range rows, const backend& on,
                                     std::span<const std::vector<std::byte>> packets) {
  const std::int64_t size = size_of(v.type);
  std::vector<std::byte> whole(std::size_t(rows.count() * row_bytes(v)));
  std::int64_t missing = std::int64_t(whole.size());
  for (const std::vector<std::byte>& packet : packets)
    for (const std::byte *at = packet.data(), *end = at + packet.size(); at != end;) {
      std::int64_t device = 0;
      std::memcpy(&device, at, sizeof device);
      at += sizeof device;
      const part_of_piece p = part(place(v, on.extents(), int(device)), rows);
      kernel::for_each_run(p.at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
        std::memcpy(whole.data() + global * size, at + local * size, std::size_t(n * size));
      });
      at += p.elements() * size;
      missing -= p.elements() * size;
    }
  if (missing != 0)
    throw error("checkpoint: a tensor's shards lack " + std::to_string(missing) + " bytes of it");
  return whole;
}

/// Copies a piece into the shards of this process.
inline void copy_shards_of(const bound_value& v, row_range rows, std::span<const std::byte> whole) {
  const std::int64_t size = size_of(v.type);
  for (std::size_t i = 0; i < v.places.size(); ++i) {
    const part_of_piece p = part(v.places[i], rows);
    std::byte* shard = v.data[i] + p.begin * size;
    kernel::for_each_run(p.at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      std::memcpy(shard + local * size, whole.data() + global * size, std::size_t(n * size));
    });
  }
}

}}}  // namespace gshard::v0::detail
