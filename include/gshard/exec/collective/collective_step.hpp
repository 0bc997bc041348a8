// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs one collective of a plan by messages: packs, exchanges and unpacks or adds blocks.

#include <gshard/exec/collective/all_reduce_step.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/ragged_exchange.hpp>
#include <gshard/exec/collective/replica_shares.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/reduce/rounds.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A communication step (or slice) of a plan, bound to memory. Each device sends every other device of its group the missing pieces of
/// that device's new shards. A contiguous piece is sent from the shard and received in the shard without packing. Other pieces are packed
/// and unpacked, in portions that fit into the cache. Pieces that a device keeps are copied from shard to shard while messages are in
/// flight. Nothing is allocated after construction.
class collective_step {
 public:
  /// `early`: other steps run between start() and finish(). No other step may use `room` in that time.
  collective_step(const step_moves& moves, std::shared_ptr<collective_room> room, bool early = false)
      : moves_(moves.spread_over_replicas()), room_(std::move(room)), early_(early), parts_(moves_.devices()) {
    if (moves_.has_hops()) {
      second_hop_ = std::make_unique<collective_step>(moves_.as_exchange(hop::second), room_);
      moves_ = moves_.as_exchange(hop::first);
    }
    if (moves_.all_reduces() && !moves_.stays()) {
      sum_ = std::make_unique<all_reduce_step>(moves_, room_);
      return;
    }
    if (moves_.row_counts()) {
      ragged_ = std::make_unique<ragged_exchange>(moves_, room_);
      return;
    }
    shares_ = moves_.shares();
    groups_.use(on(), moves_.axes());
    by_node_ = moves_.gathers() && groups_.have_levels() && moves_.gathers_whole_shards();
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
    bound();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      find_room(i);
      if (moves_.stays() || !moves_.reduce_scatters()) find_runs(i);
    }
  }

  void operator()() {
    start();
    finish();
  }
  /// Sends the first rounds. Until finish() returns, operands must not change and results must not be used.
  void start() {
    if (ragged_) return ragged_->start();
    if (moves_.stays()) return copy_own();
    const bool gathers = moves_.gathers();
    if (sum_) return sum_->start();
    if (gathers_at_once()) return;
    const std::int64_t calls = moves_.passes_on() ? 0 : 1;
    each([&](std::size_t i) { on().count(i, gathers ? traffic{0, 0, 1, parts_[i].received} : traffic{calls, parts_[i].received, 0, 0}); });
    const bool copies = !moves_.reduce_scatters(), first = copies && own_bytes_ <= short_copy;
    if (first) copy_own();
    bounds_.channel = room_->channel;
    bounds_.finishes_next = !early_ && !(room_->advance_others && room_->advance_others());
    with_work([&](const auto& work) { room_->rounds.start(on(), moves_.axes(), rounds_, bounds_, work); });
    if (copies && !first) copy_own();
  }
  /// Continues with messages that have arrived, without waiting. Returns false if finish() would wait for messages that were sent before.
  bool advance() {
    if (sum_) return sum_->advance();
    if (ragged_) return ragged_->advance();
    bool done = true;
    if (!moves_.stays() && !gathers_at_once()) with_work([&](const auto& work) { done = room_->rounds.advance(work); });
    return done;
  }
  void finish() {
    if (moves_.stays()) return;
    advance_with_others();
    if (sum_) sum_->finish();
    else if (ragged_) ragged_->finish();
    else if (gathers_at_once()) gather();
    else finish_hops();
  }
  /// Abandons a step that was started, after an error on all processes. Other devices may have sent all its messages, so it receives them.
  void drop() {
    if (moves_.stays() || gathers_at_once()) return;
    if (sum_) return sum_->drop();
    if (ragged_) return ragged_->drop();
    with_work([&](const auto& work) { room_->rounds.drop(work); });
  }

 private:
  /// A portion in this device's memory: in the shard if it is contiguous there, otherwise packed.
  struct block {
    std::vector<piece> pieces;
    std::int64_t bytes = 0;
    std::byte* run = nullptr;
    std::int64_t slot = 0;  // offset in the packing buffer

    std::byte* at(std::byte* room) const { return run ? run : room + slot; }
  };
  using blocks = std::vector<std::vector<block>>;  // per round and member of the group
  struct round {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };
  struct run {
    const std::byte* from;
    std::byte* to;
    std::int64_t bytes;
  };
  struct part {
    std::size_t me = 0;      // member number in the group
    std::vector<piece> own;  // the pieces of its new shards that the device already has
    std::vector<run> runs;   // the contiguous pieces among them that must be copied
    blocks send, recv;
    std::vector<block> mine, sums;  // per round; `mine`: the own block of a gather, or the own addend; `sums`: the result of reduce_scatter
    std::array<round, rounds_under_way> under_way;
    std::int64_t received = 0;      // bytes in total
  };

  step_moves moves_;
  std::shared_ptr<collective_room> room_;
  bool early_;
  std::vector<part> parts_;
  held_groups groups_;
  bool by_node_ = false;  // a gather in two levels
  std::unique_ptr<collective_step> second_hop_;
  std::unique_ptr<all_reduce_step> sum_;
  std::unique_ptr<ragged_exchange> ragged_;
  replica_shares shares_;  // of a reduce_scatter
  std::size_t rounds_ = 0;
  /// The largest copy in bytes that runs before sending. A longer copy would delay messages by more than its overlap gains.
  static constexpr std::int64_t short_copy = 1 << 16;
  std::int64_t own_bytes_ = 0;  // copied from shard to shard
  exchange_bounds bounds_{0, 0};  // of every exchange; all members of a group compute the same
  std::array<std::vector<exchange_part>, rounds_under_way> exchange_;
  std::vector<gather_part> gather_;

  std::int64_t width() const { return moves_.width(); }
  const moved_tensor& tensor(std::size_t t) const { return moves_.tensors()[t]; }
  backend& on() const { return moves_.cluster().backend(); }
  template <class F>
  void each(F f) {
    for (std::size_t i = 0; i < parts_.size(); ++i) f(i);
  }
  std::byte* packed(std::size_t i) { return room_->packed[i].data(); }

  void prepare(std::size_t i) {
    part& p = parts_[i];
    const device_group members = moves_.group(i);
    const auto n = std::size_t(members.size());
    p.me = std::size_t(members.member());
    if (moves_.stays()) {
      p.own = moves_.kept(i);
      return;
    }
    if (moves_.reduce_scatters()) p.own = own_share(i, moves_.kept(i));
    std::vector<std::vector<piece>> send(n), recv(n);
    std::vector<std::int64_t> sent(n * n);  // elements, by sender and receiver; for a reduce_scatter, as if member 0 sent to all
    const auto moved = [&](std::size_t from, std::size_t to, const std::vector<piece>& pieces) {
      for (const piece& x : pieces) sent[from * n + to] += x.elements;
    };
    if (moves_.reduce_scatters()) {
      for (std::size_t m = 0; m < n; ++m) {
        std::vector<piece> theirs = own_share(i, moves_.summed(i, members.device(int(m))));
        moved(0, m, theirs);
        if (m == p.me) continue;
        send[m] = std::move(theirs);
        recv[m] = p.own;
      }
    } else {
      moves_.for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
        if (from != to) moved(from, to, both);
        if (from == p.me) append(to == p.me ? p.own : send[to], both);
        else if (to == p.me) append(recv[from], both);
      });
    }
    bounds_.block_bytes = std::max(bounds_.block_bytes, *std::ranges::max_element(sent) * width());
    for (std::size_t from = 0; from < n; ++from) {
      const auto messages = std::int64_t(n) - std::ranges::count(std::span(sent).subspan(from * n, n), std::int64_t(0));
      bounds_.messages = std::max(bounds_.messages, std::min(std::int64_t(n) - 1, messages));
    }
    make_rounds(i, members, send, recv);
  }

  void make_rounds(std::size_t i, const device_group& members, const std::vector<std::vector<piece>>& send,
                   const std::vector<std::vector<piece>>& recv) {
    part& p = parts_[i];
    const auto n = std::size_t(members.size());
    const std::int64_t most = bytes_per_round(n, has_levels()) / width();
    const auto portions = [&](const std::vector<piece>& pieces, std::size_t from, std::size_t to) {
      return portions_of(pieces, most, [&](const piece& b) {  // needs no packing on either side
        if (has_levels() || moves_.reduce_scatters()) return false;
        return is_run(moves_.place_of(moves_.sent(b.tensor), members.device(int(from))), b.from) &&
               is_run(moves_.place_of(tensor(b.tensor).out, members.device(int(to))), b.to);
      });
    };
    const auto put = [&](blocks& into, std::size_t m, std::vector<portion> made) {
      if (into.size() < made.size()) into.resize(made.size());
      for (std::vector<block>& of_round : into) of_round.resize(n);
      for (std::size_t r = 0; r < made.size(); ++r) into[r][m].pieces = std::move(made[r].pieces);
    };
    for (std::size_t m = 0; m < n; ++m) {
      if (m == p.me) continue;
      if (!by_node_) put(p.send, m, portions(send[m], p.me, m));
      put(p.recv, m, portions(recv[m], m, p.me));
    }
    if (moves_.gathers() || moves_.reduce_scatters())
      for (portion& b : portions(p.own, p.me, p.me)) p.mine.push_back({std::move(b.pieces)});
    if (moves_.reduce_scatters()) p.sums = p.mine;
    rounds_ = std::max({rounds_, p.send.size(), p.recv.size(), p.mine.size()});
  }

  /// The shares of some pieces that the group of a held device sums.
  std::vector<piece> own_share(std::size_t i, const std::vector<piece>& pieces) const {
    if (!shares_.any()) return pieces;
    std::vector<piece> own;
    for (const piece& p : pieces)
      if (piece s = share_of(p, outermost_dim(p.from), shares_.place(i), shares_.count(i)); s.elements > 0) own.push_back(std::move(s));
    return own;
  }
  /// Exchanges the shares of a reduce_scatter. They are contiguous in the new shards.
  void exchange_shares() {
    for (std::size_t t = 0; t < moves_.tensors().size(); ++t)
      shares_.exchange(on(), room_->channel, [&](std::size_t i, std::size_t k) {
        const bound_value& v = tensor(t).out;
        const piece whole{t, v.places[i], v.places[i], v.elements(i)};
        const piece share = share_of(whole, outermost_dim(whole.from), k, shares_.count(i));
        return std::span<std::byte>(v.data[i] + inside(v.places[i], share.to) * width(), std::size_t(share.elements * width()));
      });
  }

  bool has_levels() const { return groups_.have_levels() && (by_node_ || moves_.reduce_scatters()); }

  /// Passes the bounds to the backend only if all blocks fit into one round. All members of a group then take part in that round.
  void bound() {
    if (has_levels()) bounds_ = {};
    else if (bounds_.block_bytes > bytes_per_round(std::size_t(moves_.group(0).size())) / width() * width()) bounds_ = {};
    else if (bounds_.messages > 0) rounds_ = 1;
  }

  /// Assigns an address to every block: in a shard, or in the packing buffer of its round.
  void find_room(std::size_t i) {
    part& p = parts_[i];
    const auto members = std::size_t(moves_.group(i).size());
    for (blocks* b : {&p.send, &p.recv}) b->resize(rounds_, std::vector<block>(members));
    p.mine.resize(rounds_);
    p.sums.resize(rounds_);
    for (std::size_t k = 0; k < rounds_under_way; ++k) {
      round& r = p.under_way[k];
      r.send.resize(members);
      r.recv.resize(members);
      exchange_[k].push_back({r.send, r.recv});
    }
    std::int64_t end = 0;
    for (std::size_t r = 0; r < rounds_; ++r) {
      std::int64_t next = 0;
      const auto place = [&](block& b, bool of_result, bool may_be_run) {
        for (const piece& x : b.pieces) b.bytes += x.elements * width();
        if (b.bytes == 0) return;
        const bound_value& v = of_result ? tensor(b.pieces[0].tensor).out : moves_.sent(b.pieces[0].tensor);
        const kernel::placement& what = of_result ? b.pieces[0].to : b.pieces[0].from;
        if (may_be_run && b.pieces.size() == 1 && is_run(v.places[i], what)) {
          b.run = v.data[i] + inside(v.places[i], what) * width();
          return;
        }
        b.slot = next;
        next += (b.bytes + 63) / 64 * 64;
      };
      const bool sums = moves_.reduce_scatters();
      for (block& b : p.send[r]) place(b, false, true);
      for (block& b : p.recv[r]) {
        if (!sums) place(b, true, true);
        else for (const piece& x : b.pieces) b.bytes += x.elements * width();
        p.received += b.bytes;
      }
      place(p.mine[r], false, true);
      place(p.sums[r], true, true);
      end = std::max(end, next);
    }
    const auto move = [&](block& b, std::size_t r) { b.slot += std::int64_t(r % rounds_under_way) * end; };
    for (std::size_t r = 0; r < rounds_; ++r) {
      for (blocks* all : {&p.send, &p.recv})
        for (block& b : (*all)[r]) move(b, r);
      move(p.mine[r], r);
      move(p.sums[r], r);
    }
    room_->demand(i, std::int64_t(std::min(rounds_, rounds_under_way)) * end);
    if (!shares_.any()) return;
    p.received = 0;  // counts the bytes of a sum of all elements
    for (const moved_tensor& t : moves_.tensors()) p.received += std::int64_t(members - 1) * t.out.bytes(i);
  }

  /// The address of the bytes to send. Packs the block if it is not contiguous.
  std::byte* ready(std::size_t i, const block& b) {
    std::byte* const at = b.at(packed(i));
    if (b.run) return at;
    std::byte* next = at;
    for (const piece& x : b.pieces) {
      const bound_value& v = moves_.sent(x.tensor);
      pack(v.data[i], v.places[i], next, x.from, width());
      next += x.elements * width();
    }
    return at;
  }
  void unpack(std::size_t i, const block& b) {
    if (b.run) return;
    const std::byte* next = packed(i) + b.slot;
    for (const piece& x : b.pieces) {
      const bound_value& v = tensor(x.tensor).out;
      detail::unpack(next, x.to, v.data[i], v.places[i], width());
      next += x.elements * width();
    }
  }

  /// Packs the blocks of round r, and returns its exchange.
  std::span<const exchange_part> fill(std::size_t r) {
    each([&](std::size_t i) {
      part& p = parts_[i];
      round& now = p.under_way[r % rounds_under_way];
      for (std::size_t m = 0; m < now.send.size(); ++m) {
        now.send[m] = {ready(i, p.send[r][m]), std::size_t(p.send[r][m].bytes)};
        now.recv[m] = {p.recv[r][m].at(packed(i)), std::size_t(p.recv[r][m].bytes)};
      }
    });
    return exchange_[r % rounds_under_way];
  }
  using user_of_work = function_ref<void(const round_work&)>;

  /// Calls f with the work of a reduce_scatter: round r sends each member the addends of its new shard.
  void with_sums(user_of_work f) {
    const auto exchange = [this](std::size_t r, std::size_t stage) {
      const std::size_t slot = r % rounds_under_way;
      if (stage == 1) return room_->scatter.forward(groups_, slot);
      return room_->scatter.begin(groups_, moves_.how(), slot, [&](std::size_t i, std::size_t m) {
        const block& b = m == parts_[i].me ? parts_[i].mine[r] : parts_[i].send[r][m];
        return std::span<const std::byte>(ready(i, b), std::size_t(b.bytes));
      });
    };
    const auto took = [this](std::size_t r) {
      room_->scatter.end(groups_, r % rounds_under_way, [&](std::size_t i) { return parts_[i].sums[r].at(packed(i)); });
      each([&](std::size_t i) { unpack(i, parts_[i].sums[r]); });
    };
    f({hierarchical_reduce_scatter::stages(groups_), exchange, took});
  }
  /// Calls f with the work of an all_gather: round r sends this device's block to all members.
  void with_gather(user_of_work f) {
    const auto exchange = [this](std::size_t r, std::size_t stage) {
      const std::size_t slot = r % rounds_under_way;
      if (stage == 1) return room_->gather.forward(groups_, slot);
      return room_->gather.begin(
          groups_, slot,
          [&](std::size_t i) { return std::span<const std::byte>(ready(i, parts_[i].mine[r]), std::size_t(parts_[i].mine[r].bytes)); },
          [&](std::size_t i, std::size_t m) {
            const block& b = parts_[i].recv[r][m];
            return std::span<std::byte>(b.at(packed(i)), std::size_t(b.bytes));
          });
    };
    const auto took = [this](std::size_t r) {
      room_->gather.end(groups_, r % rounds_under_way);
      unpack_received(r);
    };
    f({hierarchical_all_gather::stages(groups_), exchange, took});
  }
  /// Calls f with the pack and unpack functions of a round.
  void with_work(user_of_work f) {
    if (moves_.reduce_scatters()) with_sums(f);
    else if (by_node_) with_gather(f);
    else f({1, [this](std::size_t r, std::size_t) { return fill(r); }, [this](std::size_t r) { unpack_received(r); }});
  }
  void unpack_received(std::size_t r) {
    each([&](std::size_t i) {
      for (const block& b : parts_[i].recv[r]) unpack(i, b);
    });
  }
  /// Moves contiguous pieces from `own` to `runs`, to be copied by memcpy.
  void find_runs(std::size_t i) {
    for (const piece& x : parts_[i].own) own_bytes_ += x.elements * width();
    std::erase_if(parts_[i].own, [&](const piece& x) {
      const bound_value &in = moves_.sent(x.tensor), &out = tensor(x.tensor).out;
      if (!is_run(in.places[i], x.from) || !is_run(out.places[i], x.to)) return false;
      const std::byte* const from = in.data[i] + inside(in.places[i], x.from) * width();
      std::byte* const to = out.data[i] + inside(out.places[i], x.to) * width();
      if (from != to) parts_[i].runs.push_back({from, to, x.elements * width()});
      return true;
    });
  }
  void copy_own() {
    constexpr std::int64_t worth_a_thread = 1 << 16;
    each([&](std::size_t i) {
      for (const run& r : parts_[i].runs)
        kernel::parallel_for(r.bytes, worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
          std::memcpy(r.to + begin, r.from + begin, std::size_t(end - begin));
        });
      moves_.copy(parts_[i].own, i);
    });
  }
  /// Members often wait for another collective; advance all of them. After some time the watched wait of finish() takes over.
  void advance_with_others() {
    using clock = std::chrono::steady_clock;
    if (!room_->advance_others) return;
    constexpr auto most = std::chrono::milliseconds(500);
    for (const clock::time_point end = clock::now() + most; !advance() && clock::now() < end;)
      if (!room_->advance_others()) return;
  }
  /// After an error the second hop still runs, because the other members wait for it.
  void finish_hops() {
    std::exception_ptr problem;
    try {
      with_work([&](const auto& work) { room_->rounds.finish(work); });
    } catch (...) {
      problem = std::current_exception();
    }
    if (second_hop_) (*second_hop_)();
    if (shares_.any()) exchange_shares();
    if (problem) std::rethrow_exception(problem);
  }
  /// A small gather is one all_gather call of the backend, which may have a faster algorithm. That call cannot be asynchronous.
  bool gathers_at_once() const { return moves_.gathers() && rounds_ <= 1 && !early_ && !by_node_; }
  void gather() {
    gather_.clear();
    each([&](std::size_t i) {
      part& p = parts_[i];
      std::vector<std::span<std::byte>>& recv = p.under_way[0].recv;
      std::span<std::byte> own;
      if (rounds_ == 1) {
        own = {ready(i, p.mine[0]), std::size_t(p.mine[0].bytes)};
        for (std::size_t m = 0; m < recv.size(); ++m) recv[m] = {p.recv[0][m].at(packed(i)), std::size_t(p.recv[0][m].bytes)};
        recv[p.me] = own;
      }
      gather_.push_back({own, recv});
    });
    on().all_gather(moves_.axes(), gather_);
    copy_own();
    each([&](std::size_t i) {
      if (rounds_ == 1)
        for (const block& b : parts_[i].recv[0]) unpack(i, b);
    });
  }
};

}}}  // namespace gshard::v0::detail
