// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The watch of a process's waits for other processes: what the process does now, and what it tells the others.

#include <gshard/core/base/compiled.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#if GSHARD_HAS_BODIES
#include <chrono>
#endif

namespace gshard { inline namespace v0 {

/// Watches the waits of one process. A backend with several processes may have one. @see backend::waits, datagram_watch
class wait_watch {
 public:
  wait_watch();
  wait_watch(const wait_watch&) = delete;
  wait_watch& operator=(const wait_watch&) = delete;
  virtual ~wait_watch() = default;

  /// A wait for other processes during the lifetime of the object. An inner wait belongs to the outer one.
  class wait {
   public:
    /// `what`: "an agreement of all ranks"; a literal.
    wait(wait_watch* on, const char* what, std::int64_t bytes = 0) : on_(on != nullptr && on->begin(what, bytes) ? on : nullptr) {}
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;
    ~wait() {
      if (on_ != nullptr) on_->end();
    }

   private:
    wait_watch* on_;
  };

  /// The total nanoseconds of all ended waits.
  std::int64_t waited() const { return now_.waited.load(std::memory_order_relaxed); }

  /// Set the number of the current collective call, and the running step of a plan. `kind` and `file` are literals, or null.
  void in_call(std::uint64_t number) {
    now_.call.store(number, std::memory_order_relaxed);
    now_.steps.store(0, std::memory_order_relaxed);
  }
  void at_step(std::int64_t number, const char* kind, const char* file, std::uint32_t line) {
    now_.steps.store(now_.steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    now_.step.store(number, std::memory_order_relaxed);
    now_.kind.store(kind, std::memory_order_relaxed);
    now_.file.store(file, std::memory_order_relaxed);
    now_.line.store(line, std::memory_order_relaxed);
  }
  /// Sets the ranks whose messages the current wait still lacks, for reports until its end.
  virtual void lacks(std::span<const int> ranks) = 0;

  /// Begins a scope. If one rank fails in it, the others cannot continue. All ranks begin the same scopes. @see run_scope
  virtual std::uint64_t open_scope() = 0;
  virtual void close_scope(std::uint64_t scope) = 0;
  /// Tells the other ranks that this one fails, until they confirm it, for at most 3 s. Ranks that have not left the scope then throw in
  /// their next collective call, as does this one. A rank that waits ends its process. Scope 0: any scope.
  virtual void fail(std::uint64_t scope, const std::string& text) = 0;
  /// Tells the other ranks once that this one makes no further call. `why`: "has destroyed its cluster"
  virtual void leave(const char* why) = 0;
  /// The reason why not all ranks can make the call of this number; empty if none is known.
  virtual std::string refusal(std::uint64_t call) const = 0;

 protected:
  /// The activity of the process. Fields are read one by one, so a report may mix two successive moments.
  struct activity {
    std::atomic<const char*> waits_in{nullptr};
    std::atomic<std::int64_t> since{0};  // nanoseconds; start of the wait, or end of the last one
    std::atomic<std::int64_t> waited{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::uint64_t> steps{0};  // run since the call began
    std::atomic<std::int64_t> step{-1};
    std::atomic<const char*> kind{nullptr}, file{nullptr};
    std::atomic<std::uint32_t> line{0};
    std::atomic<bool> lacks{false};
  };
  activity now_;

  static std::int64_t nanoseconds();

 private:
  bool begin(const char* what, std::int64_t bytes);
  void end();
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE wait_watch::wait_watch() { now_.since = nanoseconds(); }
GSHARD_INLINE std::int64_t wait_watch::nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
GSHARD_INLINE bool wait_watch::begin(const char* what, std::int64_t bytes) {
  if (now_.waits_in.load(std::memory_order_relaxed) != nullptr) return false;
  now_.since.store(nanoseconds(), std::memory_order_relaxed);
  now_.bytes.store(bytes, std::memory_order_relaxed);
  now_.waits_in.store(what, std::memory_order_relaxed);
  return true;
}
GSHARD_INLINE void wait_watch::end() {
  const std::int64_t now = nanoseconds();
  now_.waited.fetch_add(now - now_.since.load(std::memory_order_relaxed), std::memory_order_relaxed);
  now_.waits_in.store(nullptr, std::memory_order_relaxed);
  now_.since.store(now, std::memory_order_relaxed);
  now_.lacks.store(false, std::memory_order_relaxed);
}

#endif

}}  // namespace gshard::v0
