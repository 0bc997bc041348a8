// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Interludes: short calls that a thread makes between pieces of its kernels, for example to advance communication.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace kernel {

inline constexpr std::chrono::microseconds interlude_period{150};

namespace detail {
struct interlude {
  void (*call)(void*) noexcept = nullptr;
  void* with = nullptr;
  std::chrono::steady_clock::time_point next{};
};
interlude& interlude_here();
#if GSHARD_HAS_BODIES
GSHARD_INLINE interlude& interlude_here() {
  thread_local interlude here;
  return here;
}
#endif
}  // namespace detail

/// During its lifetime, kernels that this thread calls also call f() between pieces of their work, at most every `interlude_period`. f must
/// not throw, nor use the operands of the kernels. Other threads of a kernel do not call it. The destructor restores the previous
/// interlude.
template <class F>
class use_interludes {
 public:
  explicit use_interludes(F& f) : before_(detail::interlude_here()) {
    detail::interlude_here() = {[](void* it) noexcept { (*static_cast<F*>(it))(); }, &f, {}};
  }
  use_interludes(const use_interludes&) = delete;
  use_interludes& operator=(const use_interludes&) = delete;
  ~use_interludes() { detail::interlude_here() = before_; }

 private:
  detail::interlude before_;
};

/// True if this thread has an interlude.
inline bool has_interlude() { return detail::interlude_here().call != nullptr; }

/// Calls the interlude of this thread, if it has one and `interlude_period` has passed. During the call, the thread has none.
inline void interlude() {
  detail::interlude& here = detail::interlude_here();
  if (here.call == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < here.next) return;
  const detail::interlude mine = std::exchange(here, {});
  mine.call(mine.with);
  here = {mine.call, mine.with, std::chrono::steady_clock::now() + interlude_period};
}

/// A reference to a function of a range, as the type of a parameter. The loops that call it are compiled once for all functions.
class range_function {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, range_function>)
  range_function(F&& f) : function_(const_cast<void*>(static_cast<const void*>(&f))), call_(&call<std::remove_reference_t<F>>) {}

  void operator()(std::int64_t begin, std::int64_t end) const { call_(function_, begin, end); }

 private:
  template <class F>
  static void call(void* function, std::int64_t begin, std::int64_t end) {
    (*static_cast<F*>(function))(begin, end);
  }

  void* function_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

/// Calls f(begin, end) for ranges that together are [first, last), in order: one range, or pieces with interludes in between. A piece has
/// at least `least` elements, or it is the last.
inline void in_pieces(std::int64_t first, std::int64_t last, std::int64_t least, range_function f) {
  if (!has_interlude()) return f(first, last);
  for (const std::int64_t step = std::max<std::int64_t>(least, 1); first < last; first += step) {
    f(first, std::min(first + step, last));
    interlude();
  }
}

}}}  // namespace gshard::v0::kernel
