// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A cache of the most recently used objects, limited in number and in bytes.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

#if GSHARD_HAS_BODIES
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// An object that is expensive to make and may be needed again. `kind`: a unique address for objects that may replace each other.
struct kept {
  const void* kind;
  std::int64_t bytes;

  kept(const void* its_kind, std::int64_t its_bytes) : kind(its_kind), bytes(its_bytes) {}
  virtual ~kept() = default;
};

/// The cache. A taken object belongs only to its user until it is put back. Several threads may take and put back objects at the same time.
class lru_cache {
 public:
  static constexpr std::size_t most = 32;
  static constexpr std::int64_t most_bytes = std::int64_t(1) << 24;

  lru_cache();
  lru_cache(const lru_cache&) = delete;
  lru_cache& operator=(const lru_cache&) = delete;
  ~lru_cache();

  /// The most recently used object of this kind, of type T, for which fits(object) is true; null if there is none.
  template <class T, class F>
  std::unique_ptr<T> take(const void* kind, const F& fits) {
    const auto call = [](const void* f, const kept& object) { return bool((*static_cast<const F*>(f))(static_cast<const T&>(object))); };
    return std::unique_ptr<T>(static_cast<T*>(take_if(kind, call, &fits)));
  }
  void put_back(std::unique_ptr<kept> thing);
  std::size_t size() const;

 private:
  struct state;
  std::unique_ptr<state> state_;

  kept* take_if(const void* kind, bool (*fits)(const void*, const kept&), const void* with);
};

#if GSHARD_HAS_BODIES

struct lru_cache::state {
  std::mutex lock;
  std::vector<std::unique_ptr<kept>> things;  // the most recently used one last
  std::int64_t bytes = 0;
};

GSHARD_INLINE lru_cache::lru_cache() : state_(std::make_unique<state>()) { state_->things.reserve(most + 1); }
GSHARD_INLINE lru_cache::~lru_cache() = default;

GSHARD_INLINE std::size_t lru_cache::size() const {
  const std::lock_guard alone(state_->lock);
  return state_->things.size();
}

GSHARD_INLINE kept* lru_cache::take_if(const void* kind, bool (*fits)(const void*, const kept&), const void* with) {
  const std::lock_guard alone(state_->lock);
  auto& things = state_->things;
  for (std::size_t i = things.size(); i-- > 0;) {
    if (things[i]->kind != kind || !fits(with, *things[i])) continue;
    kept* const found = things[i].release();
    things.erase(things.begin() + std::ptrdiff_t(i));
    state_->bytes -= found->bytes;
    return found;
  }
  return nullptr;
}

GSHARD_INLINE void lru_cache::put_back(std::unique_ptr<kept> thing) {
  if (thing->bytes > most_bytes) return;
  std::vector<std::unique_ptr<kept>> old;  // destroyed after the lock is released
  const std::lock_guard alone(state_->lock);
  auto& things = state_->things;
  state_->bytes += thing->bytes;
  things.push_back(std::move(thing));
  std::size_t n = 0;
  for (; things.size() - n > most || state_->bytes > most_bytes; ++n) state_->bytes -= things[n]->bytes;
  if (n == 0) return;
  old.assign(std::move_iterator(things.begin()), std::move_iterator(things.begin() + std::ptrdiff_t(n)));
  things.erase(things.begin(), things.begin() + std::ptrdiff_t(n));
}

#endif

}}}  // namespace gshard::v0::detail
