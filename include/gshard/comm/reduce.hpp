// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

/// Reductions over the groups of any backend. Every element is combined in member order, ((x0 + x1) + x2) +
/// ..., whatever the sizes, the algorithm and the backend: equal inputs give equal bits.
///
/// Keeps its scratch memory from call to call; a call that needs no more than an earlier one allocates
/// nothing.
class reducer {
 public:
  /// Data of at most `gather_limit` bytes are gathered whole and combined by every device. The same on all
  /// processes.
  explicit reducer(std::int64_t gather_limit = 4096) : gather_limit_(gather_limit) {}

  /// data[i][k] becomes the combination of element k over the group of device i; data: n elements per held
  /// device. Communicates: each of p members sends 2 (p - 1) / p n elements (one exchange, one all_gather),
  /// or (p - 1) n in one all_gather where data are small.
  template <class T, class Op>
  void all_reduce(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n, Op op);

  template <class T>
  void all_reduce_sum(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n) {
    all_reduce(b, axes, data, n, std::plus<T>{});
  }

  /// data[i] holds one block per member, one after another, block j of counts[j] elements. result[i] becomes
  /// the combination of block j over the group in which device i is member j; it may be that block of
  /// data[i]. Communicates: each member sends all its blocks, except its own, in one exchange.
  template <class T, class Op>
  void reduce_scatter(backend& b, std::uint32_t axes, std::span<const T* const> data,
                      std::span<const std::int64_t> counts, std::span<T* const> result, Op op);

  template <class T>
  void reduce_scatter_sum(backend& b, std::uint32_t axes, std::span<const T* const> data,
                          std::span<const std::int64_t> counts, std::span<T* const> result) {
    reduce_scatter(b, axes, data, counts, result, std::plus<T>{});
  }

 private:
  template <class T, class Op>
  void all_reduce_by_gather(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n, Op op);
  template <class T, class Op>
  void all_reduce_by_blocks(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n, Op op);
  template <class T, class Op, class Source, class Target>
  void scatter(backend& b, std::uint32_t axes, std::span<const std::int64_t> counts, Source data,
               Target result, Op op);

  // Gives every held device room for p slots of the given size.
  void reserve(std::size_t n_devices, std::size_t p, std::int64_t slot_bytes) {
    room_ = std::int64_t(p) * slot_bytes;
    const std::size_t bytes = n_devices * std::size_t(room_);
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    slot_.resize(p);
    for (std::size_t m = 0; m < p; ++m) slot_[m] = std::int64_t(m) * slot_bytes;
  }
  std::byte* room(std::size_t device) { return scratch_.data() + std::int64_t(device) * room_; }

  template <class T, class Op>
  void combine(std::size_t device, T* result, std::int64_t n, Op op) {
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
  }

  std::int64_t gather_limit_;
  std::int64_t room_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> slot_, count_, send_bytes_, send_offset_, recv_bytes_;
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

template <class T, class Op>
void reducer::all_reduce(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n, Op op) {
  static_assert(std::is_arithmetic_v<T>);
  detail::check_per_device("all_reduce", "data", data.size(), b);
  if (n < 0) throw error("all_reduce: a negative number of elements, " + std::to_string(n));
  if (device_group(b.extents(), axes, 0).size() == 1 || n == 0) return;
  if (n * std::int64_t(sizeof(T)) <= gather_limit_)
    all_reduce_by_gather(b, axes, data, n, op);
  else
    all_reduce_by_blocks(b, axes, data, n, op);
}

template <class T, class Op>
void reducer::all_reduce_by_gather(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n,
                                   Op op) {
  const auto p = std::size_t(device_group(b.extents(), axes, 0).size());
  const std::int64_t bytes = n * std::int64_t(sizeof(T));
  reserve(data.size(), p, bytes);
  recv_bytes_.assign(p, bytes);
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i)
    gather_.push_back({reinterpret_cast<const std::byte*>(data[i]), bytes, room(i), recv_bytes_, slot_});
  b.all_gather(axes, gather_);
  for (std::size_t i = 0; i < data.size(); ++i) combine(i, data[i], n, op);
}

template <class T, class Op>
void reducer::all_reduce_by_blocks(backend& b, std::uint32_t axes, std::span<T* const> data, std::int64_t n,
                                   Op op) {
  const std::int64_t p = device_group(b.extents(), axes, 0).size();
  const std::int64_t block = (n + p - 1) / p;
  count_.clear();
  for (std::int64_t j = 0; j < p; ++j) count_.push_back(std::clamp<std::int64_t>(n - j * block, 0, block));
  const auto member = [&](std::size_t i) {
    return std::size_t(device_group(b.extents(), axes, b.devices()[i]).member());
  };
  scatter<T>(
      b, axes, count_, [&](std::size_t i) { return data[i]; },
      [&](std::size_t i) { return data[i] + send_offset_[member(i)] / std::int64_t(sizeof(T)); }, op);
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto* bytes = reinterpret_cast<std::byte*>(data[i]);
    gather_.push_back(
        {bytes + send_offset_[member(i)], send_bytes_[member(i)], bytes, send_bytes_, send_offset_});
  }
  b.all_gather(axes, gather_);
}

template <class T, class Op>
void reducer::reduce_scatter(backend& b, std::uint32_t axes, std::span<const T* const> data,
                             std::span<const std::int64_t> counts, std::span<T* const> result, Op op) {
  static_assert(std::is_arithmetic_v<T>);
  detail::check_per_device("reduce_scatter", "data", data.size(), b);
  detail::check_per_device("reduce_scatter", "result", result.size(), b);
  detail::check_list("reduce_scatter", b.devices()[0], "counts", counts,
                     device_group(b.extents(), axes, 0).size());
  scatter<T>(
      b, axes, counts, [&](std::size_t i) { return data[i]; }, [&](std::size_t i) { return result[i]; }, op);
}

template <class T, class Op, class Source, class Target>
void reducer::scatter(backend& b, std::uint32_t axes, std::span<const std::int64_t> counts, Source data,
                      Target result, Op op) {
  constexpr std::int64_t width = sizeof(T);
  const std::size_t n_devices = b.devices().size(), p = counts.size();
  send_bytes_.resize(p);
  send_offset_.resize(p);
  std::transform(counts.begin(), counts.end(), send_bytes_.begin(), [](std::int64_t n) { return n * width; });
  std::exclusive_scan(send_bytes_.begin(), send_bytes_.end(), send_offset_.begin(), std::int64_t{0});
  reserve(n_devices, p, *std::max_element(send_bytes_.begin(), send_bytes_.end()));

  recv_bytes_.resize(n_devices * p);
  exchange_.clear();
  for (std::size_t i = 0; i < n_devices; ++i) {
    const int member = device_group(b.extents(), axes, b.devices()[i]).member();
    const auto mine = std::span(recv_bytes_).subspan(i * p, p);
    std::fill(mine.begin(), mine.end(), send_bytes_[std::size_t(member)]);
    const auto* bytes = reinterpret_cast<const std::byte*>(data(i));
    exchange_.push_back({bytes, room(i), send_bytes_, send_offset_, mine, slot_});
  }
  b.exchange(axes, exchange_);
  for (std::size_t i = 0; i < n_devices; ++i) combine(i, result(i), recv_bytes_[i * p] / width, op);
}

}}  // namespace gshard::v0
