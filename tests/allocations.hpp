// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Counts what a program allocates: replaces operator new, so one file of a program includes this.
namespace allocations {

inline std::atomic<std::int64_t> made{0};

/// Allocations while f runs, by any thread.
template <class F>
std::int64_t during(F f) {
  const std::int64_t before = made;
  f();
  return made - before;
}

inline void* take(std::size_t bytes, std::size_t alignment) {
  ++made;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* const p = std::aligned_alloc(alignment, rounded ? rounded : alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace allocations

// The other forms call these. g++ warns where it inlines but one of a pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocations::take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocations::take(bytes, std::size_t(alignment)); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
