// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Threads of the kernels, by OpenMP. Without OpenMP, everything runs on the calling thread.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/compiler.hpp>
#include <gshard/exec/kernel/interludes.hpp>

#if GSHARD_HAS_BODIES && defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {
int& threads_here();
#if GSHARD_HAS_BODIES
GSHARD_INLINE int& threads_here() {
  thread_local int threads = 1;
  return threads;
}
#endif
}  // namespace detail

/// The number of threads of kernels that this thread calls: 1, except during the lifetime of a use_threads.
inline int threads() { return detail::threads_here(); }

/// The default number of threads of a process. OpenMP's number if OMP_NUM_THREADS or the program has set it. Otherwise the available cores,
/// divided by the processes that share them. 1 without OpenMP.
int default_threads(int processes_here);

/// During its lifetime, kernels that this thread calls use n threads, as do libraries that take their number from OpenMP. The destructor
/// restores both numbers.
class use_threads {
 public:
  explicit use_threads(int n);
  use_threads(const use_threads&) = delete;
  use_threads& operator=(const use_threads&) = delete;
  ~use_threads();

 private:
  int before_, libraries_before_;
};

/// Calls f(begin, end) for ranges that together are [0, n), on up to `threads()` threads. Several ranges have at least `grain` elements
/// each; a single range runs on the calling thread. The result of f must not depend on the bounds of the ranges. Throws the exception of
/// the first range that failed. Kernels that f calls use one thread. A thread with an interlude cuts its range into pieces of at least four
/// grains.
void parallel_for(std::int64_t n, std::int64_t grain, range_function f);

/// parallel_for over rows of `cols` elements, or of an equal cost. A thread gets about 2^14 elements or more.
inline void parallel_rows(std::int64_t rows, std::int64_t cols, range_function f) {
  constexpr std::int64_t worth = 1 << 14;
  parallel_for(rows, (worth + std::max<std::int64_t>(cols, 1) - 1) / std::max<std::int64_t>(cols, 1), f);
}

#if GSHARD_HAS_BODIES
GSHARD_INLINE int default_threads([[maybe_unused]] int processes_here) {
#if defined(_OPENMP)
  const int wanted = omp_get_max_threads(), cores = omp_get_num_procs();
  if (wanted != cores || std::getenv("OMP_NUM_THREADS") != nullptr) return std::max(1, wanted);
  return std::max(1, cores / std::max(1, processes_here));
#else
  return 1;
#endif
}

GSHARD_INLINE use_threads::use_threads(int n) : before_(threads()), libraries_before_(1) {
  detail::threads_here() = std::max(1, n);
#if defined(_OPENMP)
  libraries_before_ = omp_get_max_threads();
  omp_set_num_threads(threads());
#endif
}

GSHARD_INLINE use_threads::~use_threads() {
  detail::threads_here() = before_;
#if defined(_OPENMP)
  omp_set_num_threads(libraries_before_);
#endif
}

GSHARD_INLINE void parallel_for(std::int64_t n, std::int64_t grain, range_function f) {
  if (n <= 0) return;
  const std::int64_t parts = std::min<std::int64_t>(threads(), n / std::max<std::int64_t>(grain, 1));
  const std::int64_t piece = 4 * std::max<std::int64_t>(grain, 1);
  if (parts <= 1) return in_pieces(0, n, piece, f);
#if defined(_OPENMP)
  std::exception_ptr problem;
  std::int64_t where = parts;
#pragma omp parallel num_threads(int(parts))
  for (std::int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
    int& threads = detail::threads_here();
    const int before = threads;  // the calling thread takes part
    threads = 1;
    try {
      in_pieces(n * part / parts, n * (part + 1) / parts, piece, f);
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
#endif

}}}  // namespace gshard::v0::kernel
