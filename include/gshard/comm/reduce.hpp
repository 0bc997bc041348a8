// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reductions across devices in a fixed order, so that all backends compute the same bits.

#include <gshard/comm/backend.hpp>
#include <gshard/comm/combine_operands.hpp>
#include <gshard/comm/hierarchical_all_gather.hpp>
#include <gshard/comm/hierarchical_reduce_scatter.hpp>
#include <gshard/comm/node_group.hpp>
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

/// Reductions over the groups of any backend. Every element is combined in the order of node_map::sums. This order depends neither on sizes
/// nor on the algorithm or the backend, so equal inputs give equal bits.
///
/// Keeps its scratch memory between calls. A call that needs no more than an earlier one allocates nothing.
class reducer {
 public:
  /// If the operands of a group have at most `gather_limit` bytes in all, every device gathers and combines all of them. The same on all
  /// processes.
  explicit reducer(std::int64_t gather_limit) : gather_limit_(gather_limit) {}

  /// Reduces element k of data over the group of device i into result[i][k]. It may be in place. n[i]: the elements of held device i, equal
  /// within a group. `most`: the largest number of elements on any device of the mesh; the same on all processes.
  /// Communicates: each of p members sends 2 (p - 1) / p n elements. With N nodes, a node sends about 2 (N - 1) / N n elements to others.
  /// If `most` is small, each member sends (p - 1) n in one all_gather.
  template <class T>
  void all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                  std::span<const std::int64_t> n, std::int64_t most) {
    start_all_reduce<T>(what, b, axes, data, result, n, most);
    finish_all_reduce<T>(b, data, result, n, most);
  }
  /// The same in two calls with the same data. In between, data must not change and the reducer must not be used. The second call
  /// communicates, too. So all processes must start and finish reductions, and all other communication, in one order.
  template <class T>
  void start_all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                        std::span<const std::int64_t> n, std::int64_t most);
  template <class T>
  void finish_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result, std::span<const std::int64_t> n,
                         std::int64_t most);
  /// Abandons a started reduction.
  void drop() { sequence_.drop(); }

 private:
  template <class T>
  void all_reduce_by_gather(backend& b, std::span<const T* const> data, std::span<T* const> result, std::span<const std::int64_t> n);
  /// Splits data into a block per member, which that member reduces: offset_ and bytes_, by held device and member.
  template <class T>
  void split(std::span<const std::int64_t> n);
  template <class T>
  void start_scatter(backend& b, std::span<const T* const> data);
  template <class T>
  void finish_scatter(backend& b, std::span<const T* const> data, std::span<T* const> result);
  template <class T>
  std::span<const exchange_part> fill(backend& b, std::span<const T* const> data, std::size_t r);
  template <class T>
  void gather_blocks(backend& b, std::span<T* const> result);
  template <class T>
  bool gathers_addends(std::int64_t most) const {
    return most * std::int64_t(sizeof(T) * groups_.members()) <= gather_limit_;
  }

  std::int64_t bytes_per_round() const { return detail::bytes_per_round(groups_.members(), groups_.have_levels()); }
  std::size_t entry(std::size_t device, std::size_t m) const { return device * groups_.members() + m; }
  /// The bytes of member m's block in round r, in the data of a held device.
  template <class Byte>
  std::span<Byte> in_round(Byte* data, std::size_t device, std::size_t m, std::size_t r) const {
    const std::int64_t most = bytes_per_round(), done = std::int64_t(r) * most, bytes = bytes_[entry(device, m)];
    if (bytes <= done) return {};
    return {data + offset_[entry(device, m)] + done, std::size_t(std::min(bytes - done, most))};
  }
  std::size_t rounds() const {
    const std::int64_t most = bytes_per_round(), longest = *std::ranges::max_element(bytes_);
    return std::size_t((longest + most - 1) / most);
  }
  template <class T>
  static const std::byte* bytes_of(const T* data) {
    return reinterpret_cast<const std::byte*>(data);
  }

  std::int64_t gather_limit_;
  detail::held_groups groups_;
  detail::hierarchical_reduce_scatter scatter_;
  detail::hierarchical_all_gather gather_;
  detail::round_sequence sequence_;
  reduction what_ = reduction::sum;  // of the reduction in flight
  std::vector<std::int64_t> bytes_, offset_;
  std::vector<std::byte> addends_;  // of a small sum
  std::vector<std::span<std::byte>> recv_;
  std::vector<gather_part> gathered_;
};

namespace detail {
inline void check_per_device(const char* op, const char* name, std::size_t n, const backend& b) {
  if (n != b.devices().size())
    throw error(std::string(op) + ": " + name + " has " + std::to_string(n) + " entries for " + std::to_string(b.devices().size()) +
                " local devices");
}
}  // namespace detail

template <class T>
void reducer::start_all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                               std::span<const std::int64_t> n, std::int64_t most) {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, detail::bf16>);
  detail::check_per_device("all_reduce", "data", data.size(), b);
  detail::check_per_device("all_reduce", "result", result.size(), b);
  detail::check_per_device("all_reduce", "n", n.size(), b);
  for (const std::int64_t elements : n)
    if (elements < 0 || elements > most)
      throw error("all_reduce: a device with " + std::to_string(elements) + " elements; the maximum is " + std::to_string(most));
  what_ = what;
  groups_.use(b, axes);
  if (most == 0 || groups_.members() == 1 || gathers_addends<T>(most)) return;
  split<T>(n);
  start_scatter<T>(b, data);
}

template <class T>
void reducer::finish_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result, std::span<const std::int64_t> n,
                                std::int64_t most) {
  if (most == 0) return;
  if (groups_.members() == 1) {
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != result[i]) std::copy_n(data[i], n[i], result[i]);
  } else if (gathers_addends<T>(most)) {
    all_reduce_by_gather(b, data, result, n);
  } else {
    std::exception_ptr problem;  // thrown after the gather, for which the other members wait
    try {
      finish_scatter(b, data, result);
    } catch (...) {
      problem = std::current_exception();
    }
    gather_blocks(b, result);
    if (problem) std::rethrow_exception(problem);
  }
}

template <class T>
void reducer::all_reduce_by_gather(backend& b, std::span<const T* const> data, std::span<T* const> result,
                                   std::span<const std::int64_t> n) {
  const std::size_t p = groups_.members();
  std::size_t bytes = 0;
  for (const std::int64_t elements : n) bytes += p * std::size_t(elements) * sizeof(T);
  if (addends_.size() < bytes) addends_.resize(bytes);
  std::byte* next = addends_.data();
  recv_.resize(data.size() * p);
  gathered_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::span<const std::byte> mine(bytes_of(data[i]), std::size_t(n[i]) * sizeof(T));
    const auto of_device = std::span(recv_).subspan(i * p, p);
    for (std::span<std::byte>& from : of_device) {
      from = {next, mine.size()};
      next += mine.size();
    }
    gathered_.push_back({mine, of_device});
  }
  b.all_gather(groups_.axes(), gathered_);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const sum_order& order = groups_[i].order();
    detail::combine_operands<T>(
        what_, order, order.root(), n[i], [&](std::size_t m) { return reinterpret_cast<const T*>(recv_[i * p + m].data()); }, result[i]);
  }
}

template <class T>
void reducer::split(std::span<const std::int64_t> n) {
  const std::size_t p = groups_.members();
  bytes_.resize(n.size() * p);
  offset_.resize(n.size() * p);
  for (std::size_t i = 0; i < n.size(); ++i)
    for (std::size_t m = 0; m < p; ++m) {
      const interval share = detail::node_group::share(n[i], m, p);
      offset_[entry(i, m)] = share.begin * std::int64_t(sizeof(T));
      bytes_[entry(i, m)] = share.size() * std::int64_t(sizeof(T));
    }
}

template <class T>
std::span<const exchange_part> reducer::fill(backend& b, std::span<const T* const> data, std::size_t r) {
  return scatter_.begin<T>(b, groups_, what_, r % detail::rounds_under_way,
                           [&](std::size_t i, std::size_t m) { return in_round(bytes_of(data[i]), i, m, r); });
}

template <class T>
void reducer::start_scatter(backend& b, std::span<const T* const> data) {
  const std::size_t p = groups_.members();
  for (std::size_t i = 0; i < data.size(); ++i) b.count(i, {1, std::int64_t(p - 1) * bytes_[entry(i, groups_[i].me())], 0, 0});
  exchange_bounds all;
  if (!groups_.have_levels()) all = {std::min(*std::ranges::max_element(bytes_), bytes_per_round()), std::int64_t(p) - 1};
  sequence_.start(b, groups_.axes(), rounds(), all, [&](std::size_t r) { return fill(b, data, r); });
}

template <class T>
void reducer::finish_scatter(backend& b, std::span<const T* const> data, std::span<T* const> result) {
  const auto took = [&](std::size_t r) {
    scatter_.end<T>(groups_, what_, r % detail::rounds_under_way, [&](std::size_t i) {
      return reinterpret_cast<T*>(in_round(reinterpret_cast<std::byte*>(result[i]), i, groups_[i].me(), r).data());
    });
  };
  sequence_.finish(
      b, groups_.axes(), [&](std::size_t r) { return fill(b, data, r); }, took);
}

template <class T>
void reducer::gather_blocks(backend& b, std::span<T* const> result) {
  const std::size_t p = groups_.members();
  const auto bytes = [&](std::size_t i) { return reinterpret_cast<std::byte*>(result[i]); };
  if (!groups_.are_on_nodes()) {
    recv_.resize(result.size() * p);
    gathered_.clear();
    for (std::size_t i = 0; i < result.size(); ++i) {
      for (std::size_t m = 0; m < p; ++m) recv_[entry(i, m)] = {bytes(i) + offset_[entry(i, m)], std::size_t(bytes_[entry(i, m)])};
      gathered_.push_back({recv_[entry(i, groups_[i].me())], std::span(recv_).subspan(i * p, p)});
    }
    return b.all_gather(groups_.axes(), gathered_);
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::int64_t in_all = 0;
    for (std::size_t m = 0; m < p; ++m) in_all += bytes_[entry(i, m)];
    b.count(i, {0, 0, 1, in_all - bytes_[entry(i, groups_[i].me())]});
  }
  const auto fill_gather = [&](std::size_t r) {
    return gather_.begin(
        groups_, r % detail::rounds_under_way,
        [&](std::size_t i) { return std::span<const std::byte>(in_round(bytes(i), i, groups_[i].me(), r)); },
        [&](std::size_t i, std::size_t m) { return in_round(bytes(i), i, m, r); });
  };
  sequence_.start(b, groups_.axes(), rounds(), {}, fill_gather);
  sequence_.finish(b, groups_.axes(), fill_gather, [&](std::size_t r) { gather_.end(b, groups_, r % detail::rounds_under_way); });
}

}}  // namespace gshard::v0
