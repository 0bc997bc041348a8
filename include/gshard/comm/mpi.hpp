// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/hash.hpp>
#include <gshard/comm/backend.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
/// Owns a communicator whose errors are returned, not fatal.
class communicator {
 public:
  communicator() = default;
  explicit communicator(MPI_Comm owned) : comm_(owned) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  communicator(communicator&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~communicator() {
    if (comm_ == MPI_COMM_NULL) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }

  bool empty() const { return comm_ == MPI_COMM_NULL; }
  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  void check(int code, const char* call) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw error(std::string(call) + " failed on rank " + std::to_string(rank_) + " of " +
                std::to_string(size_) + ": " + std::string(text, std::size_t(length)));
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

/// Throws unless a backend can work on the processes of a communicator.
inline void check_usable(MPI_Comm comm) {
  int initialized = 0, finalized = 0, inter = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0) throw error("mpi_backend: MPI is not initialized; call MPI_Init_thread first");
  if (finalized != 0) throw error("mpi_backend: MPI is already finalized");
  if (comm == MPI_COMM_NULL) throw error("mpi_backend: the communicator is MPI_COMM_NULL");
  MPI_Comm_test_inter(comm, &inter);
  if (inter != 0) throw error("mpi_backend: the communicator is an intercommunicator");
}

inline int process_count(MPI_Comm comm) {
  check_usable(comm);
  int size = 0;
  communicator().check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

inline communicator duplicate(MPI_Comm comm) {
  check_usable(comm);
  MPI_Comm copy = MPI_COMM_NULL;
  communicator().check(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  return communicator(copy);
}

/// Gives every process the text of one.
inline void broadcast_text(const communicator& world, int from, std::string& text) {
  int size = int(std::min(text.size(), std::size_t(10000)));
  world.check(MPI_Bcast(&size, 1, MPI_INT, from, world.get()), "MPI_Bcast");
  text.resize(std::size_t(size));
  world.check(MPI_Bcast(text.data(), size, MPI_CHAR, from, world.get()), "MPI_Bcast");
}

/// Throws on all processes, of which `first` has a problem and others may have.
[[noreturn]] inline void tell_problem(const communicator& world, int first, const std::string& problem) {
  const int mine = problem.empty() ? 0 : 1;
  std::vector<int> all(std::size_t(world.size()));
  world.check(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  std::string text = problem;
  broadcast_text(world, first, text);
  if (mine != 0) throw error(problem);
  std::string others;
  int n_others = 0;
  for (int rank = first + 1; rank < world.size(); ++rank)
    if (all[std::size_t(rank)] != 0 && ++n_others <= 8) others += (others.empty() ? "" : ", ") + std::to_string(rank);
  if (n_others > 8) others += " and " + std::to_string(n_others - 8) + " more";
  throw error("rank " + std::to_string(first) + " failed" + (others.empty() ? "" : ", and so did " + others) + ": " + text);
}

inline void agree(const communicator& world, std::uint64_t value, std::string_view what,
                  const std::string& problem = {}) {
  const std::uint64_t failed = problem.empty() ? 0 : std::uint64_t(world.size() - world.rank());
  const std::uint64_t mine[] = {failed, value, ~value};
  std::uint64_t most[3];
  world.check(MPI_Allreduce(mine, most, 3, MPI_UINT64_T, MPI_MAX, world.get()), "MPI_Allreduce");
  if (most[0] != 0) tell_problem(world, world.size() - int(most[0]), problem);
  if (most[1] == ~most[2]) return;  // the largest value is the smallest

  std::vector<std::uint64_t> all(std::size_t(world.size()));
  world.check(MPI_Allgather(&value, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, world.get()),
              "MPI_Allgather");
  std::string text =
      "the processes disagree on " + std::string(what) + ": rank 0 has " + std::to_string(all[0]);
  int n_different = 0;
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0] && ++n_different <= 8)
      text += ", rank " + std::to_string(rank) + " has " + std::to_string(all[rank]);
  if (n_different > 8) text += ", and " + std::to_string(n_different - 8) + " more differ";
  throw error(text);
}
}  // namespace detail

/// Limits that only tests and unusual networks need to change; the same on all processes.
struct mpi_options {
  int message_limit = 1 << 30;  ///< Longer messages are sent in pieces of this many bytes.
  int window = 32;              ///< Members of a group with whom messages of one collective are under way at a time.
  int small_block = 4096;       ///< Blocks to be gathered, of at most so many bytes on average, are sent together with others' blocks.
};

/// One device per MPI process: device ids are the ranks of the communicator given.
///
/// The communicator is duplicated once, so messages never mix with the application's, whose error handler
/// stays as it is; MPI errors become `gshard::error` with MPI's own text. One further communicator is made
/// per set of axes when it is first used. Only the calling thread talks to MPI: MPI_THREAD_FUNNELED is enough
/// if that is the main thread. Construction and destruction are collective; communicators outlive
/// MPI_Finalize unharmed, but are then not freed.
class mpi_backend final : public backend {
 public:
  /// Throws `gshard::error`, on every process, if the processes pass different extents or options, or if the
  /// product of the extents is not the number of processes.
  mpi_backend(MPI_Comm comm, const std::vector<int>& extents, const mpi_options& options = {})
      : mpi_backend(connect(comm, extents, options), extents, options) {}

  void agree(std::uint64_t value, std::string_view what, const std::string& problem = {}) override {
    detail::agree(world_, value, what, problem);
  }
  void progress() override;
  bool leader() const override { return world_.rank() == 0; }
  void broadcast(std::span<std::byte> data) override;
  std::vector<std::vector<std::byte>> gather_to_leader(std::span<const std::byte> mine) override;

 private:
  static constexpr int tag = 0;

  mpi_backend(detail::communicator&& world, const std::vector<int>& extents, const mpi_options& options)
      : backend(extents, {world.rank()}),
        limit_(options.message_limit),
        window_(options.window),
        small_block_(options.small_block),
        world_(std::move(world)),
        group_(std::size_t(1) << extents.size()) {}

  static detail::communicator connect(MPI_Comm comm, std::span<const int> extents,
                                      const mpi_options& options);
  const detail::communicator& along(std::uint32_t axes);

  std::size_t do_start(std::uint32_t axes, std::span<const exchange_part> parts, bool at_once) override;
  void do_finish(std::size_t started) override;
  void do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) override;

  // An exchange that is not finished. What goes wrong with one message does not keep the others from being started and finished:
  // their receivers wait for them, and the buffers may be gone once an error is thrown.
  struct flight {
    std::size_t number = 0;
    const detail::communicator* group = nullptr;
    exchange_part part;
    int next = 1;  // the members at this distance and beyond wait for their turn
    std::vector<MPI_Request> request;
    std::vector<int> length;  // of the messages to be received, which come first in `request`
    int code = MPI_SUCCESS;
    std::string mismatch;
  };
  void start_some(flight& f, int members);
  void finish_some(flight& f);

  // Calls f(offset, count) for the pieces of a message; sender and receiver know its size and so find the
  // same ones.
  template <class F>
  void for_each_piece(std::int64_t bytes, F f) const {
    for (std::int64_t at = 0; at < bytes; at += limit_)
      f(at, int(std::min<std::int64_t>(limit_, bytes - at)));
  }

  std::int64_t limit_;
  int window_, small_block_;
  detail::communicator world_;
  std::vector<detail::communicator> group_;  // by set of axes, empty until used
  std::vector<flight> flights_;  // the first n_flights_ are under way, in the order of their starts
  std::size_t n_flights_ = 0, started_ = 0;
  std::vector<std::span<const std::byte>> to_all_;
  std::vector<std::byte> row_;  // of small blocks to be gathered
  std::vector<int> count_, offset_;
};

inline detail::communicator mpi_backend::connect(MPI_Comm comm, std::span<const int> extents,
                                                 const mpi_options& options) {
  detail::communicator world = detail::duplicate(comm);
  fnv1a<std::uint64_t> digest;
  for (const int extent : extents) digest.add(std::uint64_t(extent));
  digest.add(std::uint64_t(options.message_limit)).add(std::uint64_t(options.window)).add(std::uint64_t(options.small_block));
  detail::agree(world, digest.value(),
                "the mesh (here " + detail::mesh_text(extents) + ") or the options of mpi_backend");
  if (options.message_limit < 1 || options.window < 1 || options.small_block < 0)
    throw error("mpi_backend: message limit " + std::to_string(options.message_limit) + " and window " +
                std::to_string(options.window) + " must be at least 1, and small blocks of " + std::to_string(options.small_block) +
                " bytes at least 0");
  const int n_devices = device_count(extents);
  if (n_devices != world.size())
    throw error("mpi_backend: a mesh of " + detail::mesh_text(extents) + " needs " +
                std::to_string(n_devices) + " processes, but the communicator has " +
                std::to_string(world.size()));
  return world;
}

// All processes reach the same collectives in the same order, so all of them come here together.
inline const detail::communicator& mpi_backend::along(std::uint32_t axes) {
  for (std::size_t a = 0; a < extents().size(); ++a)
    if (extents()[a] == 1) axes &= ~(1u << a);
  const device_group group(extents(), axes, world_.rank());
  if (group.size() == world_.size()) return world_;
  detail::communicator& known = group_[axes];
  if (known.empty()) {
    MPI_Comm made = MPI_COMM_NULL;
    world_.check(MPI_Comm_split(world_.get(), group.device(0), group.member(), &made), "MPI_Comm_split");
    known = detail::communicator(made);
  }
  return known;
}

// Starts messages to and from the next members.
inline void mpi_backend::start_some(flight& f, int members) {
  const int p = f.group->size(), me = f.group->rank();
  const int first = f.next, last = f.next = std::min(first + members, p);
  const auto keep = [&](int code) {
    if (code == MPI_SUCCESS) return;
    f.code = code;
    f.request.back() = MPI_REQUEST_NULL;
  };
  f.request.clear();
  f.length.clear();
  for (int k = first; k < last; ++k) {
    const int from = (me - k + p) % p;
    const std::span<std::byte> block = f.part.recv[std::size_t(from)];
    for_each_piece(std::int64_t(block.size()), [&](std::int64_t at, int count) {
      f.length.push_back(count);
      f.request.push_back(MPI_REQUEST_NULL);
      keep(MPI_Irecv(block.data() + at, count, MPI_BYTE, from, tag, f.group->get(), &f.request.back()));
    });
  }
  for (int k = first; k < last; ++k) {
    const int to = (me + k) % p;
    const std::span<const std::byte> block = f.part.send[std::size_t(to)];
    for_each_piece(std::int64_t(block.size()), [&](std::int64_t at, int count) {
      f.request.push_back(MPI_REQUEST_NULL);
      keep(MPI_Isend(block.data() + at, count, MPI_BYTE, to, tag, f.group->get(), &f.request.back()));
    });
  }
}

// One MPI_Wait each, as MPI_Waitall of Open MPI 4.1 may spin for ever when a message has failed.
inline void mpi_backend::finish_some(flight& f) {
  for (std::size_t i = 0; i < f.request.size(); ++i) {
    MPI_Status status;
    const int code = MPI_Wait(&f.request[i], &status);
    if (code != MPI_SUCCESS) {
      f.code = code;
    } else if (i < f.length.size()) {
      int received = 0;
      MPI_Get_count(&status, MPI_BYTE, &received);
      if (received != f.length[i])
        f.mismatch = "member " + std::to_string(f.group->rank()) + " of a group of " + std::to_string(f.group->size()) + " expects " +
                     std::to_string(f.length[i]) + " bytes from member " + std::to_string(status.MPI_SOURCE) + ", which sent " +
                     std::to_string(received);
    }
  }
}

inline std::size_t mpi_backend::do_start(std::uint32_t axes, std::span<const exchange_part> parts, bool at_once) {
  const detail::communicator& group = along(axes);
  if (n_flights_ == flights_.size()) flights_.emplace_back();
  flight& f = flights_[n_flights_++];
  f.number = ++started_;
  f.group = &group;
  f.part = parts[0];
  f.next = 1;
  f.code = MPI_SUCCESS;
  f.mismatch.clear();
  start_some(f, at_once ? group.size() : window_);
  return f.number;
}

inline void mpi_backend::do_finish(std::size_t started) {
  const auto f = std::find_if(flights_.begin(), flights_.end(), [&](const flight& other) { return other.number == started; });
  for (finish_some(*f); f->next < f->group->size(); finish_some(*f)) start_some(*f, window_);
  std::rotate(f, f + 1, flights_.begin() + std::ptrdiff_t(n_flights_--));
  const flight& done = flights_[n_flights_];
  done.group->check(done.code, "a message between devices");
  if (!done.mismatch.empty()) throw error(done.mismatch);
}

// MPI moves messages while it is called. Nobody sends with the tag asked for.
inline void mpi_backend::progress() {
  int found = 0;
  if (n_flights_ > 0) world_.check(MPI_Iprobe(MPI_ANY_SOURCE, tag + 1, world_.get(), &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

// The path depends on the sizes alone, which all members pass alike; where blocks lie is each one's own affair.
inline void mpi_backend::do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) {
  const gather_part& part = parts[0];
  const detail::communicator& group = along(axes);
  const auto p = std::size_t(group.size());
  std::size_t total = 0;
  for (const std::span<std::byte> block : part.recv) total += block.size();
  if (total == 0) return;
  if (total > std::min(std::size_t(small_block_) * p, std::size_t(limit_))) {
    to_all_.assign(p, part.send);
    const exchange_part blocks{to_all_, part.recv};
    return do_finish(do_start(axes, {&blocks, 1}, false));
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
  group.check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, row_.data(), count_.data(), offset_.data(), MPI_BYTE, group.get()),
              "MPI_Allgatherv");
  for (std::size_t j = 0; j < p; ++j)
    if (j != me) detail::copy_bytes(part.recv[j], in_row(j));
}

inline void mpi_backend::broadcast(std::span<std::byte> data) {
  for_each_piece(std::int64_t(data.size()), [&](std::int64_t at, int count) {
    world_.check(MPI_Bcast(data.data() + at, count, MPI_BYTE, 0, world_.get()), "MPI_Bcast");
  });
}

inline std::vector<std::vector<std::byte>> mpi_backend::gather_to_leader(std::span<const std::byte> mine) {
  const auto size = std::int64_t(mine.size());
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

}}  // namespace gshard::v0
