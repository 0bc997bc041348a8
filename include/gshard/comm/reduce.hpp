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
#include <utility>
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
  /// An all_reduce in several calls with the same data. In between, data must not change and the reducer must not be used. The later calls
  /// also communicate. All processes must therefore start and finish reductions, and all other communication, in one order. `channel`: the
  /// channel of the exchanges. No other exchange may use it until the reduction is finished. @see exchange_bounds
  template <class T>
  void start_all_reduce(reduction what, backend& b, std::uint32_t axes, std::span<const T* const> data, std::span<T* const> result,
                        std::span<const std::int64_t> n, std::int64_t most, std::uint32_t channel = 0);
  /// Continues with the messages that have arrived, without waiting. Each process may call it any number of times, or not at all. Returns
  /// false if finish_all_reduce would wait for messages that were sent before.
  template <class T>
  bool advance_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result);
  template <class T>
  void finish_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result, std::span<const std::int64_t> n,
                         std::int64_t most);
  /// Completes a started reduction after an error on all processes. Errors are ignored. The result is undefined.
  template <class T>
  void drop_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result);

 private:
  template <class T>
  void all_reduce_by_gather(backend& b, std::span<const T* const> data, std::span<T* const> result, std::span<const std::int64_t> n);
  /// Splits data into one block per member, which that member reduces. Sets offset_ and bytes_, by held device and member.
  template <class T>
  void split(std::span<const std::int64_t> n);
  /// The work of the rounds in the two phases: sums of the blocks, then the exchange of the sums.
  template <class T>
  auto scatter_work(std::span<const T* const> data, std::span<T* const> result);
  template <class T>
  auto gather_work(std::span<T* const> result);
  template <class T>
  void finish_scatter(std::span<const T* const> data, std::span<T* const> result);
  template <class T>
  void start_gather(backend& b, std::span<const T* const> data, std::span<T* const> result);
  /// Within a node, one call of the backend gathers the blocks.
  template <class T>
  void gather_at_once(backend& b, std::span<T* const> result);
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
  enum class phase { idle, scatter, gather } phase_ = phase::idle;  // of the reduction in flight
  std::uint32_t channel_ = 0;
  std::exception_ptr problem_;  // thrown after the gather, for which the other members wait
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
                               std::span<const std::int64_t> n, std::int64_t most, std::uint32_t channel) {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, detail::bf16>);
  detail::check_per_device("all_reduce", "data", data.size(), b);
  detail::check_per_device("all_reduce", "result", result.size(), b);
  detail::check_per_device("all_reduce", "n", n.size(), b);
  for (const std::int64_t elements : n)
    if (elements < 0 || elements > most)
      throw error("all_reduce: a device with " + std::to_string(elements) + " elements; the maximum is " + std::to_string(most));
  what_ = what;
  groups_.use(b, axes);
  channel_ = channel;
  phase_ = phase::idle;
  problem_ = nullptr;
  if (most == 0 || groups_.members() == 1 || gathers_addends<T>(most)) return;
  split<T>(n);
  const std::size_t p = groups_.members();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::int64_t mine = bytes_[entry(i, groups_[i].me())];
    std::int64_t in_all = 0;
    for (std::size_t m = 0; m < p; ++m) in_all += bytes_[entry(i, m)];
    b.count(i, {1, std::int64_t(p - 1) * mine, 0, 0});
    if (groups_.are_on_nodes()) b.count(i, {0, 0, 1, in_all - mine});
  }
  exchange_bounds all{.channel = channel};
  if (!groups_.have_levels()) {
    all.block_bytes = std::min(*std::ranges::max_element(bytes_), bytes_per_round());
    all.messages = std::int64_t(p) - 1;
  }
  phase_ = phase::scatter;
  sequence_.start(b, groups_.axes(), rounds(), all, scatter_work<T>(data, result));
}

template <class T>
bool reducer::advance_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result) {
  if (phase_ == phase::scatter) {
    if (!sequence_.advance(scatter_work<T>(data, result))) return false;
    if (!groups_.are_on_nodes()) return true;
    start_gather<T>(b, data, result);
  }
  return phase_ == phase::idle || sequence_.advance(gather_work<T>(result));
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
    if (phase_ == phase::scatter && !groups_.are_on_nodes()) {
      finish_scatter<T>(data, result);
      gather_at_once<T>(b, result);
    } else {
      if (phase_ == phase::scatter) start_gather<T>(b, data, result);
      sequence_.finish(gather_work<T>(result));
    }
    phase_ = phase::idle;
    if (const std::exception_ptr problem = std::exchange(problem_, nullptr)) std::rethrow_exception(problem);
  }
}

template <class T>
void reducer::drop_all_reduce(backend& b, std::span<const T* const> data, std::span<T* const> result) {
  if (phase_ == phase::scatter && groups_.are_on_nodes()) start_gather<T>(b, data, result);
  if (phase_ == phase::scatter) sequence_.drop(scatter_work<T>(data, result));
  if (phase_ == phase::gather) sequence_.drop(gather_work<T>(result));
  phase_ = phase::idle;
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
auto reducer::scatter_work(std::span<const T* const> data, std::span<T* const> result) {
  const auto exchange = [=, this](std::size_t r, std::size_t stage) {
    const std::size_t slot = r % detail::rounds_under_way;
    if (stage == 1) return scatter_.forward<T>(groups_, what_, slot);
    return scatter_.begin<T>(groups_, what_, slot, [&](std::size_t i, std::size_t m) { return in_round(bytes_of(data[i]), i, m, r); });
  };
  const auto took = [=, this](std::size_t r) {
    scatter_.end<T>(groups_, what_, r % detail::rounds_under_way, [&](std::size_t i) {
      return reinterpret_cast<T*>(in_round(reinterpret_cast<std::byte*>(result[i]), i, groups_[i].me(), r).data());
    });
  };
  return detail::round_work{detail::hierarchical_reduce_scatter::stages(groups_), exchange, took};
}

template <class T>
auto reducer::gather_work(std::span<T* const> result) {
  const auto block = [=, this](std::size_t i, std::size_t m, std::size_t r) {
    return in_round(reinterpret_cast<std::byte*>(result[i]), i, m, r);
  };
  const auto exchange = [=, this](std::size_t r, std::size_t stage) {
    const std::size_t slot = r % detail::rounds_under_way;
    if (stage == 1) return gather_.forward(groups_, slot);
    return gather_.begin(
        groups_, slot, [&](std::size_t i) { return std::span<const std::byte>(block(i, groups_[i].me(), r)); },
        [&](std::size_t i, std::size_t m) { return block(i, m, r); });
  };
  const auto took = [this](std::size_t r) { gather_.end(groups_, r % detail::rounds_under_way); };
  return detail::round_work{detail::hierarchical_all_gather::stages(groups_), exchange, took};
}

template <class T>
void reducer::finish_scatter(std::span<const T* const> data, std::span<T* const> result) {
  try {
    sequence_.finish(scatter_work<T>(data, result));
  } catch (...) {
    problem_ = std::current_exception();
  }
}

template <class T>
void reducer::start_gather(backend& b, std::span<const T* const> data, std::span<T* const> result) {
  finish_scatter<T>(data, result);
  phase_ = phase::gather;
  sequence_.start(b, groups_.axes(), rounds(), {.channel = channel_}, gather_work<T>(result));
}

template <class T>
void reducer::gather_at_once(backend& b, std::span<T* const> result) {
  const std::size_t p = groups_.members();
  recv_.resize(result.size() * p);
  gathered_.clear();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::byte* const bytes = reinterpret_cast<std::byte*>(result[i]);
    for (std::size_t m = 0; m < p; ++m) recv_[entry(i, m)] = {bytes + offset_[entry(i, m)], std::size_t(bytes_[entry(i, m)])};
    gathered_.push_back({recv_[entry(i, groups_[i].me())], std::span(recv_).subspan(i * p, p)});
  }
  b.all_gather(groups_.axes(), gathered_);
}

}}  // namespace gshard::v0
