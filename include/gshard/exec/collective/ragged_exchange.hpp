// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a ragged all_to_all: devices exchange the numbers of rows in use, and then send these rows.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/collective.hpp>
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

/// The shards of a tensor [N,G,R,M] and of the counts [N,G,E] of its rows in use, before and after a ragged exchange. In each block [n,g],
/// rows in use come first; the others are zeros.
class ragged_rows {
 public:
  /// The rows of one [n,g] in a shard, and their counts.
  struct row_block {
    std::byte* rows = nullptr;
    std::int32_t* counts = nullptr;
  };

  explicit ragged_rows(const step_moves& moves) : moves_(moves), parts_(moves.devices()) {
    most_rows_ = rows().in.places[0].extent[row_dim];
    experts_ = moves_.row_counts()->in.places[0].extent[expert_dim];
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for_each_origin(i, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
        const auto me = std::size_t(moves_.group(i).member());
        if (from != me || to != me) return;
        parts_[i].kept = blocks_of(i, both, false);
        parts_[i].in_result = blocks_of(i, both, true);
      });
  }

  const step_moves& moves() const { return moves_; }
  /// Of each [n,g].
  std::int64_t experts() const { return experts_; }
  std::int64_t row_bytes(std::size_t i) const { return rows().in.places[i].extent[last_dim] * moves_.width(); }
  /// The bytes of a block with the most rows.
  std::int64_t block_bytes(std::size_t i) const { return most_rows_ * row_bytes(i); }
  /// The bytes in use of a block, clamped to its rows. After an error, the counts may never have been computed.
  std::int64_t bytes_in_use(std::size_t i, const std::int32_t* counts) const {
    std::int64_t n = 0;
    for (std::int64_t e = 0; e < experts_; ++e) n += std::max(counts[e], 0);
    return std::min(n, most_rows_) * row_bytes(i);
  }
  /// Calls f(from, to, pieces) for the pieces of the counts. They determine the blocks, because a device without columns of rows also has
  /// counts.
  void for_each_origin(std::size_t i, user_of_pieces f) const {
    step_moves(op::ragged_all_to_all, moves_.cluster(), moves_.axes(), {*moves_.row_counts()}).for_each_origin(moves_.group(i), f);
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
          all.push_back({shard.data[i] + at * block_bytes(i), reinterpret_cast<std::int32_t*>(counts.data[i]) + at * experts_});
        }
    }
    return all;
  }
  /// Calls f(block) for each of n blocks of held device i.
  template <class F>
  void for_each_block(std::size_t i, std::size_t n, F f) const {
    constexpr std::int64_t worth_a_thread = 1 << 16;
    kernel::parallel_for(std::int64_t(n), std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, block_bytes(i))),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t b = begin; b < end; ++b) f(std::size_t(b));
                         });
  }
  /// Copies the blocks that the devices keep.
  void copy_kept() const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for_each_block(i, parts_[i].kept.size(), [&](std::size_t b) {
        const row_block &from = parts_[i].kept[b], &to = parts_[i].in_result[b];
        const std::int64_t used = bytes_in_use(i, from.counts);
        if (from.counts != to.counts) std::copy_n(from.counts, experts_, to.counts);
        if (from.rows == to.rows) return;  // the group has one device, or no columns
        std::memcpy(to.rows, from.rows, std::size_t(used));
        std::memset(to.rows + used, 0, std::size_t(block_bytes(i) - used));
      });
  }

 private:
  struct part {
    std::vector<row_block> kept, in_result;
  };
  step_moves moves_;
  std::vector<part> parts_;
  std::int64_t most_rows_ = 0, experts_ = 0;

  static constexpr std::size_t row_dim = 2, last_dim = 3, expert_dim = 2;

  const moved_tensor& rows() const { return moves_.tensors()[0]; }
};

/// A ragged exchange that moves nothing between devices.
class ragged_copy final : public collective {
 public:
  explicit ragged_copy(const step_moves& moves) : rows_(moves) {}

  void start() override { rows_.copy_kept(); }
  bool advance() override { return true; }
  void finish() override {}
  void drop() override {}

 private:
  ragged_rows rows_;
};

/// Sends the rows in use. Counts are sent first, so sender and receiver agree on sizes even if one process has failed before.
class ragged_exchange final : public collective, private round_work {
 public:
  ragged_exchange(const step_moves& moves, std::shared_ptr<collective_room> room) : rows_(moves), room_(std::move(room)) {
    parts_.resize(moves.devices());
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      room_->demand(i, std::int64_t(std::min(rounds_under_way, most_rounds_) * 2 * parts_[i].send.size()) * slot_);
  }

  /// Sends the counts.
  void start() override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (blocks& to : parts_[i].send) {
        for (std::size_t b = 0; b < to.all.size(); ++b) std::copy_n(to.all[b].counts, rows_.experts(), to.counts_of(b));
        find_runs(to, i);
      }
      for (blocks& from : parts_[i].recv) std::ranges::fill(from.counts, 0);  // for senders whose message fails
    }
    problem_ = nullptr;
    sends_rows_ = false;
    counts_ = on().start(rows_.moves().axes(), count_parts_, {.channel = room_->channel});
    if (!on().advances_in_calls()) start_rows();  // advance() might not be called
    rows_.copy_kept();
  }
  bool advance() override {
    if (!sends_rows_ && !counts_.is_done()) return false;
    start_rows();
    return room_->rounds.advance(*this);
  }
  void finish() override {
    room_->advance_with_others([this] { return advance(); });
    start_rows();
    complete_blocks();
    room_->rounds.finish(*this);
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
  }
  void drop() override {
    start_rows();
    room_->rounds.drop(*this);
    problem_ = nullptr;
  }

 private:
  /// A block's rows in use, and their offset among all bytes to or from one device.
  struct run {
    std::byte* rows;
    std::int64_t begin, bytes;
  };
  /// The blocks that one device sends to another.
  struct blocks {
    std::vector<ragged_rows::row_block> all;
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
    std::vector<blocks> send, recv;  // by member
    std::vector<std::span<const std::byte>> counts_out;
    std::vector<std::span<std::byte>> counts_in;
    std::array<std::vector<std::span<const std::byte>>, rounds_under_way> rows_out;
    std::array<std::vector<std::span<std::byte>>, rounds_under_way> rows_in;
    std::int64_t received = 0;  // bytes in this run
  };

  ragged_rows rows_;
  std::shared_ptr<collective_room> room_;
  std::vector<part> parts_;
  std::vector<exchange_part> count_parts_;
  std::array<std::vector<exchange_part>, rounds_under_way> row_parts_;
  std::int64_t slot_ = 0;        // the most bytes to or from one device in a round,
  std::size_t most_rounds_ = 0;  // and the most rounds
  pending_exchange counts_;
  bool sends_rows_ = false;     // the counts have arrived
  std::exception_ptr problem_;  // set if some counts could not be received

  backend& on() const { return rows_.moves().cluster().backend(); }

  void prepare(std::size_t i) {
    part& p = parts_[i];
    const device_group members = rows_.moves().group(i);
    const auto n = std::size_t(members.size()), me = std::size_t(members.member());
    p.send.resize(n);
    p.recv.resize(n);
    rows_.for_each_origin(i, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
      if (from == me && to != me) p.send[to].all = rows_.blocks_of(i, both, false);
      if (from != me && to == me) p.recv[from].all = rows_.blocks_of(i, both, true);
    });
    std::int64_t most = 0;
    for (std::size_t m = 0; m < n; ++m)
      for (blocks* b : {&p.send[m], &p.recv[m]}) {
        b->counts.resize(b->all.size() * std::size_t(rows_.experts()));
        b->runs.reserve(b->all.size());
        most = std::max(most, std::int64_t(b->all.size()) * rows_.block_bytes(i));
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
  void find_runs(blocks& of, std::size_t i) const {
    of.runs.clear();
    of.bytes = 0;
    for (std::size_t b = 0; b < of.all.size(); ++b)
      if (const std::int64_t more = rows_.bytes_in_use(i, of.counts_of(b)); more > 0) {
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
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      p.received = 0;
      for (std::size_t m = 0; m < p.send.size(); ++m) {
        find_runs(p.recv[m], i);
        p.received += p.recv[m].bytes + std::int64_t(p.recv[m].counts.size() * sizeof(std::int32_t));
        rounds = std::max(rounds, std::size_t(rounds_of(std::max(p.send[m].bytes, p.recv[m].bytes), p.send.size())));
      }
    }
    room_->rounds.start(on(), rows_.moves().axes(), rounds, {.channel = room_->channel}, *this);
  }
  /// Counts the traffic, stores the received counts, and zeroes rows that are not in use.
  void complete_blocks() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      part& p = parts_[i];
      on().count(i, {1, p.received, 0, 0});
      for (blocks& from : p.recv)
        rows_.for_each_block(i, from.all.size(), [&](std::size_t b) {
          const std::int64_t used = rows_.bytes_in_use(i, from.counts_of(b));
          std::copy_n(from.counts_of(b), rows_.experts(), from.all[b].counts);
          std::memset(from.all[b].rows + used, 0, std::size_t(rows_.block_bytes(i) - used));
        });
    }
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
  std::span<const exchange_part> exchange(std::size_t r, std::size_t) override {
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
  void took(std::size_t r) override {
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
