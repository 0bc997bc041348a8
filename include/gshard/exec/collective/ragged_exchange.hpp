// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a ragged all_to_all: devices exchange the numbers of rows in use, and then send these rows.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/reduce/rounds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Exchanges a tensor [N,G,R,M] and the counts [N,G,E] of its rows in use. In each block [n,g], rows in use come first; the others are
/// zeros. Counts are sent first, so sender and receiver agree on sizes even if one process has failed before. Nothing is allocated after
/// the first run.
class ragged_exchange {
 public:
  ragged_exchange(const step_moves& moves, std::shared_ptr<collective_room> room) : moves_(moves), room_(std::move(room)) {
    parts_.resize(moves_.devices());
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      room_->demand(i, std::int64_t(std::min(rounds_under_way, most_rounds_) * 2 * parts_[i].send.size()) * slot_);
  }

  /// Sends the counts.
  void start() {
    for (part& p : parts_)
      for (blocks& to : p.send) {
        for (std::size_t b = 0; b < to.all.size(); ++b) std::copy_n(to.all[b].counts, experts_, to.counts_of(b));
        find_runs(to, p.row_bytes);
      }
    for (part& p : parts_)
      for (blocks& from : p.recv) std::ranges::fill(from.counts, 0);  // for senders whose message fails
    problem_ = nullptr;
    sends_rows_ = moves_.stays();
    if (!moves_.stays()) counts_ = on().start(moves_.axes(), count_parts_, {.channel = room_->channel});
    if (!on().advances_in_calls()) start_rows();  // advance() might not be called
    for (const part& p : parts_)
      for_each_block(p.kept.size(), most_rows_ * p.row_bytes, [&](std::size_t b) {
        const row_block &from = p.kept[b], &to = p.kept_in_result[b];
        const std::int64_t used = in_use(from.counts) * p.row_bytes;
        if (from.counts != to.counts) std::copy_n(from.counts, experts_, to.counts);
        if (from.rows == to.rows) return;  // the group has one device, or no columns
        std::memcpy(to.rows, from.rows, std::size_t(used));
        std::memset(to.rows + used, 0, std::size_t(most_rows_ * p.row_bytes - used));
      });
  }
  /// Continues with messages that have arrived, without waiting. Returns true if all rows have arrived. Keeps errors for finish().
  bool advance() {
    if (!sends_rows_ && !counts_.is_done()) return false;
    start_rows();
    if (moves_.stays()) return true;
    bool done = true;
    with_work([&](const auto& work) { done = room_->rounds.advance(work); });
    return done;
  }
  void finish() {
    if (moves_.stays()) return;
    start_rows();
    complete_blocks();
    with_work([&](const auto& work) { room_->rounds.finish(work); });
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
  }
  /// Completes the exchange after an error, and ignores errors.
  void drop() {
    if (moves_.stays()) return;
    start_rows();
    with_work([&](const auto& work) { room_->rounds.drop(work); });
    problem_ = nullptr;
  }

 private:
  /// The rows of one [n,g] in a shard, and their counts.
  struct row_block {
    std::byte* rows = nullptr;
    std::int32_t* counts = nullptr;
  };
  /// A block's rows in use, and their offset among all bytes to or from one device.
  struct run {
    std::byte* rows;
    std::int64_t begin, bytes;
  };
  /// The blocks that one device sends to another.
  struct blocks {
    std::vector<row_block> all;
    std::vector<std::int32_t> counts;  // of all blocks, as they are sent
    std::vector<run> runs;             // of blocks with rows in use
    std::int64_t bytes = 0;

    std::int32_t* counts_of(std::size_t block) { return counts.data() + counts.size() / all.size() * block; }
    /// The run that contains this byte, or the end.
    auto run_at(std::int64_t byte) const {
      return std::ranges::upper_bound(runs, byte, {}, [](const run& r) { return r.begin + r.bytes; });
    }
    /// Calls f(address in the shard, offset after `begin`, number of bytes) for each part of the bytes from `begin` to `end`.
    template <class F>
    void for_each_part(std::int64_t begin, std::int64_t end, F f) const {
      for (auto r = run_at(begin); r != runs.end() && r->begin < end; ++r) {
        const std::int64_t first = std::max(begin, r->begin), last = std::min(end, r->begin + r->bytes);
        f(r->rows + (first - r->begin), first - begin, last - first);
      }
    }
  };
  struct part {
    std::int64_t row_bytes = 0;
    std::vector<blocks> send, recv;  // by member
    std::vector<row_block> kept, kept_in_result;
    std::vector<std::span<const std::byte>> counts_out;
    std::vector<std::span<std::byte>> counts_in;
    std::array<std::vector<std::span<const std::byte>>, rounds_under_way> rows_out;
    std::array<std::vector<std::span<std::byte>>, rounds_under_way> rows_in;
    std::int64_t received = 0;  // bytes in this run
  };

  step_moves moves_;
  std::shared_ptr<collective_room> room_;
  std::vector<part> parts_;
  std::vector<exchange_part> count_parts_;
  std::array<std::vector<exchange_part>, rounds_under_way> row_parts_;
  std::int64_t most_rows_ = 0, experts_ = 0;  // of each [n,g]
  std::int64_t slot_ = 0;                     // the most bytes to or from one device in a round,
  std::size_t most_rounds_ = 0;               // and the most rounds
  pending_exchange counts_;
  bool sends_rows_ = false;     // the counts have arrived
  std::exception_ptr problem_;  // set if some counts could not be received

  static constexpr std::size_t row_dim = 2, last_dim = 3, expert_dim = 2;

  backend& on() const { return moves_.cluster().backend(); }
  const moved_tensor& rows() const { return moves_.tensors()[0]; }

  void prepare(std::size_t i) {
    part& p = parts_[i];
    const device_group members = moves_.group(i);
    const auto n = std::size_t(members.size()), me = std::size_t(members.member());
    const kernel::placement& before = rows().in.places[i];
    most_rows_ = before.extent[row_dim];
    p.row_bytes = before.extent[last_dim] * moves_.width();
    experts_ = moves_.row_counts()->in.places[i].extent[expert_dim];
    p.send.resize(n);
    p.recv.resize(n);
    // The pieces of the counts determine the blocks, because a device without columns of rows also has counts.
    const step_moves counts(op::ragged_all_to_all, moves_.cluster(), moves_.axes(), {*moves_.row_counts()});
    counts.for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
      if (from == me && to == me) {
        p.kept = blocks_of(i, both, false);
        p.kept_in_result = blocks_of(i, both, true);
      } else if (from == me) {
        p.send[to].all = blocks_of(i, both, false);
      } else if (to == me) {
        p.recv[from].all = blocks_of(i, both, true);
      }
    });
    std::int64_t most = 0;
    for (std::size_t m = 0; m < n; ++m)
      for (blocks* b : {&p.send[m], &p.recv[m]}) {
        b->counts.resize(b->all.size() * std::size_t(experts_));
        b->runs.reserve(b->all.size());
        most = std::max(most, std::int64_t(b->all.size()) * most_rows_ * p.row_bytes);
        const std::span bytes(reinterpret_cast<std::byte*>(b->counts.data()), b->counts.size() * sizeof(std::int32_t));
        if (b == &p.send[m]) p.counts_out.emplace_back(bytes);
        else p.counts_in.emplace_back(bytes);
      }
    slot_ = std::max(slot_, (std::min(most, bytes_per_round(n)) + 63) / 64 * 64);
    for (std::size_t k = 0; k < rounds_under_way; ++k) {
      p.rows_out[k].resize(n);
      p.rows_in[k].resize(n);
      row_parts_[k].push_back({p.rows_out[k], p.rows_in[k]});
    }
    count_parts_.push_back({p.counts_out, p.counts_in});
    most_rounds_ = std::max(most_rounds_, std::size_t(rounds_of(most, n)));
  }
  /// The blocks [n,g] of some pieces of the counts, in the order of their elements, in the old shards or in the new ones.
  std::vector<row_block> blocks_of(std::size_t i, const std::vector<piece>& pieces, bool of_result) const {
    const moved_tensor& moved = *moves_.row_counts();
    const bound_value &shard = of_result ? rows().out : rows().in, &counts = of_result ? moved.out : moved.in;
    const kernel::placement& home = counts.places[i];
    std::vector<row_block> all;
    for (const piece& x : pieces) {
      const kernel::placement& what = of_result ? x.to : x.from;
      for (std::int64_t k = what.offset[0] - home.offset[0]; k < what.offset[0] - home.offset[0] + what.extent[0]; ++k)
        for (std::int64_t g = what.offset[1] - home.offset[1]; g < what.offset[1] - home.offset[1] + what.extent[1]; ++g) {
          const std::int64_t at = k * home.extent[1] + g;
          all.push_back({shard.data[i] + at * most_rows_ * parts_[i].row_bytes,
                         reinterpret_cast<std::int32_t*>(counts.data[i]) + at * experts_});
        }
    }
    return all;
  }
  /// The number of rows in use of a block, clamped to its rows. After an error, the counts may never have been computed.
  std::int64_t in_use(const std::int32_t* counts) const {
    std::int64_t n = 0;
    for (std::int64_t e = 0; e < experts_; ++e) n += std::max(counts[e], 0);
    return std::min(n, most_rows_);
  }
  void find_runs(blocks& of, std::int64_t row_bytes) const {
    of.runs.clear();
    of.bytes = 0;
    for (std::size_t b = 0; b < of.all.size(); ++b)
      if (const std::int64_t more = in_use(of.counts_of(b)) * row_bytes; more > 0) {
        of.runs.push_back({of.all[b].rows, of.bytes, more});
        of.bytes += more;
      }
  }
  static std::int64_t rounds_of(std::int64_t bytes, std::size_t members) {
    const std::int64_t most = bytes_per_round(members);
    return (bytes + most - 1) / most;
  }

  /// Waits for the counts, and sends the first rounds of rows. Does this after an error as well, because the other devices wait for rows.
  void start_rows() {
    if (std::exchange(sends_rows_, true)) return;
    try {
      counts_.finish();
    } catch (...) {
      problem_ = std::current_exception();
    }
    std::size_t rounds = 0;
    for (part& p : parts_) {
      p.received = 0;
      for (std::size_t m = 0; m < p.send.size(); ++m) {
        find_runs(p.recv[m], p.row_bytes);
        p.received += p.recv[m].bytes + std::int64_t(p.recv[m].counts.size() * sizeof(std::int32_t));
        rounds = std::max(rounds, std::size_t(rounds_of(std::max(p.send[m].bytes, p.recv[m].bytes), p.send.size())));
      }
    }
    with_work([&](const auto& work) { room_->rounds.start(on(), moves_.axes(), rounds, {.channel = room_->channel}, work); });
  }
  /// Counts the traffic, stores the received counts, and zeroes rows that are not in use.
  void complete_blocks() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      on().count(i, {1, p.received, 0, 0});
      for (blocks& from : p.recv)
        for_each_block(from.all.size(), most_rows_ * p.row_bytes, [&](std::size_t b) {
          const std::int64_t used = in_use(from.counts_of(b)) * p.row_bytes;
          std::copy_n(from.counts_of(b), experts_, from.all[b].counts);
          std::memset(from.all[b].rows + used, 0, std::size_t(most_rows_ * p.row_bytes - used));
        });
    }
  }
  /// Calls f(block) for each of n blocks of `bytes` bytes.
  template <class F>
  static void for_each_block(std::size_t n, std::int64_t bytes, F f) {
    constexpr std::int64_t worth_a_thread = 1 << 16;
    kernel::parallel_for(std::int64_t(n), std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, bytes)),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t b = begin; b < end; ++b) f(std::size_t(b));
                         });
  }
  /// Calls f with the pack and unpack functions of a round.
  void with_work(function_ref<void(const round_work&)> f) {
    f({1, [this](std::size_t r, std::size_t) { return fill(r); }, [this](std::size_t r) { unpack(r); }});
  }
  /// The range of round r in the bytes to or from one device.
  std::pair<std::int64_t, std::int64_t> bytes_of_round(const blocks& b, std::size_t r, std::size_t members) const {
    const std::int64_t most = bytes_per_round(members), begin = std::min(b.bytes, std::int64_t(r) * most);
    return {begin, std::min(b.bytes, begin + most)};
  }
  std::byte* slot(std::size_t i, std::size_t r, std::size_t m, bool received) {
    const std::size_t members = parts_[i].send.size();
    return room_->packed[i].data() + std::int64_t((r % rounds_under_way * 2 + std::size_t(received)) * members + m) * slot_;
  }
  /// The address of some bytes in the shard if they are contiguous there, otherwise null.
  static std::byte* contiguous(const blocks& b, std::int64_t begin, std::int64_t end) {
    const auto r = b.run_at(begin);
    return end <= r->begin + r->bytes ? r->rows + (begin - r->begin) : nullptr;
  }
  std::span<const exchange_part> fill(std::size_t r) {
    const std::size_t k = r % rounds_under_way;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      for (std::size_t m = 0; m < p.send.size(); ++m) {
        p.rows_out[k][m] = {};
        p.rows_in[k][m] = {};
        if (const auto [begin, end] = bytes_of_round(p.send[m], r, p.send.size()); begin < end) {
          std::byte* from = contiguous(p.send[m], begin, end);
          if (!from) {
            from = slot(i, r, m, false);
            p.send[m].for_each_part(begin, end, [&](const std::byte* rows, std::int64_t at, std::int64_t bytes) {
              std::memcpy(from + at, rows, std::size_t(bytes));
            });
          }
          p.rows_out[k][m] = {from, std::size_t(end - begin)};
        }
        if (const auto [begin, end] = bytes_of_round(p.recv[m], r, p.send.size()); begin < end) {
          std::byte* const to = contiguous(p.recv[m], begin, end);
          p.rows_in[k][m] = {to ? to : slot(i, r, m, true), std::size_t(end - begin)};
        }
      }
    }
    return row_parts_[k];
  }
  void unpack(std::size_t r) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      for (std::size_t m = 0; m < p.recv.size(); ++m) {
        const auto [begin, end] = bytes_of_round(p.recv[m], r, p.recv.size());
        if (begin >= end || contiguous(p.recv[m], begin, end)) continue;
        const std::byte* const from = slot(i, r, m, true);
        p.recv[m].for_each_part(begin, end, [&](std::byte* rows, std::int64_t at, std::int64_t bytes) {
          std::memcpy(rows, from + at, std::size_t(bytes));
        });
      }
    }
  }
};

}}}  // namespace gshard::v0::detail
