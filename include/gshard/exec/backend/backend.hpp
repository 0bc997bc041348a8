// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The interface of all backends: exchange of blocks within groups of devices.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/process/cpu_level.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/float_environment.hpp>
#include <gshard/exec/process/run_queue.hpp>
#include <gshard/exec/process/thread_rule.hpp>

#if GSHARD_HAS_BODIES
#include <gshard/exec/backend/wait_watch.hpp>
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The arguments of one device for `backend::exchange`. Entry j of each list is the block to or from member j of its group. Blocks may be
/// at any address. Blocks sent and received must not overlap, but the device's own block may be the same in both lists.
struct exchange_part {
  std::span<const std::span<const std::byte>> send;
  std::span<const std::span<std::byte>> recv;
};

/// Bounds of an exchange, which all members of a group must pass equally. A backend may choose its algorithm by them.
struct exchange_bounds {
  std::int64_t block_bytes = -1;  ///< The largest block to another member; -1: no bounds are known.
  std::int64_t messages = 0;      ///< The largest number of nonempty blocks that a member sends to others.
  std::uint32_t channel = 0;      ///< Exchanges of a group match in the order of their starts on one channel.
  bool finishes_next = false;     ///< Every member's next call that communicates is the finish() of this exchange.
};

/// The arguments of one device for `backend::all_gather`. Entry j of `recv` receives the block of member j, at any address. All members
/// pass blocks of the same sizes. `send` may be the device's own block of `recv`.
struct gather_part {
  std::span<const std::byte> send;
  std::span<const std::span<std::byte>> recv;
};

/// The collectives in which a device took part with others, and the bytes of the blocks that it received. Blocks that it only forwards and
/// size headers do not count.
struct traffic {
  std::int64_t exchanges = 0, exchange_bytes = 0;
  std::int64_t gathers = 0, gather_bytes = 0;
  std::int64_t between_nodes = 0;  ///< The bytes received from devices on other nodes, including bytes to forward or to combine.
  friend bool operator==(const traffic&, const traffic&) = default;
};

/// The order in which reductions combine the operands of a group (sum_order).
enum class summation : std::uint8_t {
  by_member,  ///< By member number, wherever the members are. The same bits on every cluster.
  /// First within the nodes of the mesh's first group. A node sends one partial sum if all groups are distributed over nodes in the same
  /// way. The bits depend on the nodes.
  by_node,
};

/// The nodes of a mesh, and how reductions use them.
struct node_map {
  std::vector<int> node{};  ///< By device, any number for each node. Empty: all devices are on one node.
  summation sums = summation::by_member;
  bool levels = true;  ///< True: reductions and gathers communicate first within nodes, then between nodes.
  friend bool operator==(const node_map&, const node_map&) = default;
};

class pending_exchange;
class wait_watch;

/// Moves bytes between the devices of a mesh. A process holds one device (MPI), or all of them (simulation).
/// Every process makes the same calls in the same order. Only `begin` and `agree` check that; the library's collective operations call
/// `begin` before they communicate. Backends do no arithmetic. Reductions use them (exec/reduce/) in a fixed order, so all backends compute
/// the same bits.
///
/// A set of mesh axes is a bit mask. A group is the devices that differ only along those axes, in row-major order of their coordinates.
/// Device ids are row-major over the mesh.
class backend {
 public:
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;
  GSHARD_INLINE virtual ~backend();

  /// Devices per mesh axis.
  std::span<const int> extents() const { return extents_; }
  /// The devices that this process holds, ascending. Arguments "one per device" follow this order.
  std::span<const int> devices() const { return devices_; }
  /// The same on all processes.
  const node_map& nodes() const { return nodes_; }
  /// The lowest level among the processors of all processes. The same on all processes. Programs that link gshard::compiled use kernels of
  /// this level. Other programs use kernels compiled with their own flags.
  cpu_level level() const { return level_; }

  /// All-to-all-v in every group: member i's block j arrives at member j as its block i. Sizes must match
  /// pairwise; empty blocks cost nothing. `all`: bounds for the group. Communicates: each device sends its blocks,
  /// except its own. Throws `gshard::error` on lists of the wrong length, and on mismatched sizes that the backend detects.
  void exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all = {});

  /// The asynchronous `exchange`: start() begins it, finish() completes it. In between, the lists must stay valid, blocks sent must not
  /// change and blocks received are undefined. Several exchanges may be in flight. All processes start the exchanges of a channel in one
  /// order, and finish them in any order. Other collectives must come between the same starts of channel 0 on all processes. A finish waits
  /// only for its senders; with `finishes_next`, also for members that forward. The device's own block is not copied. Only bytes between
  /// nodes are counted. Groups must have at least two devices. Throws `gshard::error` on wrong arguments before anything is sent; finish()
  /// throws errors of messages.
  [[nodiscard]] pending_exchange start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all = {});

  /// All-gather in every group: each member's bytes arrive at all members. Communicates: each device's bytes
  /// to the p - 1 others. Throws as `exchange` does.
  void all_gather(std::uint32_t axes, std::span<const gather_part> parts);

  /// A guard: the calling thread uses the backend until the guard is destroyed. Every verb holds one. Waits first for all runs that were
  /// started before it. On one device without MPI, several threads may hold guards at the same time. Local. Throws `gshard::error` if
  /// another thread uses the backend, or if MPI does not allow this thread to. The next `begin` of this process then throws on every
  /// process, because the others wait for the refused call.
  detail::thread_rule::use enter() {
    started_.drain();
    return detail::thread_rule::use(threads_);
  }
  /// The rule for threads that may use it.
  const detail::thread_rule& threads() const { return threads_; }

  /// Begins a collective call: the processes compare their calls, by `agree`, before they communicate. Waits first for all runs that were
  /// started before it. Returns true if any process passes `flag`. If a process makes no call, the others wait until their deadline, or
  /// until that process reports that it failed or makes no further call. @see wait_watch
  /// Communicates: one small message per process.
  /// Throws `gshard::error` as `agree` does. Throws without communication if another process has reported such an end.
  bool begin(collective_call call, const process_error& problem = {}, bool flag = false);
  /// Saves an error of this process that no agreement has reported. The next `begin` reports it.
  void tell_next(process_error problem);
  /// An error text if this thread rounds or flushes subnormal numbers differently from the thread that made the backend; otherwise empty.
  /// Saves call it. All MPI ranks made the backend in the same floating-point environment. Local.
  std::string changed_environment() const;
  /// The number of collective calls so far; the same on all processes.
  std::uint64_t calls() const { return calls_; }
  /// The number of the last call outside of started runs, and the number of objects numbered since, including this one. The same on all
  /// processes, if they number objects in one order.
  std::pair<std::uint64_t, std::uint64_t> number_object() { return {last_call_, ++objects_}; }

  /// The processes compare their calls, or later steps of a call. If some have a `problem`, every process throws a `gshard::error`. A
  /// failed process throws its own text; the others name the failed ranks and repeat the text of the first. If every problem is a
  /// not_finite_error, every process throws the first in the order of the program. If the calls differ, the error names the first fact that
  /// differs, its values, and their ranks. After both errors the backend can still be used. Returns true if any process passes `flag`.
  /// Communicates: one small message per process, unless it throws.
  GSHARD_INLINE virtual bool agree(const collective_call& call, const process_error& problem = {}, bool flag = false);
  /// The watch of this process's waits, or null.
  wait_watch* waits() const { return waits_.get(); }
  /// Runs started with executable::start that are not done.
  run_queue& started() { return started_; }
  /// True if a thread of the library may communicate while other threads of this process do.
  virtual bool any_thread() const { return true; }
  /// True if collectives may be in flight while steps compute. The same on all processes.
  virtual bool overlaps() const { return !shares_memory(); }
  /// True if programs measure whether overlap pays. The same on all processes.
  virtual bool measures_overlap() const { return false; }
  /// True if messages advance only within calls of the backend, such as pending_exchange::is_done. It then pays to make such calls while
  /// steps compute.
  virtual bool advances_in_calls() const { return false; }
  /// Advances messages in flight, without waiting.
  virtual void advance() {}

  /// The number of processes that hold the devices.
  virtual int processes() const { return 1; }
  /// The number of processes that share the cores available to this one, including itself.
  virtual int processes_here() const { return 1; }
  /// True on exactly one process.
  virtual bool leader() const { return true; }
  /// Copies the leader's bytes to all processes; all pass the same size.
  virtual void broadcast(std::span<std::byte> /*data*/) {}
  /// On the leader: the bytes of every process, the leader's first. On other processes: empty.
  GSHARD_INLINE virtual std::vector<std::vector<std::byte>> gather_to_leader(std::span<const std::byte> mine);

  /// True if the devices can read each other's memory that `share` allocates; the same on all processes. In this case:
  ///   share(bytes)     allocates shared memory for this process's device. Sizes may differ between processes. Its lifetime ends with the
  ///                    last pointer to it.
  ///   find_shared      translates k addresses of every device to addresses of this process: k of device 0, k of device 1, ... An address
  ///                    outside shared memory becomes null.
  ///   barrier(axes)    returns when all members of the group have called it. Their earlier writes can then be read.
  /// All three are collective. Callers report the bytes that they read to `count`.
  virtual bool shares_memory() const { return false; }
  virtual std::shared_ptr<std::byte> share(std::int64_t /*bytes*/) { return nullptr; }
  virtual std::vector<const std::byte*> find_shared(std::span<const std::byte* const> /*mine*/) { return {}; }
  virtual void barrier(std::uint32_t /*axes*/) {}

  /// The traffic of each held device since construction or the last reset. Groups of one device exchange nothing.
  std::span<const traffic> received() const { return received_; }
  /// Adds traffic of a held device outside `exchange` and `all_gather`.
  void count(std::size_t device, const traffic& more);
  void reset_received() { received_.assign(devices_.size(), {}); }

 protected:
  /// Throws `gshard::error` if `nodes` has a wrong length.
  backend(std::vector<int> extents, std::vector<int> devices, node_map nodes = {});
  backend(std::vector<int> extents, std::vector<int> devices, node_map nodes, detail::thread_rule::allows threads);
  void watch_waits(std::unique_ptr<wait_watch> by);
  void lower_level(cpu_level agreed) { level_ = agreed; }

 private:
  friend pending_exchange;
  // These are called with checked arguments, for groups of at least two. Every start that does not throw is finished once, by the number
  // that it returned. Without at_once, do_finish is the next call. With at_once, do_start must start all messages.
  virtual std::size_t do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all, bool at_once) = 0;
  virtual void do_finish(std::size_t started) = 0;
  virtual bool is_done(std::size_t /*started*/) { return false; }
  virtual void do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) = 0;

  int check(const char* op, std::uint32_t axes, std::size_t n_parts) const;
  int check_exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) const;
  void count_between_nodes(std::uint32_t axes, std::size_t device, std::span<const std::span<std::byte>> recv);

  std::vector<int> extents_;
  std::vector<int> devices_;
  node_map nodes_;
  std::vector<traffic> received_;
  std::atomic<std::uint64_t> calls_ = 0;  // atomic: several threads may use one device
  std::atomic<std::uint64_t> last_call_ = 0, objects_ = 0;
  detail::thread_rule threads_;
  cpu_level level_ = detail::this_cpu_level();
  detail::float_environment made_in_ = detail::float_environment::here();
  process_error untold_;                   // an error of this process that the next call reports
  std::unique_ptr<wait_watch> waits_;
  run_queue started_;
};

/// An exchange in flight, on a backend that outlives it. The destructor waits for an unfinished exchange and ignores its errors, so the
/// blocks can be freed after it.
class pending_exchange {
 public:
  pending_exchange() = default;  ///< No exchange.
  pending_exchange(pending_exchange&& other) noexcept : on_(std::exchange(other.on_, nullptr)), started_(other.started_) {}
  pending_exchange& operator=(pending_exchange&& other) noexcept {
    std::swap(on_, other.on_);
    std::swap(started_, other.started_);
    return *this;
  }
  ~pending_exchange() {
    if (on_) end();
  }

  /// True if finish() need not wait, or if there is no exchange. Never waits. A backend that cannot tell returns false.
  bool is_done() { return on_ == nullptr || on_->is_done(started_); }
  /// Waits until all blocks have arrived and the blocks sent may change. Throws `gshard::error` after that if a message failed or had an
  /// unexpected size.
  void finish() {
    if (backend* const on = std::exchange(on_, nullptr)) on->do_finish(started_);
  }

 private:
  friend backend;
  pending_exchange(backend& on, std::size_t started) : on_(&on), started_(started) {}
  void end() noexcept {
    try {
      finish();
    } catch (const std::exception&) {  // only an explicit finish() reports errors
    }
  }

  backend* on_ = nullptr;
  std::size_t started_ = 0;
};

namespace detail {
/// Copies a block to one of equal size, unless both are the same memory.
inline void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!to.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
}

void check_list(const char* op, int device, const char* name, std::size_t n, int size);

/// The bytes received from other members.
std::int64_t bytes_from_others(std::span<const std::span<std::byte>> blocks, std::size_t own);

/// The process that holds a device.
inline std::size_t process_of(const backend& on, int device) { return on.processes() == 1 ? 0 : std::size_t(device); }
inline std::size_t this_process(const backend& on) { return process_of(on, on.devices()[0]); }
/// The set of all axes of the mesh.
inline std::uint32_t all_axes(const backend& on) { return (1u << on.extents().size()) - 1; }
}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE void backend::watch_waits(std::unique_ptr<wait_watch> by) { waits_ = std::move(by); }

GSHARD_INLINE backend::backend(std::vector<int> extents, std::vector<int> devices, node_map nodes)
    : backend(extents, std::move(devices), std::move(nodes),
              device_count(extents) == 1 ? detail::thread_rule::allows::any_thread : detail::thread_rule::allows::one_at_a_time) {}
GSHARD_INLINE backend::backend(std::vector<int> extents, std::vector<int> devices, node_map nodes, detail::thread_rule::allows threads)
    : extents_(std::move(extents)),
      devices_(std::move(devices)),
      nodes_(std::move(nodes)),
      received_(devices_.size()),
      threads_(threads) {
  const int n = device_count(extents_);
  if (!nodes_.node.empty() && nodes_.node.size() != std::size_t(n))
    throw error("backend: the nodes of " + std::to_string(nodes_.node.size()) + " devices are given for a mesh of " + std::to_string(n));
}
GSHARD_INLINE backend::~backend() = default;

GSHARD_INLINE std::string backend::changed_environment() const {
  const detail::float_environment now = detail::float_environment::here();
  if (now == made_in_) return {};
  return "the floating-point environment has changed since the cluster was made: it was " + made_in_.text() + ", it is " + now.text();
}

GSHARD_INLINE bool backend::begin(collective_call call, const process_error& problem, bool flag) {
  const detail::thread_rule::use in_use = enter();
  call.number = calls_.load(std::memory_order_relaxed) + 1;
  if (processes() > 1 && waits_)  // a refused call is not counted: the other processes do not make it
    if (const std::string problem_of_others = waits_->refusal(call.number); !problem_of_others.empty()) throw error(problem_of_others);
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (!started_.in_job()) {
    last_call_.store(call.number, std::memory_order_relaxed);
    objects_.store(0, std::memory_order_relaxed);
  }
  if (waits_) waits_->in_call(call.number);
  if (processes() == 1) return agree(call, problem, flag);
  process_error untold = std::exchange(untold_, {});
  if (const char* const refused = threads_.take_refusal(); refused != nullptr && untold.empty())
    untold = "an earlier call on the cluster was refused" + std::string(refused);
  return agree(call, problem.empty() ? untold : problem, flag);
}
GSHARD_INLINE void backend::tell_next(process_error problem) {
  if (processes() > 1) untold_ = std::move(problem);
}
GSHARD_INLINE bool backend::agree(const collective_call& /*call*/, const process_error& problem, bool flag) {
  if (!problem.empty()) problem.fail();
  return flag;
}
GSHARD_INLINE std::vector<std::vector<std::byte>> backend::gather_to_leader(std::span<const std::byte> mine) {
  return {std::vector(mine.begin(), mine.end())};
}
GSHARD_INLINE void backend::count(std::size_t device, const traffic& more) {
  traffic& t = received_[device];
  t.exchanges += more.exchanges;
  t.exchange_bytes += more.exchange_bytes;
  t.gathers += more.gathers;
  t.gather_bytes += more.gather_bytes;
  t.between_nodes += more.between_nodes;
}
GSHARD_INLINE void backend::count_between_nodes(std::uint32_t axes, std::size_t device, std::span<const std::span<std::byte>> recv) {
  if (nodes_.node.empty()) return;
  const device_group group(extents_, axes, devices_[device]);
  const int here = nodes_.node[std::size_t(devices_[device])];
  for (std::size_t m = 0; m < recv.size(); ++m)
    if (nodes_.node[std::size_t(group.device(int(m)))] != here) received_[device].between_nodes += std::int64_t(recv[m].size());
}

GSHARD_INLINE int backend::check(const char* op, std::uint32_t axes, std::size_t n_parts) const {
  if (axes >> extents_.size() != 0)
    throw error(std::string(op) + ": axes " + detail::axes_text(axes) + ": the mesh " + detail::mesh_text(extents_) +
                " has fewer axes");
  if (n_parts != devices_.size())
    throw error(std::string(op) + ": " + std::to_string(n_parts) + " parts for " +
                std::to_string(devices_.size()) + " local devices");
  return device_group(extents_, axes, 0).size();
}

GSHARD_INLINE int backend::check_exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) const {
  const int size = check("exchange", axes, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const exchange_part& part = parts[i];
    detail::check_list("exchange", devices_[i], "send", part.send.size(), size);
    detail::check_list("exchange", devices_[i], "recv", part.recv.size(), size);
    const auto own = std::size_t(device_group(extents_, axes, devices_[i]).member());
    if (part.send[own].size() != part.recv[own].size())
      throw error("exchange: device " + std::to_string(devices_[i]) + " sends itself " + std::to_string(part.send[own].size()) +
                  " bytes but expects " + std::to_string(part.recv[own].size()));
    for (std::size_t j = 0; all.block_bytes >= 0 && j < part.send.size(); ++j)
      if (const std::size_t bytes = std::max(part.send[j].size(), part.recv[j].size()); j != own && bytes > std::size_t(all.block_bytes))
        throw error("exchange: device " + std::to_string(devices_[i]) + " has a block of " + std::to_string(bytes) +
                    " bytes; the limit is " + std::to_string(all.block_bytes));
  }
  return size;
}

GSHARD_INLINE pending_exchange backend::start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) {
  const detail::thread_rule::use in_use(threads_);
  if (check_exchange(axes, parts, all) == 1) throw error("exchange: a group of one device has nothing to start");
  for (std::size_t i = 0; i < parts.size(); ++i) count_between_nodes(axes, i, parts[i].recv);
  return {*this, do_start(axes, parts, all, !all.finishes_next)};
}

GSHARD_INLINE void backend::exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) {
  const detail::thread_rule::use in_use(threads_);
  const int size = check_exchange(axes, parts, all);
  pending_exchange others = size > 1 ? pending_exchange(*this, do_start(axes, parts, all, false)) : pending_exchange();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    count_between_nodes(axes, i, parts[i].recv);
    const auto own = std::size_t(device_group(extents_, axes, devices_[i]).member());
    detail::copy_bytes(parts[i].recv[own], parts[i].send[own]);
    if (size > 1) count(i, {1, detail::bytes_from_others(parts[i].recv, own), 0, 0});
  }
  others.finish();
}

GSHARD_INLINE void backend::all_gather(std::uint32_t axes, std::span<const gather_part> parts) {
  const detail::thread_rule::use in_use(threads_);
  const int size = check("all_gather", axes, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const gather_part& part = parts[i];
    detail::check_list("all_gather", devices_[i], "recv", part.recv.size(), size);
    const auto own = std::size_t(device_group(extents_, axes, devices_[i]).member());
    if (part.send.size() != part.recv[own].size())
      throw error("all_gather: device " + std::to_string(devices_[i]) + " sends " + std::to_string(part.send.size()) +
                  " bytes but its own block has " + std::to_string(part.recv[own].size()));
    detail::copy_bytes(part.recv[own], part.send);
    if (size > 1) count(i, {0, 0, 1, detail::bytes_from_others(part.recv, own)});
    count_between_nodes(axes, i, part.recv);
  }
  if (size > 1) do_all_gather(axes, parts);
}

namespace detail {

GSHARD_INLINE void check_list(const char* op, int device, const char* name, std::size_t n, int size) {
  if (n != std::size_t(size))
    throw error(std::string(op) + ": device " + std::to_string(device) + ": " + name + " has " + std::to_string(n) +
                " entries for a group of " + std::to_string(size));
}

GSHARD_INLINE std::int64_t bytes_from_others(std::span<const std::span<std::byte>> blocks, std::size_t own) {
  std::size_t bytes = 0;
  for (std::size_t j = 0; j < blocks.size(); ++j) bytes += j == own ? 0 : blocks[j].size();
  return std::int64_t(bytes);
}

}  // namespace detail

#endif

}}  // namespace gshard::v0
