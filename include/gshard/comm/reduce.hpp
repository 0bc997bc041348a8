// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reductions across devices in a fixed order, so that all backends compute the same bits.

#include <gshard/comm/backend.hpp>
#include <gshard/comm/combine.hpp>
#include <gshard/comm/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

/// Reductions over the groups of any backend. Every element is combined in member order, for sums ((x0 + x1) + x2) + ... This order depends
/// neither on sizes nor on the algorithm or the backend, so equal inputs give equal bits.
///
/// Keeps its scratch memory between calls. A call that needs no more than an earlier one allocates nothing.
class reducer {
 public:
  /// If the operands of a group have at most `gather_limit` bytes in all, every device gathers and combines all of them. The same on all
  /// processes.
  explicit reducer(std::int64_t gather_limit) : gather_limit_(gather_limit) {}

  /// Reduces element k of data over the group of device i into result[i][k]. It may be in place. n[i]: the elements of held device i, equal
  /// within a group. `most`: the largest number of elements on any device of the mesh; the same on all processes.
  /// Communicates: each of p members sends 2 (p - 1) / p n elements, in one exchange and one all_gather. If `most` is small, it sends
  /// (p - 1) n in one all_gather.
  template <class T>
  void all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                  std::span<const std::int64_t> n, std::int64_t most) {
    start_all_reduce<T>(b, axes, data, result, n, most);
    finish_all_reduce<T>(what, b, axes, data, result, n, most);
  }
  /// The same in two calls with the same arguments. In between, data must not change and the reducer must not be used. The second call
  /// communicates, too. So all processes must start and finish reductions, and all other communication, in one order.
  template <class T>
  void start_all_reduce(backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                        std::span<const std::int64_t> n, std::int64_t most);
  template <class T>
  void finish_all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                         std::span<const std::int64_t> n, std::int64_t most);
  /// Abandons a started reduction.
  void drop() { sequence_.drop(); }

  /// Combines at(0)[k], at(1)[k], at(2)[k], ... in this order into result[k], for n elements of p members. The result may be one operand.
  template <class T, class At>
  static void combine(reduction what, std::size_t p, std::int64_t n, const At& at, T* result) {
    const auto address = [](const void* f, std::size_t m) -> const T* { return (*static_cast<const At*>(f))(m); };
    combine_operands<T>(what, p, n, {&at, address}, result);
  }

 private:
  /// The address of member m's operand. Not a template parameter, so that the loops are compiled once per element type and reduction.
  template <class T>
  struct operands {
    const void* object;
    const T* (*address)(const void*, std::size_t);
    const T* operator()(std::size_t m) const { return address(object, m); }
  };
  template <class T>
  static void combine_operands(reduction what, std::size_t p, std::int64_t n, operands<T> at, T* result) {
    if (p == 1 && at(0) != result) std::copy_n(at(0), n, result);
    if (p == 1) return;
    detail::with_operation<T>(what, [&]<class Number>(auto op, Number) {
      constexpr std::int64_t step = 1024;  // intermediate results stay in the cache
      std::array<Number, step> sum;
      const auto numbers = [&](std::size_t m, std::int64_t begin) { return reinterpret_cast<const Number*>(at(m) + begin); };
      for (std::int64_t begin = 0; begin < n; begin += step) {
        const std::int64_t length = std::min(step, n - begin);
        const Number* so_far = numbers(0, begin);
        for (std::size_t m = 1; m < p; ++m) {
          Number* const to = m + 1 == p ? reinterpret_cast<Number*>(result + begin) : sum.data();
          combine_two(so_far, numbers(m, begin), to, length, op);
          so_far = to;
        }
      }
    });
  }
  // z may alias x or y.
  template <class T, class Op>
  static void combine_two(const T* x, const T* y, T* z, std::int64_t n, Op op) {
    constexpr auto lanes = std::int64_t(64 / sizeof(T));
    std::int64_t k = 0;
    for (; k + lanes <= n; k += lanes) {
      std::array<T, std::size_t(lanes)> a, b;
      std::memcpy(a.data(), x + k, 64);
      std::memcpy(b.data(), y + k, 64);
      for (std::size_t l = 0; l < a.size(); ++l) a[l] = op(a[l], b[l]);
      std::memcpy(z + k, a.data(), 64);
    }
    for (; k < n; ++k) z[k] = op(x[k], y[k]);
  }

  template <class T>
  void all_reduce_by_gather(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                            std::span<const std::int64_t> n);
  // Splits data into p blocks: member j reduces block j.
  template <class T>
  void split_evenly(std::span<const std::int64_t> n, std::size_t p);
  template <class T>
  void gather_blocks(backend& b, std::uint32_t axes, std::span<T* const> result);
  // Block j of device i begins at byte offset_[i, j] of data[i] and has bytes_[i, j] bytes. Member j reduces block j of all into result.
  template <class T>
  void start_scatter(backend& b, std::uint32_t axes, std::span<const T* const> data);
  template <class T>
  void finish_scatter(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result);
  template <class T>
  std::span<const exchange_part> fill(const backend& b, std::uint32_t axes, std::span<const T* const> data, std::size_t r);
  std::int64_t bytes_in_round(std::size_t entry, std::size_t r, std::int64_t most) const {
    return std::clamp<std::int64_t>(bytes_[entry] - std::int64_t(r) * most, 0, most);
  }
  template <class T>
  bool gathers_addends(const backend& b, std::uint32_t axes, std::int64_t most) const {
    return most * std::int64_t(sizeof(T) * group_size(b, axes)) <= gather_limit_;
  }

  static std::size_t group_size(const backend& b, std::uint32_t axes) { return std::size_t(device_group(b.extents(), axes, 0).size()); }
  static std::size_t member(const backend& b, std::uint32_t axes, std::size_t device) {
    return std::size_t(device_group(b.extents(), axes, b.devices()[device]).member());
  }
  /// The entries of a held device in a table of p entries per device.
  template <class Entry>
  static std::span<Entry> row(std::vector<Entry>& table, std::size_t device, std::size_t p) {
    return std::span(table).subspan(device * p, p);
  }
  template <class T>
  static std::span<const std::byte> block(const T* data, std::int64_t offset, std::int64_t bytes) {
    return bytes == 0 ? std::span<const std::byte>() : std::span(reinterpret_cast<const std::byte*>(data) + offset, std::size_t(bytes));
  }

  std::byte* room(std::size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

  std::int64_t gather_limit_;
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> bytes_, offset_;
  std::vector<std::span<std::byte>> recv_;
  std::vector<gather_part> gather_;
  struct round {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
    std::vector<exchange_part> parts;
  };
  std::array<round, detail::rounds_under_way> rounds_;  // in flight
  std::int64_t slot_ = 0;                               // bytes reserved for a block received in a round
  detail::round_sequence sequence_;
};

namespace detail {
inline void check_per_device(const char* op, const char* name, std::size_t n, const backend& b) {
  if (n != b.devices().size())
    throw error(std::string(op) + ": " + name + " has " + std::to_string(n) + " entries for " +
                std::to_string(b.devices().size()) + " local devices");
}
}  // namespace detail

template <class T>
void reducer::start_all_reduce(backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                               std::span<const std::int64_t> n, std::int64_t most) {
  static_assert(std::is_arithmetic_v<T>);
  detail::check_per_device("all_reduce", "data", data.size(), b);
  detail::check_per_device("all_reduce", "result", result.size(), b);
  detail::check_per_device("all_reduce", "n", n.size(), b);
  for (const std::int64_t elements : n)
    if (elements < 0 || elements > most)
      throw error("all_reduce: a device with " + std::to_string(elements) + " elements; the maximum is " + std::to_string(most));
  if (most == 0 || group_size(b, axes) == 1 || gathers_addends<T>(b, axes, most)) return;
  split_evenly<T>(n, group_size(b, axes));
  start_scatter<T>(b, axes, data);
}

template <class T>
void reducer::finish_all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                                std::span<const std::int64_t> n, std::int64_t most) {
  const std::size_t p = group_size(b, axes);
  if (most == 0) return;
  if (p == 1) {
    for (std::size_t i = 0; i < data.size(); ++i) combine(what, 1, n[i], [&](std::size_t) { return data[i]; }, result[i]);
  } else if (gathers_addends<T>(b, axes, most)) {
    all_reduce_by_gather(what, b, axes, data, result, n);
  } else {
    std::exception_ptr problem;  // thrown after the gather, for which the other members wait
    try {
      finish_scatter(what, b, axes, data, result);
    } catch (...) {
      problem = std::current_exception();
    }
    gather_blocks(b, axes, result);
    if (problem) std::rethrow_exception(problem);
  }
}

template <class T>
void reducer::all_reduce_by_gather(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data,
                                   std::span<T* const> result, std::span<const std::int64_t> n) {
  const std::size_t p = group_size(b, axes);
  std::size_t bytes = 0;
  for (const std::int64_t elements : n) bytes += p * std::size_t(elements) * sizeof(T);
  std::byte* next = room(bytes);
  recv_.resize(data.size() * p);
  gather_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::span<const std::byte> mine = block(data[i], 0, n[i] * std::int64_t(sizeof(T)));
    for (std::span<std::byte>& from : row(recv_, i, p)) {
      from = {next, mine.size()};
      next += mine.size();
    }
    gather_.push_back({mine, row(recv_, i, p)});
  }
  b.all_gather(axes, gather_);
  for (std::size_t i = 0; i < data.size(); ++i)
    combine(what, p, n[i], [&](std::size_t m) { return reinterpret_cast<const T*>(recv_[i * p + m].data()); }, result[i]);
}

template <class T>
void reducer::split_evenly(std::span<const std::int64_t> n, std::size_t p) {
  constexpr std::int64_t width = sizeof(T);
  bytes_.resize(n.size() * p);
  offset_.resize(n.size() * p);
  for (std::size_t i = 0; i < n.size(); ++i) {
    const std::int64_t block = (n[i] + std::int64_t(p) - 1) / std::int64_t(p);
    for (std::size_t j = 0; j < p; ++j) {
      const std::int64_t begin = std::min(n[i], std::int64_t(j) * block);
      row(offset_, i, p)[j] = begin * width;
      row(bytes_, i, p)[j] = (std::min(n[i], begin + block) - begin) * width;
    }
  }
}

template <class T>
void reducer::gather_blocks(backend& b, std::uint32_t axes, std::span<T* const> result) {
  const std::size_t p = group_size(b, axes);
  recv_.resize(result.size() * p);
  gather_.clear();
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto* const first = reinterpret_cast<std::byte*>(result[i]);
    for (std::size_t j = 0; j < p; ++j) recv_[i * p + j] = {first + row(offset_, i, p)[j], std::size_t(row(bytes_, i, p)[j])};
    gather_.push_back({recv_[i * p + member(b, axes, i)], row(recv_, i, p)});
  }
  b.all_gather(axes, gather_);
}

template <class T>
std::span<const exchange_part> reducer::fill(const backend& b, std::uint32_t axes, std::span<const T* const> data, std::size_t r) {
  const std::size_t n_devices = data.size(), p = group_size(b, axes);
  const std::int64_t most = detail::bytes_per_round(p);
  round& now = rounds_[r % rounds_.size()];
  now.send.resize(n_devices * p);
  now.recv.resize(n_devices * p);
  now.parts.clear();
  for (std::size_t i = 0; i < n_devices; ++i) {
    const std::size_t own = i * p + member(b, axes, i);
    for (std::size_t k = i * p; k < (i + 1) * p; ++k) {
      const bool others = k != own;
      now.send[k] = block(data[i], offset_[k] + std::int64_t(r) * most, others ? bytes_in_round(k, r, most) : 0);
      now.recv[k] = {scratch_.data() + std::int64_t((r % rounds_.size()) * n_devices * p + k) * slot_,
                     std::size_t(others ? bytes_in_round(own, r, most) : 0)};
    }
    now.parts.push_back({row(now.send, i, p), row(now.recv, i, p)});
  }
  return now.parts;
}

template <class T>
void reducer::start_scatter(backend& b, std::uint32_t axes, std::span<const T* const> data) {
  const std::size_t p = group_size(b, axes);
  const std::int64_t most = detail::bytes_per_round(p), longest = *std::max_element(bytes_.begin(), bytes_.end());
  for (std::size_t i = 0; i < data.size(); ++i) b.count(i, {1, std::int64_t(p - 1) * bytes_[i * p + member(b, axes, i)], 0, 0});
  const auto rounds = std::size_t((longest + most - 1) / most);
  slot_ = std::min(longest, most);
  room(std::min(rounds, rounds_.size()) * data.size() * p * std::size_t(slot_));
  sequence_.start(b, axes, rounds, {slot_, std::int64_t(p) - 1}, [&](std::size_t r) { return fill(b, axes, data, r); });
}

template <class T>
void reducer::finish_scatter(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result) {
  constexpr std::int64_t width = sizeof(T);
  const std::size_t p = group_size(b, axes);
  const std::int64_t most = detail::bytes_per_round(p);
  const auto took = [&](std::size_t r) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::size_t mine = member(b, axes, i), own = i * p + mine;
      const std::int64_t at = (offset_[own] + std::int64_t(r) * most) / width;
      const auto from = row(rounds_[r % rounds_.size()].recv, i, p);
      combine(what, p, bytes_in_round(own, r, most) / width,
              [&](std::size_t m) { return m == mine ? data[i] + at : reinterpret_cast<const T*>(from[m].data()); }, result[i] + at);
    }
  };
  sequence_.finish(b, axes, [&](std::size_t r) { return fill(b, axes, data, r); }, took);
}

}}  // namespace gshard::v0
