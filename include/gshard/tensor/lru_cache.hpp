// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A cache of the most recently used objects, limited in number and in bytes.

#include <gshard/base/compiled.hpp>
#include <gshard/base/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// An object that is expensive to make and may be needed again. `kind` identifies its type by a unique address.
struct kept {
  const void* kind;
  std::int64_t bytes;

  kept(const void* its_kind, std::int64_t its_bytes) : kind(its_kind), bytes(its_bytes) {}
  virtual ~kept() = default;
};

/// The cache itself. An object that was taken belongs to its user alone until it is put back. Threads may take and put back at any time.
class lru_cache {
 public:
  static constexpr std::size_t most = 32;
  static constexpr std::int64_t most_bytes = std::int64_t(1) << 24;

  lru_cache() { things_.reserve(most + 1); }

  /// The most recently used object of type T for which fits(object) is true; null if there is none.
  template <class T, class F>
  std::unique_ptr<T> take(F fits) {
    const std::lock_guard alone(lock_);
    for (std::size_t i = things_.size(); i-- > 0;) {
      if (things_[i]->kind != T::its_kind() || !fits(static_cast<const T&>(*things_[i]))) continue;
      auto* const found = static_cast<T*>(things_[i].release());
      things_.erase(things_.begin() + std::ptrdiff_t(i));
      bytes_ -= found->bytes;
      return std::unique_ptr<T>(found);
    }
    return nullptr;
  }

  void put_back(std::unique_ptr<kept> thing);

  std::size_t size() const {
    const std::lock_guard alone(lock_);
    return things_.size();
  }

 private:
  mutable std::mutex lock_;
  std::vector<std::unique_ptr<kept>> things_;  // the most recently used one last
  std::int64_t bytes_ = 0;
};

#if GSHARD_HAS_BODIES
GSHARD_INLINE void lru_cache::put_back(std::unique_ptr<kept> thing) {
  if (thing->bytes > most_bytes) return;
  std::vector<std::unique_ptr<kept>> old;  // destroyed after the lock is released
  const std::lock_guard alone(lock_);
  bytes_ += thing->bytes;
  things_.push_back(std::move(thing));
  std::size_t n = 0;
  for (; things_.size() - n > most || bytes_ > most_bytes; ++n) bytes_ -= things_[n]->bytes;
  if (n == 0) return;
  old.assign(std::move_iterator(things_.begin()), std::move_iterator(things_.begin() + std::ptrdiff_t(n)));
  things_.erase(things_.begin(), things_.begin() + std::ptrdiff_t(n));
}
#endif

}}}  // namespace gshard::v0::detail
