// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Included first in all sources of a copy with faults. GSHARD_MUTATION is the number of the active fault; without it none is active.
// GSHARD_MUTATIONS_REACHED is a file to which the numbers of the executed faults are appended. @see tests/mutations.sh

#include <cstdlib>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gshard_mutations {

inline constexpr int most = 1000;  // the largest number of faults
inline bool seen[most] = {};       // threads may race, but write the same value
inline int active = 0;
inline const char* reached = nullptr;

// Runs before the constructors of other objects.
[[gnu::constructor(101)]] inline void read_environment() {
  if (const char* const number = std::getenv("GSHARD_MUTATION")) active = std::atoi(number);
  reached = std::getenv("GSHARD_MUTATIONS_REACHED");
}
// Uses system calls directly, because tests replace functions of the C library.
inline void note(int n) {
  seen[n] = true;
  if (reached == nullptr) return;
  const long file = ::syscall(SYS_openat, AT_FDCWD, reached, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  char text[5] = {char('0' + n / 1000), char('0' + n / 100 % 10), char('0' + n / 10 % 10), char('0' + n % 10), '\n'};
  (void)::syscall(SYS_write, file, text, sizeof text);
  ::syscall(SYS_close, file);
}
inline bool is_active(int n) {
  if (!seen[n]) note(n);
  return active == n;
}

}  // namespace gshard_mutations

/// True if fault n is active. In constant evaluation no fault is active.
constexpr bool gshard_mutation(int n) { return !__builtin_is_constant_evaluated() && gshard_mutations::is_active(n); }
