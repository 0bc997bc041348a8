// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <malloc.h>

// Counts the allocations of a program and the bytes that it holds. It replaces operator new, so only one file of a program includes it.
namespace allocations {

inline std::atomic<bool> counts{false};  // false: nothing is counted, because all other tests of the program allocate through this as well
inline std::atomic<std::int64_t> made{0};
inline std::atomic<std::int64_t> held{0}, most_held{0};  // bytes in addition to those held before

template <class F>
void count_during(F f) {
  made = held = most_held = 0;
  counts = true;
  f();
  counts = false;
}

/// The number of allocations while f runs, by any thread.
template <class F>
std::int64_t during(F f) {
  count_during(f);
  return made;
}

/// The largest number of bytes held at once while f runs, by any thread, in addition to those held before.
template <class F>
std::int64_t bytes_during(F f) {
  count_during(f);
  return most_held;
}

inline void* take(std::size_t bytes, std::size_t alignment) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const p = std::aligned_alloc(alignment, rounded ? rounded : alignment);
  if (!p) throw std::bad_alloc();
  if (counts) {
    ++made;
    const std::int64_t now = held += std::int64_t(malloc_usable_size(p));
    for (std::int64_t most = most_held; most < now && !most_held.compare_exchange_weak(most, now);) continue;
  }
  return p;
}
inline void give_back(void* p) {
  if (counts) held -= std::int64_t(malloc_usable_size(p));
  std::free(p);
}

}  // namespace allocations

// The other overloads call these. g++ warns if it inlines only one function of a pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocations::take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocations::take(bytes, std::size_t(alignment));
}
// Sanitizers have their own overloads of those that do not throw.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept try {
  return allocations::take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept try {
  return allocations::take(bytes, std::size_t(alignment));
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { allocations::give_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { allocations::give_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { allocations::give_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { allocations::give_back(p); }
