// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Random collectives on a whole mesh and their expected results, computed without the code under test.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/reduce/reduce.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace cases {

using bytes = std::vector<std::byte>;
using sizes = std::vector<std::int64_t>;
using rng = std::mt19937_64;

inline std::int64_t below(rng& r, std::int64_t n) {
  return std::int64_t(r() % std::uint64_t(n));
}

inline std::uint32_t n_masks(const std::vector<int>& extents) {
  return 1u << extents.size();
}

/// Devices with the coordinates of `device` on all axes except the given ones, ascending: row-major order.
inline std::vector<int> members(const std::vector<int>& extents, std::uint32_t axes, int device) {
  const int n = std::accumulate(extents.begin(), extents.end(), 1, std::multiplies<>());
  const auto fixed_part = [&](int id) {
    std::vector<int> at;
    for (std::size_t a = extents.size(); a-- > 0; id /= extents[a])
      if ((axes >> a & 1u) == 0) at.push_back(id % extents[a]);
    return at;
  };
  std::vector<int> found;
  for (int other = 0; other < n; ++other)
    if (fixed_part(other) == fixed_part(device)) found.push_back(other);
  return found;
}

inline std::size_t place(const std::vector<int>& members, int device) {
  return std::size_t(std::find(members.begin(), members.end(), device) - members.begin());
}

inline bytes random_bytes(rng& r, std::int64_t n) {
  bytes b(std::size_t(n), std::byte{});
  for (std::byte& x : b) x = std::byte(r() & 0xff);
  return b;
}

/// Places blocks in random order with random gaps; returns the size of the buffer that holds them.
inline std::int64_t place_blocks(rng& r, const sizes& block, sizes& offset) {
  std::vector<std::size_t> order(block.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), r);
  offset.resize(block.size());
  std::int64_t end = 0;
  for (const std::size_t j : order) {
    offset[j] = end + below(r, 3);
    end = offset[j] + block[j];
  }
  return end;
}

constexpr std::byte untouched{0xee};

/// The offsets of the blocks of each device in its memory.
template <class Byte>
std::vector<std::span<Byte>> spans(std::span<Byte> memory, const sizes& block, const sizes& offset) {
  std::vector<std::span<Byte>> all;
  for (std::size_t j = 0; j < block.size(); ++j) all.push_back(memory.subspan(std::size_t(offset[j]), std::size_t(block[j])));
  return all;
}

/// An exchange with uneven, often empty blocks.
struct exchange_case {
  std::vector<bytes> send, recv, expected;
  std::vector<sizes> send_bytes, send_offset, recv_bytes, recv_offset;

  exchange_case(const std::vector<int>& extents, std::uint32_t axes, std::uint64_t seed) {
    rng r(seed);
    const auto n = std::size_t(gshard::device_count(extents));
    for (auto* all : {&send, &recv, &expected}) all->resize(n);
    for (auto* all : {&send_bytes, &send_offset, &recv_bytes, &recv_offset}) all->resize(n);
    for (std::size_t d = 0; d < n; ++d) {
      const std::size_t p = members(extents, axes, int(d)).size();
      for (std::size_t j = 0; j < p; ++j) send_bytes[d].push_back(below(r, 3) == 0 ? 0 : below(r, 40));
      send[d] = random_bytes(r, place_blocks(r, send_bytes[d], send_offset[d]));
    }
    for (std::size_t d = 0; d < n; ++d) {
      const std::vector<int> group = members(extents, axes, int(d));
      const std::size_t own = place(group, int(d));
      for (const int m : group) recv_bytes[d].push_back(send_bytes[std::size_t(m)][own]);
      recv[d].assign(std::size_t(place_blocks(r, recv_bytes[d], recv_offset[d])), untouched);
      expected[d] = recv[d];
      for (std::size_t j = 0; j < group.size(); ++j) {
        const auto m = std::size_t(group[j]);
        std::copy_n(send[m].begin() + send_offset[m][own], recv_bytes[d][j],
                    expected[d].begin() + recv_offset[d][j]);
      }
    }
  }

  gshard::exchange_part part(int device) {
    const auto d = std::size_t(device);
    lists_.resize(send.size());
    lists_[d] = {spans(std::span<const std::byte>(send[d]), send_bytes[d], send_offset[d]),
                 spans(std::span(recv[d]), recv_bytes[d], recv_offset[d])};
    return {lists_[d].send, lists_[d].recv};
  }

 private:
  struct lists {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };
  std::vector<lists> lists_;
};

/// An all_gather of uneven blocks, with different offsets on every device. Every other device sends its block from its place in the result.
struct gather_case {
  std::vector<bytes> send, recv, expected;
  std::vector<sizes> recv_bytes, recv_offset;

  gather_case(const std::vector<int>& extents, std::uint32_t axes, std::uint64_t seed) {
    rng r(seed);
    const auto n = std::size_t(gshard::device_count(extents));
    for (auto* all : {&send, &recv, &expected}) all->resize(n);
    for (auto* all : {&recv_bytes, &recv_offset}) all->resize(n);
    for (std::size_t d = 0; d < n; ++d) send[d] = random_bytes(r, below(r, 3) == 0 ? 0 : below(r, 40));
    for (std::size_t d = 0; d < n; ++d) {
      const std::vector<int> group = members(extents, axes, int(d));
      for (const int m : group) recv_bytes[d].push_back(std::int64_t(send[std::size_t(m)].size()));
      recv[d].assign(std::size_t(place_blocks(r, recv_bytes[d], recv_offset[d])), untouched);
      expected[d] = recv[d];
      for (std::size_t j = 0; j < group.size(); ++j)
        std::ranges::copy(send[std::size_t(group[j])], expected[d].begin() + recv_offset[d][j]);
      own_.push_back(place(group, int(d)));
    }
    for (std::size_t d = 1; d < n; d += 2) std::ranges::copy(send[d], own_block(d));
  }

  gshard::gather_part part(int device) {
    const auto d = std::size_t(device);
    lists_.resize(recv.size());
    lists_[d] = spans(std::span(recv[d]), recv_bytes[d], recv_offset[d]);
    return {d % 2 == 1 ? lists_[d][own_[d]] : std::span<const std::byte>(send[d]), lists_[d]};
  }

 private:
  std::vector<std::vector<std::span<std::byte>>> lists_;
  std::byte* own_block(std::size_t d) { return recv[d].data() + recv_offset[d][own_[d]]; }
  std::vector<std::size_t> own_;
};

/// An all-reduce of numbers of very different sizes, so that the sum depends on the order.
template <class T>
struct sum_case {
  std::vector<std::vector<T>> data, expected;

  sum_case(const std::vector<int>& extents, std::uint32_t axes, std::int64_t n, std::uint64_t seed) {
    rng r(seed);
    const int n_devices = gshard::device_count(extents);
    for (int d = 0; d < n_devices; ++d) {
      std::vector<T>& x = data.emplace_back(std::size_t(n));
      for (T& element : x) element = draw(r);
    }
    for (int d = 0; d < n_devices; ++d) {
      const std::vector<int> group = members(extents, axes, d);
      expected.push_back(group[0] < d ? expected[std::size_t(group[0])] : sum(group));
    }
  }

 private:
  /// The two halves of a group are the members below the largest power of two, and the others.
  std::vector<T> sum(const std::vector<int>& group) const {
    if (group.size() == 1) return data[std::size_t(group[0])];
    const auto middle = group.begin() + std::ptrdiff_t(std::bit_floor(group.size() - 1));
    std::vector<T> x = sum({group.begin(), middle});
    const std::vector<T> y = sum({middle, group.end()});
    const T* other = y.data();
    for (T& element : x) element = T(element + *other++);
    return x;
  }
  static T draw(rng& r) {
    const std::uint64_t bits = r();
    const auto x = T(std::int64_t(bits % 2001) - 1000);
    if constexpr (std::is_floating_point_v<T>) return x / T(7) * T(std::int64_t{1} << (bits >> 32) % 30);
    return x;
  }
};

template <class Case>
std::vector<decltype(std::declval<Case&>().part(0))> parts(Case& c, std::span<const int> devices) {
  std::vector<decltype(c.part(0))> p;
  for (const int d : devices) p.push_back(c.part(d));
  return p;
}

/// Pointers to the data of the held devices.
template <class T>
std::vector<std::byte*> pointers(std::vector<std::vector<T>>& data, std::span<const int> devices) {
  std::vector<std::byte*> p;
  for (const int d : devices) p.push_back(reinterpret_cast<std::byte*>(data[std::size_t(d)].data()));
  return p;
}

template <class T>
std::vector<const std::byte*> readers(const std::vector<std::vector<T>>& data, std::span<const int> devices) {
  std::vector<const std::byte*> p;
  for (const int d : devices) p.push_back(reinterpret_cast<const std::byte*>(data[std::size_t(d)].data()));
  return p;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Exchanges along random axes that are in flight at once. Own blocks are in place already: start() leaves them alone.
struct several_exchanges {
  std::vector<exchange_case> all;
  std::vector<std::uint32_t> axes;
  std::vector<std::vector<gshard::exchange_part>> parts;
  std::vector<gshard::pending_exchange> pending;

  several_exchanges(const std::vector<int>& extents, std::size_t n, std::uint64_t seed) {
    rng r(seed);
    while (all.size() < n) {
      const auto mask = std::uint32_t(below(r, n_masks(extents)));
      if (members(extents, mask, 0).size() == 1) continue;
      axes.push_back(mask);
      exchange_case& x = all.emplace_back(extents, mask, r());
      for (std::size_t d = 0; d < x.recv.size(); ++d) {
        const std::size_t own = place(members(extents, mask, int(d)), int(d));
        std::copy_n(x.expected[d].begin() + x.recv_offset[d][own], x.recv_bytes[d][own], x.recv[d].begin() + x.recv_offset[d][own]);
      }
    }
  }

  void start(gshard::backend& b, std::size_t i, const gshard::exchange_bounds& known = {}) {
    parts.resize(all.size());
    pending.resize(all.size());
    parts[i] = cases::parts(all[i], b.devices());
    pending[i] = b.start(axes[i], parts[i], known);
  }
  void start_all(gshard::backend& b) {
    for (std::size_t i = 0; i < all.size(); ++i) start(b, i);
  }
  void finish_all(rng& r) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), r);
    for (const std::size_t i : order) pending[i].finish();
  }
};

/// n elements on every held device.
inline std::vector<std::int64_t> on_each(const gshard::backend& b, std::int64_t n) {
  return std::vector<std::int64_t>(b.devices().size(), n);
}

}  // namespace cases
