// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Prevents unloading under the address sanitizer. Open MPI unloads its components before the leak sanitizer runs, which then cannot
// attribute leaks. Include it in one source of a program that starts MPI.
#if defined(__has_feature)  // clang's way to tell
#if __has_feature(address_sanitizer)
#define GSHARD_TEST_KEEPS_LOADED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GSHARD_TEST_KEEPS_LOADED
#endif
#if defined(GSHARD_TEST_KEEPS_LOADED)
extern "C" int dlclose(void* /*handle*/) noexcept { return 0; }
#endif
