// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs loops on several threads by OpenMP, with the same bits on any number.

#include <gshard/base/compiler.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>

// Threads by OpenMP where it is compiled with; else everything runs on the calling thread.
namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {
inline int& threads_here() {
  thread_local int threads = 1;
  return threads;
}
}  // namespace detail

/// How many threads the kernels called by this thread use: 1, but for the lifetime of a use_threads.
inline int threads() { return detail::threads_here(); }

/// How many threads a process uses unless it is told: OpenMP's number if OMP_NUM_THREADS or the program has set it, else the cores that it
/// may use, divided by the processes that share them. 1 without OpenMP.
inline int default_threads([[maybe_unused]] int processes_here) {
#if defined(_OPENMP)
  const int wanted = omp_get_max_threads(), cores = omp_get_num_procs();
  if (wanted != cores || std::getenv("OMP_NUM_THREADS") != nullptr) return std::max(1, wanted);
  return std::max(1, cores / std::max(1, processes_here));
#else
  return 1;
#endif
}

/// For its lifetime the kernels that this thread calls use n threads, and libraries that take their number from OpenMP as well; afterwards
/// as many as before.
class use_threads {
 public:
  explicit use_threads(int n) : before_(threads()) {
    detail::threads_here() = std::max(1, n);
#if defined(_OPENMP)
    libraries_before_ = omp_get_max_threads();
    omp_set_num_threads(threads());
#endif
  }
  use_threads(const use_threads&) = delete;
  use_threads& operator=(const use_threads&) = delete;
  ~use_threads() {
    detail::threads_here() = before_;
#if defined(_OPENMP)
    omp_set_num_threads(libraries_before_);
#endif
  }

 private:
  int before_;
#if defined(_OPENMP)
  int libraries_before_ = 1;
#endif
};

/// Calls f(begin, end) for ranges that together are [0, n), none of less than `grain` if there are several, on up to `threads()` threads
/// at once; on the calling thread alone where one range would be left. What f computes must not depend on where the ranges begin. Throws
/// what f threw for the first range that it threw for. Kernels that f calls use one thread.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F f) {
  if (n <= 0) return;
  const std::int64_t parts = std::min<std::int64_t>(threads(), n / std::max<std::int64_t>(grain, 1));
  if (parts <= 1) return f(std::int64_t(0), n);
#if defined(_OPENMP)
  std::exception_ptr problem;
  std::int64_t where = parts;
#pragma omp parallel num_threads(int(parts))
  for (std::int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
    int& threads = detail::threads_here();
    const int before = threads;  // the calling thread takes part
    threads = 1;
    try {
      f(n * part / parts, n * (part + 1) / parts);
    } catch (...) {
#pragma omp critical(gshard_parallel_for)
      if (part < where) {
        where = part;
        problem = std::current_exception();
      }
    }
    threads = before;
  }
  if (problem) std::rethrow_exception(problem);
#else
  f(std::int64_t(0), n);
#endif
}

/// parallel_for over rows of `cols` elements, or whatever costs as much: a range is worth a thread if it has some ten thousand elements.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t cols, F f) {
  constexpr std::int64_t worth = 1 << 14;
  parallel_for(rows, (worth + std::max<std::int64_t>(cols, 1) - 1) / std::max<std::int64_t>(cols, 1), f);
}

}}}  // namespace gshard::v0::kernel
