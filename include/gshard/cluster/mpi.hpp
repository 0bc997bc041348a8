// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The MPI backend: sends blocks between ranks by non-blocking messages.

#include <gshard/cluster/hierarchical_all_to_all.hpp>
#include <gshard/cluster/mpi_agreement.hpp>
#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/cluster/mpi_connection.hpp>
#include <gshard/cluster/mpi_memory.hpp>
#include <gshard/cluster/mpi_options.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/backend/wait_watch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// One device per MPI process. Device ids are the ranks of the communicator given, or follow from mpi_options::axis_order.
///
/// The communicator is duplicated once, so messages never mix with the application's. The application's error handler does not change. MPI
/// errors become `gshard::error` with MPI's own text. The first use of a set of axes creates one more communicator. Only the calling thread
/// calls MPI: MPI_THREAD_FUNNELED is enough if that is the main thread. A call from a thread that MPI does not allow throws. Construction
/// and destruction are collective. A backend may be destroyed after MPI_Finalize; its communicators are then not freed.
class mpi_backend final : public backend {
 public:
  /// Throws `gshard::error`, on every process: for a problem of the program; if the processes pass different extents or options; if they
  /// were built with different versions of gshard or numeric compile options; if the product of the extents is not the number of processes.
  mpi_backend(MPI_Comm comm, const std::vector<int>& extents, const mpi_options& options = {},
              const detail::calling_program& program = {});
  GSHARD_INLINE ~mpi_backend() override;

  GSHARD_INLINE bool agree(const collective_call& call, const process_error& problem = {}, bool flag = false) override;
  int processes() const override { return world_.size(); }
  int processes_here() const override { return processes_here_; }
  bool leader() const override { return world_.rank() == 0; }
  /// The processes, by device: a duplicate of the constructor's communicator. Its errors are returned.
  MPI_Comm communicator() const { return world_.get(); }
  GSHARD_INLINE void broadcast(std::span<std::byte> data) override;
  GSHARD_INLINE std::vector<std::vector<std::byte>> gather_to_leader(std::span<const std::byte> mine) override;
  GSHARD_INLINE bool any_thread() const override;
  bool overlaps() const override { return overlap_ != overlap_mode::off && !shares_memory(); }
  bool measures_overlap() const override { return overlap_ == overlap_mode::automatic && !shares_memory(); }
  bool advances_in_calls() const override { return advances_; }
  GSHARD_INLINE void advance() override;
  bool shares_memory() const override { return memory_ != nullptr; }
  GSHARD_INLINE std::shared_ptr<std::byte> share(std::int64_t bytes) override;
  GSHARD_INLINE std::vector<const std::byte*> find_shared(std::span<const std::byte* const> mine) override;
  GSHARD_INLINE void barrier(std::uint32_t axes) override;

 private:
  static constexpr int tag = 0;  // of messages outside of exchanges

  mpi_backend(detail::mpi_connection&& made, const std::vector<int>& extents, const mpi_options& options);

  wait_watch::wait waits_in(const char* what, std::int64_t bytes = 0) const { return {waits(), what, bytes}; }
  const detail::communicator& along(std::uint32_t axes);
  /// The routes of a hierarchical exchange, or null if the exchange is direct; the same on all members.
  const detail::node_routes* routes(std::uint32_t axes, const exchange_bounds& all);

  GSHARD_INLINE std::size_t do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all,
                                     bool at_once) override;
  GSHARD_INLINE void do_finish(std::size_t started) override;
  GSHARD_INLINE bool is_done(std::size_t started) override;
  GSHARD_INLINE void do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) override;

  // An unfinished exchange. After an error of one message, the other messages are still started and finished. Their receivers wait for
  // them, and the caller may free the buffers once an error is thrown.
  struct pending_exchange {
    std::size_t number = 0;
    const detail::communicator* group = nullptr;
    std::uint32_t axes = 0;
    int channel = 0;  // the tag of its messages
    exchange_part part;
    std::size_t complete = 0;  // this many requests are known to be complete
    int next = 1;  // messages with members at this distance and beyond are not started yet
    std::vector<MPI_Request> request;
    std::vector<int> member;   // by request: the other member
    std::vector<int> lacking;  // ranks whose messages are not complete
    struct awaited {
      int from, bytes;
    };
    std::vector<awaited> expected;  // receives; they are first in `request`
    int code = MPI_SUCCESS;
    std::string mismatch;
    bool by_node = false;
    detail::hierarchical_all_to_all packets;
  };
  GSHARD_INLINE std::vector<pending_exchange>::iterator find(std::size_t started);
  static void receive(pending_exchange& f, int from, std::span<std::byte> data);
  static void send(pending_exchange& f, int to, std::span<const std::byte> data);
  std::optional<int> wait(pending_exchange& f, std::size_t i) const;
  int test_until_done(pending_exchange& f, std::size_t i, MPI_Status& status) const;
  void start_some(pending_exchange& f, int members);
  void finish_some(pending_exchange& f);
  void start_by_node(pending_exchange& f, const detail::node_routes& routes, std::int64_t block_bytes) const;
  void finish_by_node(pending_exchange& f) const;

  // Calls f(offset, count) for the pieces of a message. Sender and receiver both know its size, so they compute the same pieces.
  template <class F>
  void for_each_piece(std::int64_t bytes, F f) const {
    for (std::int64_t at = 0; at < bytes; at += limit_)
      f(at, int(std::min<std::int64_t>(limit_, bytes - at)));
  }
  // The size of the pieces of a block, for a device on this node or on another one.
  std::int64_t piece_of(std::int64_t bytes, int device) const {
    constexpr std::int64_t most_pieces = 512;
    const std::vector<int>& node = nodes().node;
    if (node.empty() || node[std::size_t(device)] == node[std::size_t(world_.rank())]) return limit_;
    return std::min(limit_, std::max(node_piece_, (bytes + most_pieces - 1) / most_pieces));
  }

  std::int64_t limit_, node_piece_;
  int window_, small_block_;
  overlap_mode overlap_;
  bool advances_;
  detail::communicator world_;
  int processes_here_ = 1;
  node_routing by_node_;
  int node_block_;
  std::vector<detail::communicator> group_;  // by set of axes of extent > 1, empty until used
  std::vector<const detail::communicator*> along_;  // by any set of axes
  std::vector<detail::node_routes> routes_;         // by any set of axes
  std::unique_ptr<detail::node_memory> memory_;
  std::vector<pending_exchange> pending_;  // the first n_pending_ are in flight, in the order of their starts
  std::size_t n_pending_ = 0, started_ = 0;
  std::vector<std::span<const std::byte>> to_all_;
  std::vector<std::byte> row_;  // buffer for small blocks of all_gather
  std::vector<int> count_, offset_;
};

#if GSHARD_HAS_BODIES

namespace detail {
inline std::int64_t bytes_of(std::span<const std::span<std::byte>> blocks) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> block : blocks) bytes += block.size();
  return std::int64_t(bytes);
}
}  // namespace detail

GSHARD_INLINE mpi_backend::mpi_backend(MPI_Comm comm, const std::vector<int>& extents, const mpi_options& options,
                                       const detail::calling_program& program)
    : mpi_backend(detail::connect(comm, extents, options, program), extents, options) {}

GSHARD_INLINE mpi_backend::mpi_backend(detail::mpi_connection&& made, const std::vector<int>& extents, const mpi_options& options)
    : backend(extents, {made.world.rank()}, std::move(made.nodes), detail::allowed_threads()),
      limit_(options.message_limit),
      node_piece_(options.node_piece),
      window_(options.in_flight),
      small_block_(options.small_block),
      overlap_(options.overlap),
      advances_(std::ranges::adjacent_find(nodes().node, std::ranges::not_equal_to()) != nodes().node.end()),
      world_(std::move(made.world)),
      by_node_(options.by_node),
      node_block_(options.node_block),
      group_(std::size_t(1) << extents.size()),
      along_(std::size_t(1) << extents.size()),
      routes_(std::size_t(1) << extents.size()) {
  lower_level(made.level);
  watch_waits(std::move(made.waits));
  const auto waiting = waits_in("making a cluster");
  processes_here_ = detail::processes_on_cores(world_);
  if (options.shared_memory && detail::on_one_node(world_)) memory_ = std::make_unique<detail::node_memory>(world_);
}

// Freeing shared memory waits for the other processes.
GSHARD_INLINE mpi_backend::~mpi_backend() {
  if (waits()) waits()->leave("has destroyed its cluster");
  const auto waiting = waits_in("destroying a cluster");
  memory_.reset();
}

GSHARD_INLINE bool mpi_backend::agree(const collective_call& call, const process_error& problem, bool flag) {
  const auto waiting = waits_in("an agreement of all ranks");
  return detail::agree(world_, call, problem, flag);
}
GSHARD_INLINE bool mpi_backend::any_thread() const { return detail::thread_level() == MPI_THREAD_MULTIPLE; }
GSHARD_INLINE std::shared_ptr<std::byte> mpi_backend::share(std::int64_t bytes) {
  const auto waiting = waits_in("an allocation of shared memory", bytes);
  return memory_->take(bytes);
}
GSHARD_INLINE std::vector<const std::byte*> mpi_backend::find_shared(std::span<const std::byte* const> mine) {
  const auto waiting = waits_in("an exchange of addresses");
  return memory_->find(mine);
}

GSHARD_INLINE const detail::node_routes* mpi_backend::routes(std::uint32_t axes, const exchange_bounds& all) {
  if (by_node_ == node_routing::never || all.block_bytes < 0) return nullptr;
  if (by_node_ == node_routing::where_it_saves && all.block_bytes > node_block_) return nullptr;
  detail::node_routes& known = routes_[axes];
  if (known.nodes() == 0) {
    const device_group group(extents(), axes, world_.rank());
    std::vector<int> nodes;
    for (int m = 0; m < group.size(); ++m) nodes.push_back(backend::nodes().node[std::size_t(group.device(m))]);
    known = detail::node_routes(nodes, group.member());
  }
  const bool saves = by_node_ == node_routing::always || (known.nodes() > 1 && 2 * known.messages() <= all.messages - known.most_mates());
  return saves && std::int64_t(detail::packet::most_bytes(known.most_blocks(), all.block_bytes)) <= limit_ ? &known : nullptr;
}

// Collective over the group at its first use. Not collective over all groups: a group whose blocks are all empty may skip a collective.
GSHARD_INLINE const detail::communicator& mpi_backend::along(std::uint32_t axes) {
  const detail::communicator*& known = along_[axes];
  if (known) return *known;
  for (std::size_t a = 0; a < extents().size(); ++a)
    if (extents()[a] == 1) axes &= ~(1u << a);
  const device_group group(extents(), axes, world_.rank());
  if (group.size() == world_.size()) return *(known = &world_);
  detail::communicator& mine = group_[axes];
  if (mine.empty()) {
    const auto waiting = waits_in("making a communicator");
    std::vector<int> members;
    for (int m = 0; m < group.size(); ++m) members.push_back(group.device(m));
    mine = detail::communicator_of(world_, members);
  }
  return *(known = &mine);
}

GSHARD_INLINE void mpi_backend::receive(pending_exchange& f, int from, std::span<std::byte> data) {
  f.request.push_back(MPI_REQUEST_NULL);
  f.member.push_back(from);
  const int code = MPI_Irecv(data.data(), int(data.size()), MPI_BYTE, from, f.channel, f.group->get(), &f.request.back());
  if (code == MPI_SUCCESS) return;
  f.code = code;
  f.request.back() = MPI_REQUEST_NULL;
}

GSHARD_INLINE void mpi_backend::send(pending_exchange& f, int to, std::span<const std::byte> data) {
  f.request.push_back(MPI_REQUEST_NULL);
  f.member.push_back(to);
  const int code = MPI_Isend(data.data(), int(data.size()), MPI_BYTE, to, f.channel, f.group->get(), &f.request.back());
  if (code == MPI_SUCCESS) return;
  f.code = code;
  f.request.back() = MPI_REQUEST_NULL;
}

// Waits for a request. Returns the size of the message, or nothing if it failed.
GSHARD_INLINE std::optional<int> mpi_backend::wait(pending_exchange& f, std::size_t i) const {
  const bool started = f.request[i] != MPI_REQUEST_NULL;
  MPI_Status status;
  const int code = waits() == nullptr ? MPI_Wait(&f.request[i], &status) : test_until_done(f, i, status);
  if (code != MPI_SUCCESS) f.code = code;
  if (code != MPI_SUCCESS || !started) return {};
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  return bytes;
}

// MPI_Wait that regularly tells the watch the ranks whose messages are not complete. Allocates nothing after the first exchange.
GSHARD_INLINE int mpi_backend::test_until_done(pending_exchange& f, std::size_t i, MPI_Status& status) const {
  using clock = std::chrono::steady_clock;
  constexpr auto period = std::chrono::milliseconds(200);
  clock::time_point next{};
  for (unsigned tests = 1;; ++tests) {
    int done = 0;
    const int code = MPI_Test(&f.request[i], &done, &status);
    if (code != MPI_SUCCESS || done != 0) return code;
    if (tests % 256 != 0) continue;
    const clock::time_point now = clock::now();
    if (next == clock::time_point()) next = now + period;
    if (now < next) continue;
    next = now + period;
    const device_group group(extents(), f.axes, world_.rank());
    f.lacking.clear();
    for (std::size_t k = i; k < f.request.size(); ++k) {
      int complete = 0;
      MPI_Status unused;
      if (MPI_Request_get_status(f.request[k], &complete, &unused) == MPI_SUCCESS && complete == 0)
        f.lacking.push_back(group.device(f.member[k]));
    }
    std::ranges::sort(f.lacking);
    f.lacking.erase(std::ranges::unique(f.lacking).begin(), f.lacking.end());
    waits()->lacks(f.lacking);
  }
}

// Starts the messages to and from the next members.
GSHARD_INLINE void mpi_backend::start_some(pending_exchange& f, int members) {
  const int p = f.group->size(), me = f.group->rank();
  const int first = f.next, last = f.next = std::min(first + members, p);
  f.request.clear();
  f.member.clear();
  f.expected.clear();
  const device_group devices(extents(), f.axes, world_.rank());
  for (int k = first; k < last; ++k) {
    const int from = (me - k + p) % p;
    const std::span<std::byte> block = f.part.recv[std::size_t(from)];
    const auto bytes = std::int64_t(block.size()), piece = piece_of(bytes, devices.device(from));
    for (std::int64_t at = 0; at < bytes; at += piece) {
      const std::span<std::byte> data = block.subspan(std::size_t(at), std::size_t(std::min(piece, bytes - at)));
      f.expected.push_back({from, int(data.size())});
      receive(f, from, data);
    }
  }
  // The first piece for every member, then the second one, so that all links are busy.
  bool more = true;
  for (std::int64_t n = 0; std::exchange(more, false); ++n)
    for (int k = first; k < last; ++k) {
      const int to = (me + k) % p;
      const std::span<const std::byte> block = f.part.send[std::size_t(to)];
      const auto bytes = std::int64_t(block.size()), piece = piece_of(bytes, devices.device(to)), at = n * piece;
      if (at >= bytes) continue;
      send(f, to, block.subspan(std::size_t(at), std::size_t(std::min(piece, bytes - at))));
      more |= at + piece < bytes;
    }
  f.lacking.reserve(f.request.size());
}

// Calls MPI_Wait for each request: MPI_Waitall of Open MPI 4.1 may spin forever after a message has failed.
GSHARD_INLINE void mpi_backend::finish_some(pending_exchange& f) {
  for (std::size_t i = 0; i < f.request.size(); ++i) {
    const std::optional<int> received = wait(f, i);
    if (i >= f.expected.size() || !received || *received == f.expected[i].bytes) continue;
    f.mismatch = detail::unexpected(f.group->rank(), std::size_t(f.group->size()), std::size_t(f.expected[i].bytes), f.expected[i].from,
                                    "sent " + std::to_string(*received));
  }
}

GSHARD_INLINE void mpi_backend::start_by_node(pending_exchange& f, const detail::node_routes& routes, std::int64_t block_bytes) const {
  f.request.clear();
  f.member.clear();
  f.packets.begin(routes, f.part, block_bytes);
  for (const std::span<detail::packet> packets : {f.packets.from_mates(), f.packets.from_relays(), f.packets.from_here()})
    for (const detail::packet& p : packets) receive(f, p.member(), p.room());
  for (const detail::packet& p : f.packets.to_mates()) send(f, p.member(), p.bytes());
  f.lacking.reserve(f.request.size());
}

// Waits for the other members on this node, which finish the same exchange.
GSHARD_INLINE void mpi_backend::finish_by_node(pending_exchange& f) const {
  std::size_t next = 0;
  const auto arrive = [&](std::span<detail::packet> packets) {
    for (detail::packet& p : packets) p.arrived(std::size_t(wait(f, next++).value_or(0)));
  };
  const auto pass = [&](std::span<detail::packet> packets) {
    for (const detail::packet& p : packets) send(f, p.member(), p.bytes());
    f.lacking.reserve(f.request.size());
  };
  arrive(f.packets.from_mates());
  f.packets.gather();
  pass(f.packets.to_relays());
  arrive(f.packets.from_relays());
  f.packets.scatter();
  pass(f.packets.passed_on());
  arrive(f.packets.from_here());
  while (next < f.request.size()) wait(f, next++);
  f.mismatch = f.packets.deliver();
}

GSHARD_INLINE std::size_t mpi_backend::do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all,
                                                bool at_once) {
  const detail::communicator& group = along(axes);
  const detail::node_routes* const by_node = at_once ? nullptr : routes(axes, all);
  const auto waiting = waits_in("an exchange of blocks", detail::bytes_of(parts[0].recv));  // a start may block within a node
  if (n_pending_ == pending_.size()) pending_.emplace_back();
  pending_exchange& f = pending_[n_pending_++];
  f.number = ++started_;
  f.group = &group;
  f.axes = axes;
  f.channel = int(all.channel);
  f.complete = 0;
  f.part = parts[0];
  f.code = MPI_SUCCESS;
  f.mismatch.clear();
  f.by_node = by_node != nullptr;
  f.next = f.by_node ? group.size() : 1;
  if (f.by_node) start_by_node(f, *by_node, all.block_bytes);
  else start_some(f, at_once ? group.size() : window_);
  return f.number;
}

GSHARD_INLINE std::vector<mpi_backend::pending_exchange>::iterator mpi_backend::find(std::size_t started) {
  return std::find_if(pending_.begin(), pending_.end(), [&](const pending_exchange& other) { return other.number == started; });
}

// Leaves the requests to do_finish, which finds errors of messages.
GSHARD_INLINE bool mpi_backend::is_done(std::size_t started) {
  pending_exchange& f = *find(started);
  if (f.by_node) return false;  // it forwards in do_finish
  for (; f.complete < f.request.size(); ++f.complete) {
    int complete = 0;
    MPI_Status unused;
    if (MPI_Request_get_status(f.request[f.complete], &complete, &unused) == MPI_SUCCESS && complete == 0) return false;
  }
  return f.next >= f.group->size();
}

// A test of an incomplete message advances all messages.
GSHARD_INLINE void mpi_backend::advance() {
  for (std::size_t i = 0; i < n_pending_; ++i)
    if (!is_done(pending_[i].number)) return;
}

GSHARD_INLINE void mpi_backend::do_finish(std::size_t started) {
  const auto f = find(started);
  const auto waiting = waits_in("an exchange of blocks", detail::bytes_of(f->part.recv));
  if (f->by_node) finish_by_node(*f);
  else
    for (finish_some(*f); f->next < f->group->size(); finish_some(*f)) start_some(*f, window_);
  std::rotate(f, f + 1, pending_.begin() + std::ptrdiff_t(n_pending_--));
  const pending_exchange& done = pending_[n_pending_];
  done.group->check(done.code, "a message between devices");
  if (!done.mismatch.empty()) throw error(done.mismatch);
}

// The algorithm depends only on the sizes, which are equal on all members. Addresses of blocks may differ.
GSHARD_INLINE void mpi_backend::do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) {
  const gather_part& part = parts[0];
  const detail::communicator& group = along(axes);
  const auto p = std::size_t(group.size());
  std::size_t total = 0;
  for (const std::span<std::byte> block : part.recv) total += block.size();
  if (total == 0) return;
  if (total > std::min(std::size_t(small_block_) * p, std::size_t(limit_))) {
    to_all_.assign(p, part.send);
    const exchange_part blocks{to_all_, part.recv};
    return do_finish(do_start(axes, {&blocks, 1}, {}, false));
  }
  count_.resize(p);
  offset_.resize(p);
  row_.resize(total);
  int next = 0;
  for (std::size_t j = 0; j < p; ++j) {
    offset_[j] = next;
    next += count_[j] = int(part.recv[j].size());
  }
  const auto in_row = [&](std::size_t j) { return std::span(row_).subspan(std::size_t(offset_[j]), part.recv[j].size()); };
  const auto me = std::size_t(group.rank());
  detail::copy_bytes(in_row(me), part.send);
  const auto waiting = waits_in("an all_gather", std::int64_t(total));
  group.check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, row_.data(), count_.data(), offset_.data(), MPI_BYTE, group.get()),
              "MPI_Allgatherv");
  for (std::size_t j = 0; j < p; ++j)
    if (j != me) detail::copy_bytes(part.recv[j], in_row(j));
}

// Writes before the barrier are visible to all members after it.
GSHARD_INLINE void mpi_backend::barrier(std::uint32_t axes) {
  const detail::communicator& group = along(axes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto waiting = waits_in("a barrier");
  group.check(MPI_Barrier(group.get()), "MPI_Barrier");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

GSHARD_INLINE void mpi_backend::broadcast(std::span<std::byte> data) {
  const auto waiting = waits_in("a broadcast", std::int64_t(data.size()));
  for_each_piece(std::int64_t(data.size()), [&](std::int64_t at, int count) {
    world_.check(MPI_Bcast(data.data() + at, count, MPI_BYTE, 0, world_.get()), "MPI_Bcast");
  });
}

GSHARD_INLINE std::vector<std::vector<std::byte>> mpi_backend::gather_to_leader(std::span<const std::byte> mine) {
  const auto size = std::int64_t(mine.size());
  const auto waiting = waits_in("a gather to the leader", size);
  std::vector<std::int64_t> sizes(leader() ? std::size_t(world_.size()) : 0);
  world_.check(MPI_Gather(&size, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, 0, world_.get()),
               "MPI_Gather");
  if (!leader()) {
    for_each_piece(size, [&](std::int64_t at, int count) {
      world_.check(MPI_Send(mine.data() + at, count, MPI_BYTE, 0, tag, world_.get()), "MPI_Send");
    });
    return {};
  }
  std::vector<std::vector<std::byte>> all{std::vector(mine.begin(), mine.end())};
  for (int rank = 1; rank < world_.size(); ++rank) {
    std::vector<std::byte>& data = all.emplace_back(std::size_t(sizes[std::size_t(rank)]));
    for_each_piece(std::int64_t(data.size()), [&](std::int64_t at, int count) {
      world_.check(MPI_Recv(data.data() + at, count, MPI_BYTE, rank, tag, world_.get(), MPI_STATUS_IGNORE),
                   "MPI_Recv");
    });
  }
  return all;
}

#endif

}}  // namespace gshard::v0
