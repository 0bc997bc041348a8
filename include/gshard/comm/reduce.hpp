// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/backend.hpp>
#include <gshard/comm/combine.hpp>

#include <algorithm>
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
  // Combines the blocks whose sizes and offsets are in send_bytes_ and send_offset_, p entries per held device.
  template <class T, class Source, class Target>
  void scatter(reduction what, backend& b, std::uint32_t axes, Source data, Target result);

  static std::size_t group_size(const backend& b, std::uint32_t axes) { return std::size_t(device_group(b.extents(), axes, 0).size()); }
  static std::size_t member(const backend& b, std::uint32_t axes, std::size_t device) {
    return std::size_t(device_group(b.extents(), axes, b.devices()[device]).member());
  }
  /// Entries of held device `device` in a table of p entries per device.
  static std::span<std::int64_t> row(std::vector<std::int64_t>& table, std::size_t device, std::size_t p) {
    return std::span(table).subspan(device * p, p);
  }

  // Gives every held device room for p slots of the given size.
  void reserve(std::size_t n_devices, std::size_t p, std::int64_t slot_bytes) {
    room_ = std::int64_t(p) * slot_bytes;
    const std::size_t bytes = n_devices * std::size_t(room_);
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    slot_.resize(p);
    for (std::size_t m = 0; m < p; ++m) slot_[m] = std::int64_t(m) * slot_bytes;
  }
  std::byte* room(std::size_t device) { return scratch_.data() + std::int64_t(device) * room_; }

  template <class T>
  void combine(reduction what, std::size_t device, T* result, std::int64_t n) {
    detail::with_operation<T>(what, [&](auto op, T) {
      constexpr std::int64_t step = 1024;  // the running result stays in the cache
      for (std::int64_t begin = 0; begin < n; begin += step) {
        const std::int64_t end = std::min(begin + step, n);
        for (std::size_t m = 0; m < slot_.size(); ++m) {
          const T* x = reinterpret_cast<const T*>(room(device) + slot_[m]);
          if (m == 0)
            std::copy(x + begin, x + end, result + begin);
          else
            std::transform(result + begin, result + end, x + begin, result + begin, op);
        }
      }
    });
  }

  std::int64_t gather_limit_;
  std::int64_t room_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> slot_, send_bytes_, send_offset_, recv_bytes_;
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
  constexpr std::int64_t width = sizeof(T);
  const std::size_t p = group_size(b, axes);
  reserve(data.size(), p, *std::max_element(n.begin(), n.end()) * width);
  recv_bytes_.resize(data.size() * p);
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto bytes = row(recv_bytes_, i, p);
    std::fill(bytes.begin(), bytes.end(), n[i] * width);
    gather_.push_back({reinterpret_cast<const std::byte*>(data[i]), n[i] * width, room(i), bytes, slot_});
  }
  b.all_gather(axes, gather_);
  for (std::size_t i = 0; i < data.size(); ++i) combine(what, i, data[i], n[i]);
}

template <class T>
void reducer::all_reduce_by_blocks(reduction what, backend& b, std::uint32_t axes, std::span<T* const> data,
                                   std::span<const std::int64_t> n) {
  constexpr std::int64_t width = sizeof(T);
  const std::size_t p = group_size(b, axes);
  send_bytes_.resize(data.size() * p);
  send_offset_.resize(data.size() * p);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::int64_t block = (n[i] + std::int64_t(p) - 1) / std::int64_t(p);
    for (std::size_t j = 0; j < p; ++j) {
      const std::int64_t begin = std::min(n[i], std::int64_t(j) * block);
      row(send_offset_, i, p)[j] = begin * width;
      row(send_bytes_, i, p)[j] = (std::min(n[i], begin + block) - begin) * width;
    }
  }
  const auto own_offset = [&](std::size_t i) { return row(send_offset_, i, p)[member(b, axes, i)]; };
  scatter<T>(
      what, b, axes, [&](std::size_t i) { return data[i]; }, [&](std::size_t i) { return data[i] + own_offset(i) / width; });
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto* bytes = reinterpret_cast<std::byte*>(data[i]);
    gather_.push_back({bytes + own_offset(i), row(send_bytes_, i, p)[member(b, axes, i)], bytes,
                       row(send_bytes_, i, p), row(send_offset_, i, p)});
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
  send_bytes_.resize(data.size() * p);
  send_offset_.resize(data.size() * p);
  for (std::size_t i = 0; i < data.size(); ++i) {
    detail::check_list("reduce_scatter", b.devices()[i], "counts", counts[i], int(p));
    const auto bytes = row(send_bytes_, i, p), offset = row(send_offset_, i, p);
    std::transform(counts[i].begin(), counts[i].end(), bytes.begin(), [](std::int64_t count) { return count * width; });
    std::exclusive_scan(bytes.begin(), bytes.end(), offset.begin(), std::int64_t{0});
  }
  scatter<T>(
      what, b, axes, [&](std::size_t i) { return data[i]; }, [&](std::size_t i) { return result[i]; });
}

template <class T, class Source, class Target>
void reducer::scatter(reduction what, backend& b, std::uint32_t axes, Source data, Target result) {
  constexpr std::int64_t width = sizeof(T);
  const std::size_t n_devices = b.devices().size(), p = group_size(b, axes);
  reserve(n_devices, p, *std::max_element(send_bytes_.begin(), send_bytes_.end()));
  recv_bytes_.resize(n_devices * p);
  exchange_.clear();
  for (std::size_t i = 0; i < n_devices; ++i) {
    const auto sizes = row(send_bytes_, i, p), mine = row(recv_bytes_, i, p);
    std::fill(mine.begin(), mine.end(), sizes[member(b, axes, i)]);
    exchange_.push_back({reinterpret_cast<const std::byte*>(data(i)), room(i), sizes, row(send_offset_, i, p), mine, slot_});
  }
  b.exchange(axes, exchange_);
  for (std::size_t i = 0; i < n_devices; ++i) combine(what, i, result(i), recv_bytes_[i * p] / width);
}

}}  // namespace gshard::v0
