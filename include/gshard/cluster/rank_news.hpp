// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Records which processes make no further collective calls: failures in a scope, and departures.

#include <gshard/core/base/compiled.hpp>

#if GSHARD_HAS_BODIES
#include <algorithm>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Failures and departures of ranks. Any thread may call all functions. Times are in nanoseconds.
class rank_news {
 public:
  explicit rank_news(int rank) : rank_(rank) {}
  /// Sets the number of ranks, so that their departures allocate nothing.
  void expect(std::size_t ranks);

  /// Begins a scope and returns its number, from 1. All ranks begin the same scopes, so the numbers agree.
  std::uint64_t open_scope();
  /// Ends a scope, and forgets a failure in it.
  void close_scope(std::uint64_t scope);

  /// Records that a rank failed in a scope; 0: in any scope. Ignored if this process has left the scope, or if a failure is known.
  void fails(int rank, std::uint64_t scope, const std::string& text, std::int64_t time);
  /// Records that a rank makes no call after `last_call`. `why`: "has destroyed its cluster"
  void departs(int rank, std::uint64_t last_call, std::string_view why, std::int64_t time);

  /// "has destroyed its cluster, so that it makes no further call"; empty if the rank is not known to have departed.
  std::string departure(int rank) const;
  /// The reason why some rank takes no part in a call, from news until a time; empty if none is known.
  std::string against(std::uint64_t call, std::int64_t until) const;

 private:
  struct failure {
    int rank;
    std::uint64_t scope;
    std::string text;
    std::int64_t time;
  };
  struct end {
    char why[64] = {};  // empty: not known
    std::uint64_t last_call = 0;
    std::int64_t time = 0;

    bool is_known() const { return why[0] != '\0'; }
    std::string text() const { return std::string(why) + ", so that it makes no further call"; }
  };
  const int rank_;
  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t scopes_ = 0;
  std::vector<std::uint64_t> open_;
  std::optional<failure> failure_;
  std::vector<end> ends_;  // by rank
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::uint64_t rank_news::open_scope() {
  const std::scoped_lock lock(mutex_);
  open_.push_back(++scopes_);
  return scopes_;
}
GSHARD_INLINE void rank_news::close_scope(std::uint64_t scope) {
  const std::scoped_lock lock(mutex_);
  std::erase(open_, scope);
  if (failure_ && failure_->scope == scope) failure_.reset();
}
GSHARD_INLINE void rank_news::fails(int rank, std::uint64_t scope, const std::string& text, std::int64_t time) {
  const std::scoped_lock lock(mutex_);
  const bool concerns = scope == 0 || scope > scopes_ || std::ranges::find(open_, scope) != open_.end();
  if (!concerns || failure_) return;
  failure_ = failure{rank, scope, text, time};
  any_ = true;
}
GSHARD_INLINE void rank_news::expect(std::size_t ranks) {
  const std::scoped_lock lock(mutex_);
  ends_.resize(std::max(ends_.size(), ranks));
}
GSHARD_INLINE void rank_news::departs(int rank, std::uint64_t last_call, std::string_view why, std::int64_t time) {
  const std::scoped_lock lock(mutex_);
  ends_.resize(std::max(ends_.size(), std::size_t(rank) + 1));
  end& e = ends_[std::size_t(rank)];
  if (e.is_known()) return;
  why.copy(e.why, sizeof e.why - 1);
  e.last_call = last_call;
  e.time = time;
  any_ = true;
}
GSHARD_INLINE std::string rank_news::departure(int rank) const {
  const std::scoped_lock lock(mutex_);
  if (std::size_t(rank) >= ends_.size() || !ends_[std::size_t(rank)].is_known()) return {};
  return ends_[std::size_t(rank)].text();
}
GSHARD_INLINE std::string rank_news::against(std::uint64_t call, std::int64_t until) const {
  if (!any_.load(std::memory_order_relaxed)) return {};
  const std::scoped_lock lock(mutex_);
  if (failure_ && failure_->time <= until)
    return (failure_->rank == rank_ ? "this rank" : "rank " + std::to_string(failure_->rank)) + " failed: " + failure_->text;
  for (std::size_t rank = 0; rank < ends_.size(); ++rank)
    if (const end& e = ends_[rank]; e.is_known() && e.last_call < call && e.time <= until)
      return "rank " + std::to_string(rank) + " " + e.text() + " after call " + std::to_string(e.last_call);
  return {};
}

#endif

}}}  // namespace gshard::v0::detail
