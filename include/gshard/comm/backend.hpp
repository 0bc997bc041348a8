// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The interface of all backends: exchange of blocks within groups of devices.

#include <gshard/comm/agreement.hpp>
#include <gshard/comm/device_group.hpp>
#include <gshard/comm/error.hpp>

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

/// What one device hands to `backend::exchange`: entry j of each list is the block to or from member j of its group. Blocks may lie
/// anywhere. Blocks sent and blocks received must not overlap, but the device's own two may be the same.
struct exchange_part {
  std::span<const std::span<const std::byte>> send;
  std::span<const std::span<std::byte>> recv;
};

/// What all members of a group know alike of an exchange, so that a backend may choose how its blocks travel.
struct exchange_bounds {
  std::int64_t block_bytes = -1;  ///< No block to another member has more bytes; -1: nothing is known.
  std::int64_t messages = 0;      ///< The most blocks that are not empty that a member has for others.
};

/// What one device hands to `backend::all_gather`: the block of each member arrives in entry j of `recv`, wherever that lies. All
/// members pass blocks of the same sizes. `send` may be the device's own block of `recv`.
struct gather_part {
  std::span<const std::byte> send;
  std::span<const std::span<std::byte>> recv;
};

/// The collectives in which a device took part together with others, and the bytes it received from them: blocks, not what it forwards to
/// others or is told of sizes.
struct traffic {
  std::int64_t exchanges = 0, exchange_bytes = 0;
  std::int64_t gathers = 0, gather_bytes = 0;
  friend bool operator==(const traffic&, const traffic&) = default;
};

class pending_exchange;

/// Moves bytes between the devices of a mesh. A process holds one device (MPI), or all of them (simulation).
/// Every process makes the same calls in the same order. Only `begin` and `agree` check that; the library's collective operations call
/// `begin` before they communicate. Backends do no arithmetic: sums are made above them (reduce.hpp), in one order, so that all backends
/// compute the same bits.
///
/// A set of mesh axes is a bit mask; a group is the devices that differ only in those axes, members in
/// row-major order of their coordinates. Device ids are row-major over the mesh.
class backend {
 public:
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;
  virtual ~backend() = default;

  /// Devices per mesh axis.
  std::span<const int> extents() const { return extents_; }
  /// The devices that this process holds, ascending. Arguments "one per device" follow this order.
  std::span<const int> devices() const { return devices_; }

  /// All-to-all-v in every group: member i's block j arrives at member j as its block i. Sizes must match
  /// pairwise; empty blocks cost nothing. `all`: what is known of the whole group. Communicates: each device sends its blocks,
  /// except its own. Throws `gshard::error` on lists of the wrong length, and on sizes that are seen not to match.
  void exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all = {});

  /// `exchange` in two calls, between which blocks may be under way: those sent must not change, those to be received are not yet
  /// there, and the lists must stay. Several may be under way: all processes start them in one order, and finish them in any. Other
  /// collectives come between the same starts on all of them. A start may wait for others to start the same, a finish for nobody but those
  /// who send. Own blocks are left alone, and nothing is counted. For groups of at least two devices. Throws `gshard::error` as `exchange`
  /// does before anything is sent; what goes wrong with a message is told by finish().
  [[nodiscard]] pending_exchange start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all = {});

  /// All-gather in every group: each member's bytes arrive at all members. Communicates: each device's bytes
  /// to the p - 1 others. Throws as `exchange` does.
  void all_gather(std::uint32_t axes, std::span<const gather_part> parts);

  /// Begins a collective call: the processes compare what they call, by `agree`, before they communicate. A process that makes no call
  /// cannot be told from a slow one: the others wait for it. Returns whether any process passes `flag`. Communicates: one small message per
  /// process.
  bool begin(collective_call call, const std::string& problem = {}, bool flag = false) {
    call.number = ++calls_;
    if (processes() == 1) return agree(call, problem, flag);
    const std::string untold = std::exchange(untold_, {});
    return agree(call, problem.empty() ? untold : problem, flag);
  }
  /// This process has a problem that no meeting will tell the others: the next `begin` does.
  void tell_next(std::string problem) {
    if (processes() > 1) untold_ = std::move(problem);
  }
  /// How many collective calls were begun, the same on all processes.
  std::uint64_t calls() const { return calls_; }

  /// The processes compare their calls, or how a call goes on. If some have a `problem`, every process throws a `gshard::error`: those
  /// with their own text, the others with one that names their ranks and repeats the first one's. If the calls differ, every process
  /// throws one that names the first fact that differs, its values, and the ranks that have them. In both cases the backend can be used
  /// further. Returns whether any process passes `flag`. Communicates: one small message per process, unless it throws.
  virtual bool agree(const collective_call& /*call*/, const std::string& problem = {}, bool flag = false) {
    if (!problem.empty()) throw error(problem);
    return flag;
  }
  /// How many processes hold the devices.
  virtual int processes() const { return 1; }
  /// How many processes share the cores that this one may use, itself included.
  virtual int processes_here() const { return 1; }
  /// True on exactly one process.
  virtual bool leader() const { return true; }
  /// Copies the leader's bytes to all processes; all pass the same size.
  virtual void broadcast(std::span<std::byte> /*data*/) {}
  /// On the leader: the bytes of every process, the leader's first. Elsewhere: nothing.
  virtual std::vector<std::vector<std::byte>> gather_to_leader(std::span<const std::byte> mine) {
    return {std::vector(mine.begin(), mine.end())};
  }

  /// Whether the devices can read one another's memory, if it is taken from `share`: the same on all processes. Then
  ///   share(bytes)     is memory for the device held, bytes that may differ between processes, until the last pointer to it ends;
  ///   find_shared      gives the addresses here of what the devices have at k addresses, k of device 0, k of device 1, ...; null for
  ///                    what is not in such memory;
  ///   barrier(axes)    returns when all members of the group have called it: what they wrote before can be read after.
  /// All three are collective. What moves this way is told to `count`.
  virtual bool shares_memory() const { return false; }
  virtual std::shared_ptr<std::byte> share(std::int64_t /*bytes*/) { return nullptr; }
  virtual std::vector<const std::byte*> find_shared(std::span<const std::byte* const> /*mine*/) { return {}; }
  virtual void barrier(std::uint32_t /*axes*/) {}

  /// What each held device received since the start or the last reset. Groups of one device exchange nothing.
  std::span<const traffic> received() const { return received_; }
  /// Adds to that what a held device receives by other means than `exchange` and `all_gather`.
  void count(std::size_t device, const traffic& more) {
    traffic& t = received_[device];
    t.exchanges += more.exchanges;
    t.exchange_bytes += more.exchange_bytes;
    t.gathers += more.gathers;
    t.gather_bytes += more.gather_bytes;
  }
  void reset_received() { received_.assign(devices_.size(), {}); }

 protected:
  backend(std::vector<int> extents, std::vector<int> devices)
      : extents_(std::move(extents)), devices_(std::move(devices)), received_(devices_.size()) {
    device_count(extents_);
  }

 private:
  friend pending_exchange;
  // Called with checked arguments, for groups of at least two. A start that throws is not finished; every other one is once, by the
  // number that it gave. Those that are not finished before anything else is called start everything at once.
  virtual std::size_t do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all, bool at_once) = 0;
  virtual void do_finish(std::size_t started) = 0;
  virtual void do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) = 0;

  int check(const char* op, std::uint32_t axes, std::size_t n_parts) const;
  int check_exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) const;

  std::vector<int> extents_;
  std::vector<int> devices_;
  std::vector<traffic> received_;
  std::atomic<std::uint64_t> calls_ = 0;  // threads may use a backend that does not communicate at the same time
  std::string untold_;                    // a problem of this process that the others are told in the next call
};

/// An exchange under way, on a backend that outlives it. If it is not finished before it goes, its end is waited for and what went wrong
/// with it is not told: the blocks may go with it.
class pending_exchange {
 public:
  pending_exchange() = default;  ///< None is under way.
  pending_exchange(pending_exchange&& other) noexcept : on_(std::exchange(other.on_, nullptr)), started_(other.started_) {}
  pending_exchange& operator=(pending_exchange&& other) noexcept {
    std::swap(on_, other.on_);
    std::swap(started_, other.started_);
    return *this;
  }
  ~pending_exchange() {
    if (on_) end();
  }

  /// Waits until everything has arrived and what was sent may change. Throws `gshard::error` if a message failed or had another
  /// size than expected, when none is under way any more.
  void finish() {
    if (backend* const on = std::exchange(on_, nullptr)) on->do_finish(started_);
  }

 private:
  friend backend;
  pending_exchange(backend& on, std::size_t started) : on_(&on), started_(started) {}
  void end() noexcept {
    try {
      finish();
    } catch (const std::exception&) {  // whoever wants to know calls finish
    }
  }

  backend* on_ = nullptr;
  std::size_t started_ = 0;
};

namespace detail {
/// Blocks of equal size; where both are the same memory, nothing is copied.
inline void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!to.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
}

inline void check_list(const char* op, int device, const char* name, std::size_t n, int size) {
  if (n != std::size_t(size))
    throw error(std::string(op) + ": device " + std::to_string(device) + ": " + name + " has " + std::to_string(n) +
                " entries for a group of " + std::to_string(size));
}

/// The bytes that come from others.
inline std::int64_t bytes_from_others(std::span<const std::span<std::byte>> blocks, std::size_t own) {
  std::size_t bytes = 0;
  for (std::size_t j = 0; j < blocks.size(); ++j) bytes += j == own ? 0 : blocks[j].size();
  return std::int64_t(bytes);
}
}  // namespace detail

inline int backend::check(const char* op, std::uint32_t axes, std::size_t n_parts) const {
  if (axes >> extents_.size() != 0)
    throw error(std::string(op) + ": axes " + detail::axes_text(axes) + " are not all axes of the mesh " +
                detail::mesh_text(extents_));
  if (n_parts != devices_.size())
    throw error(std::string(op) + ": " + std::to_string(n_parts) + " parts for " +
                std::to_string(devices_.size()) + " devices held");
  return device_group(extents_, axes, 0).size();
}

inline int backend::check_exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) const {
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
                    " bytes where none is to have more than " + std::to_string(all.block_bytes));
  }
  return size;
}

inline pending_exchange backend::start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) {
  if (check_exchange(axes, parts, all) == 1) throw error("exchange: a group of one device has nothing to start");
  return {*this, do_start(axes, parts, all, true)};
}

inline void backend::exchange(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds& all) {
  const int size = check_exchange(axes, parts, all);
  pending_exchange others = size > 1 ? pending_exchange(*this, do_start(axes, parts, all, false)) : pending_exchange();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto own = std::size_t(device_group(extents_, axes, devices_[i]).member());
    detail::copy_bytes(parts[i].recv[own], parts[i].send[own]);
    if (size > 1) count(i, {1, detail::bytes_from_others(parts[i].recv, own), 0, 0});
  }
  others.finish();
}

inline void backend::all_gather(std::uint32_t axes, std::span<const gather_part> parts) {
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
  }
  if (size > 1) do_all_gather(axes, parts);
}

}}  // namespace gshard::v0
