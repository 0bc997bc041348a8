// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Random decompositions of arrays, for checks of from_local_blocks and to_local_blocks.

#include <gshard/exec/tensor/local_blocks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace random_blocks {

namespace gs = gshard;

using numbers = std::vector<std::int64_t>;

struct box {
  numbers offset, extent;
  int device = 0;  // of the cluster
};

inline std::int64_t count(const numbers& extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

/// Splits an array at random positions along random dims, and assigns the boxes to random devices. Some are empty.
inline std::vector<box> split(const numbers& extents, int devices, std::mt19937& random) {
  const auto up_to = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random); };
  std::vector<box> all{{numbers(extents.size(), 0), extents}};
  for (std::int64_t cuts = up_to(2 * devices); cuts-- > 0 && !extents.empty();) {
    box& left = all[std::size_t(up_to(std::int64_t(all.size()) - 1))];
    const auto d = std::size_t(up_to(std::int64_t(extents.size()) - 1));
    box right = left;
    const std::int64_t at = up_to(left.extent[d]);
    left.extent[d] = at;
    right.offset[d] += at;
    right.extent[d] -= at;
    all.push_back(right);
  }
  for (box& b : all) b.device = int(up_to(devices - 1));
  return all;
}

/// A box in memory with random strides: row-major, column-major, or with gaps.
struct stored {
  box where;
  numbers stride;
  std::vector<float> memory;

  stored(const box& b, std::mt19937& random) : where(b), stride(b.extent.size()) {
    const auto kind = random() % 3;
    std::int64_t next = 1;
    for (std::size_t k = 0; k < stride.size(); ++k) {
      const std::size_t d = kind == 1 ? k : stride.size() - 1 - k;
      stride[d] = next;
      next *= std::max<std::int64_t>(1, b.extent[d]) + (kind == 2 ? 1 : 0);
    }
    memory.resize(std::size_t(next), -1.0f);
  }
  /// Calls f(element, linear index in the array) for all elements.
  template <class F>
  void each(const numbers& extents, F f) {
    numbers at(stride.size(), 0);
    for (std::int64_t n = count(where.extent); n-- > 0;) {
      std::int64_t global = 0, local = 0;
      for (std::size_t d = 0; d < at.size(); ++d) {
        global = global * extents[d] + where.offset[d] + at[d];
        local += at[d] * stride[d];
      }
      f(memory[std::size_t(local)], global);
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == where.extent[d];) at[d] = 0;
    }
  }
};

/// The elements of an array in the blocks of a device, or in its shard.
using held = std::vector<char>;
inline std::int64_t lacking(const held& needed, const held& has) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) n += needed[i] && !has[i];
  return n;
}

/// Blocks -> tensor -> blocks, with the bytes that are sent. Every process passes the same boxes and stores its own.
template <class Spec>
void check(const gs::any_cluster& on, const numbers& extents, std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<box> boxes = split(extents, on.size(), random);
  std::vector<stored> mine;
  std::vector<std::size_t> device_of;
  const auto devices = on.devices();
  for (const box& b : boxes)
    if (const auto at = std::ranges::find(devices, b.device); at != devices.end()) {
      mine.emplace_back(b, random);
      device_of.push_back(std::size_t(at - devices.begin()));
    }
  std::vector<gs::local_block<float>> blocks;
  for (std::size_t i = 0; i < mine.size(); ++i)
    blocks.push_back({mine[i].memory.data(), mine[i].where.offset, mine[i].where.extent, mine[i].stride, device_of[i]});
  for (stored& s : mine) s.each(extents, [](float& x, std::int64_t global) { x = float(global); });

  gs::local_blocks<float, Spec> exchange(on, extents, blocks);
  const auto received = [&](std::size_t i) { return on.backend().received()[i].exchange_bytes; };
  std::vector<held> in_blocks(devices.size(), held(std::size_t(count(extents)))), in_shard = in_blocks;
  for (std::size_t i = 0; i < mine.size(); ++i)
    mine[i].each(extents, [&](float&, std::int64_t global) { in_blocks[device_of[i]][std::size_t(global)] = 1; });

  on.backend().reset_received();
  auto t = exchange.to_tensor();
  bool same = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto shard = t.local_shard(i);
    gs::kernel::for_each_element(shard.at, [&](std::size_t global, std::size_t local) {
      same = same && shard.data[local] == float(global);
      in_shard[i][global] = 1;
    });
  }
  CHECK(same);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CHECK(received(i) == 4 * lacking(in_shard[i], in_blocks[i]));
    CHECK(exchange.bytes_to_shard(i) == received(i));
  }

  for (std::size_t i = 0; i < devices.size(); ++i)
    for (float& x : t.local_shard(i).span()) x = -2.0f - x;
  on.backend().reset_received();
  exchange.copy_from(t);
  same = true;
  for (stored& s : mine) s.each(extents, [&](float& x, std::int64_t global) { same = same && x == -2.0f - float(global); });
  CHECK(same);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CHECK(received(i) == 4 * lacking(in_blocks[i], in_shard[i]));
    CHECK(exchange.bytes_to_blocks(i) == received(i));
  }
}

/// Checks arrays of 1 to 4 dims with several shardings, on a cluster with the axes "x" and "y".
inline void check_all(const gs::any_cluster& on, std::uint32_t seed) {
  using gs::axes;
  using gs::none;
  using gs::P;
  std::mt19937 random(seed);
  const auto extents = [&](std::size_t rank) {
    numbers all;
    for (std::size_t d = 0; d < rank; ++d) all.push_back(std::int64_t(random() % (rank < 3 ? 14 : 6)));
    return all;
  };
  check<P<"x">>(on, extents(1), seed);
  check<P<axes<"y", "x">>>(on, extents(1), seed);
  check<P<"x", "y">>(on, extents(2), seed);
  check<P<none, "y">>(on, extents(2), seed);
  check<P<none, none>>(on, extents(2), seed);
  check<P<"y", none, "x">>(on, extents(3), seed);
  check<P<none, "x", none, "y">>(on, extents(4), seed);
}

}  // namespace random_blocks
