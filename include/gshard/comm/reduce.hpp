// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/backend.hpp>
#include <gshard/comm/combine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

/// Reductions over the groups of any backend. Every element is combined in member order, ((x0 + x1) + x2) +
/// ... for sums, whatever the sizes, the algorithm and the backend: equal inputs give equal bits.
///
/// Keeps its scratch memory from call to call; a call that needs no more than an earlier one allocates
/// nothing.
class reducer {
 public:
  /// Addends of together at most `gather_limit` bytes are gathered whole and combined by every device. The same on all
  /// processes.
  explicit reducer(std::int64_t gather_limit) : gather_limit_(gather_limit) {}

  /// data[i][k] becomes the combination of element k over the group of device i; n[i]: the elements of held device i, equal within
  /// a group; `most`: the most elements of any device of the mesh, which all processes know alike. Communicates: each of p members
  /// sends 2 (p - 1) / p n elements (one exchange, one all_gather), or (p - 1) n in one all_gather where `most` are few.
  template <class T>
  void all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data, std::span<const std::int64_t> n,
                  std::int64_t most);

  /// data[i] holds one block per member, one after another, block j of counts[i][j] elements. result[i] becomes the combination of
  /// block j over the group in which device i is member j; it may be that block of data[i]. Counts are equal within a group.
  /// Communicates: each member sends all its blocks, except its own, in one exchange.
  template <class T>
  void reduce_scatter(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data,
                      std::span<const std::span<const std::int64_t>> counts, std::span<T* const> result);

 private:
  template <class T>
  void all_reduce_by_gather(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data, std::span<const std::int64_t> n);
  template <class T>
  void all_reduce_by_blocks(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data, std::span<const std::int64_t> n);
  // Combines the blocks of device i that lie from data(i) + offset_[i, j] on, bytes_[i, j] of them, into result(i).
  template <class T, class Source, class Target>
  void scatter(reduction what, backend& b, std::uint32_t axes, Source data, Target result);

  static std::size_t group_size(const backend& b, std::uint32_t axes) { return std::size_t(device_group(b.extents(), axes, 0).size()); }
  static std::size_t member(const backend& b, std::uint32_t axes, std::size_t device) {
    return std::size_t(device_group(b.extents(), axes, b.devices()[device]).member());
  }
  /// Entries of held device `device` in a table of p entries per device.
  template <class Entry>
  static std::span<Entry> row(std::vector<Entry>& table, std::size_t device, std::size_t p) {
    return std::span(table).subspan(device * p, p);
  }
  template <class T>
  static std::span<const std::byte> block(const T* data, std::int64_t offset, std::int64_t bytes) {
    return bytes == 0 ? std::span<const std::byte>() : std::span(reinterpret_cast<const std::byte*>(data) + offset, std::size_t(bytes));
  }

  // Gives every held device room for a block of `bytes(i)` from each other member. Its own block is read where it lies, at own(i).
  template <class Bytes, class Own>
  void receive_blocks(const backend& b, std::uint32_t axes, Bytes bytes, Own own) {
    const std::size_t n_devices = b.devices().size(), p = group_size(b, axes);
    std::size_t room = 0;
    for (std::size_t i = 0; i < n_devices; ++i) room += (p - 1) * std::size_t(bytes(i));
    if (scratch_.size() < room) scratch_.resize(room);
    recv_.resize(n_devices * p);
    std::byte* next = scratch_.data();
    for (std::size_t i = 0; i < n_devices; ++i)
      for (std::size_t j = 0; j < p; ++j) {
        const bool mine = j == member(b, axes, i);
        recv_[i * p + j] = {mine ? const_cast<std::byte*>(own(i)) : next, std::size_t(bytes(i))};
        if (!mine) next += bytes(i);
      }
  }

  /// result[k] = x[0][k] combined with x[1][k], x[2][k] ...; result may be one of the blocks.
  template <class T>
  static void combine(reduction what, std::span<const std::span<std::byte>> x, T* result) {
    const auto at = [&](std::size_t m) { return reinterpret_cast<const T*>(x[m].data()); };
    const auto n = std::int64_t(x[0].size() / sizeof(T));
    if (x.size() == 1) std::copy_n(at(0), at(0) == result ? 0 : n, result);
    if (x.size() == 1) return;
    detail::with_operation<T>(what, [&](auto op, T) {
      constexpr std::int64_t step = 1024;  // what is combined so far stays in the cache
      std::array<T, step> sum;
      for (std::int64_t begin = 0; begin < n; begin += step) {
        const std::int64_t length = std::min(step, n - begin);
        const T* so_far = at(0) + begin;
        for (std::size_t m = 1; m < x.size(); ++m) {
          T* const to = m + 1 == x.size() ? result + begin : sum.data();
          const T* const next = at(m) + begin;
          for (std::int64_t k = 0; k < length; ++k) to[k] = op(so_far[k], next[k]);
          so_far = to;
        }
      }
    });
  }

  std::int64_t gather_limit_;
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> bytes_, offset_;
  std::vector<std::span<const std::byte>> send_;
  std::vector<std::span<std::byte>> recv_;
  std::vector<exchange_part> exchange_;
  std::vector<gather_part> gather_;
};

namespace detail {
inline void check_per_device(const char* op, const char* name, std::size_t n, const backend& b) {
  if (n != b.devices().size())
    throw error(std::string(op) + ": " + name + " has " + std::to_string(n) + " entries for " +
                std::to_string(b.devices().size()) + " devices held");
}
}  // namespace detail

template <class T>
void reducer::all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data, std::span<const std::int64_t> n,
                         std::int64_t most) {
  static_assert(std::is_arithmetic_v<T>);
  detail::check_per_device("all_reduce", "data", data.size(), b);
  detail::check_per_device("all_reduce", "n", n.size(), b);
  for (const std::int64_t elements : n)
    if (elements < 0 || elements > most)
      throw error("all_reduce: a device with " + std::to_string(elements) + " elements, where the most are " + std::to_string(most));
  if (group_size(b, axes) == 1 || most == 0) return;
  if (most * std::int64_t(sizeof(T) * group_size(b, axes)) <= gather_limit_) all_reduce_by_gather(what, b, axes, data, n);
  else all_reduce_by_blocks(what, b, axes, data, n);
}

template <class T>
void reducer::all_reduce_by_gather(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data,
                                   std::span<const std::int64_t> n) {
  const std::size_t p = group_size(b, axes);
  const auto bytes = [&](std::size_t i) { return n[i] * std::int64_t(sizeof(T)); };
  receive_blocks(b, axes, bytes, [&](std::size_t i) { return reinterpret_cast<const std::byte*>(data[i]); });
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) gather_.push_back({block(data[i], 0, bytes(i)), row(recv_, i, p)});
  b.all_gather(axes, gather_);
  for (std::size_t i = 0; i < data.size(); ++i) combine(what, row(recv_, i, p), data[i]);
}

template <class T>
void reducer::all_reduce_by_blocks(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data,
                                   std::span<const std::int64_t> n) {
  constexpr std::int64_t width = sizeof(T);
  const std::size_t p = group_size(b, axes);
  bytes_.resize(data.size() * p);
  offset_.resize(data.size() * p);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::int64_t block = (n[i] + std::int64_t(p) - 1) / std::int64_t(p);
    for (std::size_t j = 0; j < p; ++j) {
      const std::int64_t begin = std::min(n[i], std::int64_t(j) * block);
      row(offset_, i, p)[j] = begin * width;
      row(bytes_, i, p)[j] = (std::min(n[i], begin + block) - begin) * width;
    }
  }
  const auto own_offset = [&](std::size_t i) { return row(offset_, i, p)[member(b, axes, i)]; };
  scatter<T>(
      what, b, axes, [&](std::size_t i) { return data[i]; }, [&](std::size_t i) { return data[i] + own_offset(i) / width; });
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto* const first = reinterpret_cast<std::byte*>(data[i]);
    for (std::size_t j = 0; j < p; ++j) recv_[i * p + j] = {first + row(offset_, i, p)[j], std::size_t(row(bytes_, i, p)[j])};
    gather_.push_back({recv_[i * p + member(b, axes, i)], row(recv_, i, p)});
  }
  b.all_gather(axes, gather_);
}

template <class T>
void reducer::reduce_scatter(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data,
                             std::span<const std::span<const std::int64_t>> counts, std::span<T* const> result) {
  static_assert(std::is_arithmetic_v<T>);
  constexpr std::int64_t width = sizeof(T);
  detail::check_per_device("reduce_scatter", "data", data.size(), b);
  detail::check_per_device("reduce_scatter", "result", result.size(), b);
  detail::check_per_device("reduce_scatter", "counts", counts.size(), b);
  const std::size_t p = group_size(b, axes);
  bytes_.resize(data.size() * p);
  offset_.resize(data.size() * p);
  for (std::size_t i = 0; i < data.size(); ++i) {
    detail::check_list("reduce_scatter", b.devices()[i], "counts", counts[i].size(), int(p));
    for (const std::int64_t count : counts[i])
      if (count < 0)
        throw error("reduce_scatter: device " + std::to_string(b.devices()[i]) + ": counts has a negative entry, " + std::to_string(count));
    const auto bytes = row(bytes_, i, p), offset = row(offset_, i, p);
    std::transform(counts[i].begin(), counts[i].end(), bytes.begin(), [](std::int64_t count) { return count * width; });
    std::exclusive_scan(bytes.begin(), bytes.end(), offset.begin(), std::int64_t{0});
  }
  scatter<T>(
      what, b, axes, [&](std::size_t i) { return data[i]; }, [&](std::size_t i) { return result[i]; });
}

template <class T, class Source, class Target>
void reducer::scatter(reduction what, backend& b, std::uint32_t axes, Source data, Target result) {
  const std::size_t n_devices = b.devices().size(), p = group_size(b, axes);
  const auto entry = [&](std::size_t i) { return i * p + member(b, axes, i); };
  receive_blocks(
      b, axes, [&](std::size_t i) { return bytes_[entry(i)]; },
      [&](std::size_t i) { return reinterpret_cast<const std::byte*>(data(i)) + offset_[entry(i)]; });
  send_.resize(n_devices * p);
  exchange_.clear();
  for (std::size_t i = 0; i < n_devices; ++i) {
    for (std::size_t j = 0; j < p; ++j) send_[i * p + j] = block(data(i), offset_[i * p + j], bytes_[i * p + j]);
    exchange_.push_back({row(send_, i, p), row(recv_, i, p)});
  }
  b.exchange(axes, exchange_);
  for (std::size_t i = 0; i < n_devices; ++i) combine(what, row(recv_, i, p), result(i));
}

}}  // namespace gshard::v0
