// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reductions across devices in a fixed order, so that all backends compute the same bits.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/reduce/combine_operands.hpp>
#include <gshard/exec/reduce/hierarchical_all_gather.hpp>
#include <gshard/exec/reduce/hierarchical_reduce_scatter.hpp>
#include <gshard/exec/reduce/node_group.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Reductions over the groups of any backend. Every element is combined in the order of node_map::sums. This order depends neither on sizes
/// nor on the algorithm or the backend, so equal inputs give equal bits.
///
/// Keeps its scratch memory between calls. A call that needs no more than an earlier one allocates nothing.
class reducer {
 public:
  using operands = std::span<const std::byte* const>;  ///< By held device: the address of its numbers.
  using results = std::span<std::byte* const>;

  /// If the operands of a group have at most `gather_limit` bytes in all, every device gathers and combines all of them. The same on all
  /// processes.
  explicit reducer(std::int64_t gather_limit) : gather_limit_(gather_limit) {}

  /// Reduces number k of data over the group of device i into result[i][k]. It may be in place. n[i]: the numbers of held device i, equal
  /// within a group. `most`: the largest count of numbers on any device of the mesh; the same on all processes.
  /// Communicates: each of p members sends 2 (p - 1) / p n numbers. With N nodes, a node sends about 2 (N - 1) / N n numbers to others.
  /// If `most` is small, each member sends (p - 1) n in one all_gather.
  void all_reduce(const combination& how, backend& b, std::uint32_t axes, operands data, results result, std::span<const std::int64_t> n,
                  std::int64_t most) {
    start_all_reduce(how, b, axes, data, result, n, most);
    finish_all_reduce(b, data, result, n, most);
  }
  /// An all_reduce in several calls with the same data. In between, data must not change and the reducer must not be used. The later calls
  /// also communicate. All processes must therefore start and finish reductions, and all other communication, in one order. `channel`: the
  /// channel of the exchanges. No other exchange may use it until the reduction is finished. @see exchange_bounds
  void start_all_reduce(const combination& how, backend& b, std::uint32_t axes, operands data, results result,
                        std::span<const std::int64_t> n, std::int64_t most, std::uint32_t channel = 0);
  /// Continues with the messages that have arrived, without waiting. Each process may call it any number of times, or not at all. Returns
  /// false if finish_all_reduce would wait for messages that were sent before.
  bool advance_all_reduce(backend& b, operands data, results result);
  void finish_all_reduce(backend& b, operands data, results result, std::span<const std::int64_t> n, std::int64_t most);
  /// Completes a started reduction after an error on all processes. Errors are ignored. The result is undefined.
  void drop_all_reduce(backend& b, operands data, results result);

 private:
  class scatter_rounds;
  class gather_rounds;

  void all_reduce_by_gather(backend& b, operands data, results result, std::span<const std::int64_t> n);
  /// Splits data into one block per member, which that member reduces. Sets offset_ and bytes_, by held device and member.
  void split(std::span<const std::int64_t> n);
  void finish_scatter(operands data, results result);
  void start_gather(backend& b, operands data, results result);
  /// Within a node, one call of the backend gathers the blocks.
  void gather_at_once(backend& b, results result);
  bool gathers_addends(std::int64_t most) const { return most * how_.width() * std::int64_t(groups_.members()) <= gather_limit_; }

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

  std::int64_t gather_limit_;
  held_groups groups_;
  hierarchical_reduce_scatter scatter_;
  hierarchical_all_gather gather_;
  round_sequence sequence_;
  enum class phase { idle, scatter, gather } phase_ = phase::idle;  // of the reduction in flight
  std::uint32_t channel_ = 0;
  std::exception_ptr problem_;  // thrown after the gather, for which the other members wait
  combination how_;             // of the reduction in flight
  std::vector<std::int64_t> bytes_, offset_;
  std::vector<std::byte> addends_;  // of a small sum
  std::vector<std::span<std::byte>> recv_;
  std::vector<gather_part> gathered_;
};

/// The rounds of the first phase: sums of the blocks.
class reducer::scatter_rounds final : public round_work {
 public:
  scatter_rounds(reducer& of, operands data, results result) : of_(of), data_(data), result_(result) {}

  std::size_t stages() const override { return hierarchical_reduce_scatter::stages(of_.groups_); }
  std::span<const exchange_part> exchange(std::size_t r, std::size_t stage) override {
    const std::size_t slot = r % rounds_under_way;
    if (stage == 1) return of_.scatter_.forward(of_.groups_, slot);
    return of_.scatter_.begin(of_.groups_, of_.how_, slot, [&](std::size_t i, std::size_t m) { return of_.in_round(data_[i], i, m, r); });
  }
  void took(std::size_t r) override {
    of_.scatter_.end(of_.groups_, r % rounds_under_way,
                     [&](std::size_t i) { return of_.in_round(result_[i], i, of_.groups_[i].me(), r).data(); });
  }

 private:
  reducer& of_;
  operands data_;
  results result_;
};

/// The rounds of the second phase: the exchange of the sums.
class reducer::gather_rounds final : public round_work {
 public:
  gather_rounds(reducer& of, results result) : of_(of), result_(result) {}

  std::size_t stages() const override { return hierarchical_all_gather::stages(of_.groups_); }
  std::span<const exchange_part> exchange(std::size_t r, std::size_t stage) override {
    const std::size_t slot = r % rounds_under_way;
    if (stage == 1) return of_.gather_.forward(of_.groups_, slot);
    return of_.gather_.begin(
        of_.groups_, slot, [&](std::size_t i) { return std::span<const std::byte>(block(i, of_.groups_[i].me(), r)); },
        [&](std::size_t i, std::size_t m) { return block(i, m, r); });
  }
  void took(std::size_t r) override { of_.gather_.end(of_.groups_, r % rounds_under_way); }

 private:
  reducer& of_;
  results result_;

  std::span<std::byte> block(std::size_t i, std::size_t m, std::size_t r) const { return of_.in_round(result_[i], i, m, r); }
};

inline void check_per_device(const char* op, const char* name, std::size_t n, const backend& b) {
  if (n != b.devices().size())
    throw error(std::string(op) + ": " + name + " has " + std::to_string(n) + " entries for " + std::to_string(b.devices().size()) +
                " local devices");
}

inline void reducer::start_all_reduce(const combination& how, backend& b, std::uint32_t axes, operands data, results result,
                                      std::span<const std::int64_t> n, std::int64_t most, std::uint32_t channel) {
  check_per_device("all_reduce", "data", data.size(), b);
  check_per_device("all_reduce", "result", result.size(), b);
  check_per_device("all_reduce", "n", n.size(), b);
  for (const std::int64_t elements : n)
    if (elements < 0 || elements > most)
      throw error("all_reduce: a device with " + std::to_string(elements) + " elements; the maximum is " + std::to_string(most));
  how_ = how;
  groups_.use(b, axes);
  channel_ = channel;
  phase_ = phase::idle;
  problem_ = nullptr;
  if (most == 0 || groups_.members() == 1 || gathers_addends(most)) return;
  split(n);
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
  scatter_rounds work(*this, data, result);
  sequence_.start(b, groups_.axes(), rounds(), all, work);
}

inline bool reducer::advance_all_reduce(backend& b, operands data, results result) {
  if (phase_ == phase::scatter) {
    if (scatter_rounds work(*this, data, result); !sequence_.advance(work)) return false;
    if (!groups_.are_on_nodes()) return true;
    start_gather(b, data, result);
  }
  gather_rounds work(*this, result);
  return phase_ != phase::gather || sequence_.advance(work);
}

inline void reducer::finish_all_reduce(backend& b, operands data, results result, std::span<const std::int64_t> n, std::int64_t most) {
  if (most == 0) return;
  if (groups_.members() == 1) {
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != result[i] && n[i] > 0) std::memcpy(result[i], data[i], std::size_t(n[i] * how_.width()));
  } else if (gathers_addends(most)) {
    all_reduce_by_gather(b, data, result, n);
  } else {
    if (phase_ == phase::scatter && !groups_.are_on_nodes()) {
      finish_scatter(data, result);
      gather_at_once(b, result);
    } else {
      if (phase_ == phase::scatter) start_gather(b, data, result);
      gather_rounds work(*this, result);
      sequence_.finish(work);
    }
    phase_ = phase::idle;
    if (const std::exception_ptr problem = std::exchange(problem_, nullptr)) std::rethrow_exception(problem);
  }
}

inline void reducer::drop_all_reduce(backend& b, operands data, results result) {
  if (phase_ == phase::scatter && groups_.are_on_nodes()) start_gather(b, data, result);
  if (scatter_rounds work(*this, data, result); phase_ == phase::scatter) sequence_.drop(work);
  if (gather_rounds work(*this, result); phase_ == phase::gather) sequence_.drop(work);
  phase_ = phase::idle;
}

inline void reducer::all_reduce_by_gather(backend& b, operands data, results result, std::span<const std::int64_t> n) {
  const std::size_t p = groups_.members();
  std::size_t bytes = 0;
  for (const std::int64_t elements : n) bytes += p * std::size_t(elements * how_.width());
  if (addends_.size() < bytes) addends_.resize(bytes);
  std::byte* next = addends_.data();
  recv_.resize(data.size() * p);
  gathered_.clear();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::span<const std::byte> mine(data[i], std::size_t(n[i] * how_.width()));
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
    const auto addends = [&](std::size_t m) -> const std::byte* { return recv_[i * p + m].data(); };
    combine_operands(how_, order, order.root(), n[i], addends, result[i]);
  }
}

inline void reducer::split(std::span<const std::int64_t> n) {
  const std::size_t p = groups_.members();
  bytes_.resize(n.size() * p);
  offset_.resize(n.size() * p);
  for (std::size_t i = 0; i < n.size(); ++i)
    for (std::size_t m = 0; m < p; ++m) {
      const interval share = node_group::share(n[i], m, p);
      offset_[entry(i, m)] = share.begin * how_.width();
      bytes_[entry(i, m)] = share.size() * how_.width();
    }
}

inline void reducer::finish_scatter(operands data, results result) {
  try {
    scatter_rounds work(*this, data, result);
    sequence_.finish(work);
  } catch (...) {
    problem_ = std::current_exception();
  }
}

inline void reducer::start_gather(backend& b, operands data, results result) {
  finish_scatter(data, result);
  phase_ = phase::gather;
  gather_rounds work(*this, result);
  sequence_.start(b, groups_.axes(), rounds(), {.channel = channel_}, work);
}

inline void reducer::gather_at_once(backend& b, results result) {
  const std::size_t p = groups_.members();
  recv_.resize(result.size() * p);
  gathered_.clear();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::byte* const bytes = result[i];
    for (std::size_t m = 0; m < p; ++m) recv_[entry(i, m)] = {bytes + offset_[entry(i, m)], std::size_t(bytes_[entry(i, m)])};
    gathered_.push_back({recv_[entry(i, groups_[i].me())], std::span(recv_).subspan(i * p, p)});
  }
  b.all_gather(groups_.axes(), gathered_);
}

}}}  // namespace gshard::v0::detail
