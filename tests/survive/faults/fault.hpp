// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes calls of this process fail, by the preloaded library.

#include "faults.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace faults {

/// Makes calls fail while it exists. `nth` 0: none.
class fault {
 public:
  fault(int nth, int how, bool later)
      : fail_(reinterpret_cast<decltype(&gshard_fail)>(::dlsym(RTLD_DEFAULT, "gshard_fail"))),
        calls_(reinterpret_cast<decltype(&gshard_calls)>(::dlsym(RTLD_DEFAULT, "gshard_calls"))),
        nth_(nth) {
    REQUIRE((fail_ != nullptr && calls_ != nullptr));  // the library is preloaded
    fail_(nth, how, later ? 1 : 0);
  }
  /// Ends it. True if the call was made.
  bool end() {
    const int calls = calls_();
    fail_(0, 0, 0);
    return nth_ > 0 && calls >= nth_;
  }

 private:
  decltype(&gshard_fail) fail_;
  decltype(&gshard_calls) calls_;
  int nth_;
};

/// An errno or short_write, and whether all later calls fail as well.
inline const std::vector<std::pair<int, bool>> kinds{{short_write, false},
                                                     {short_write, true},
                                                     {EINTR, false},
                                                     {EIO, false},
                                                     {EIO, true},
                                                     {ENOSPC, false},
                                                     {ENOSPC, true},
                                                     {EROFS, true},
                                                     {EACCES, false}};
inline bool is_harmless(int how) {
  return how == short_write || how == EINTR;
}

/// The step between failing calls: 1 if the environment has GSHARD_FAULTS=all, as set by tests/run.sh --faults.
inline int stride(int usual) {
  const char* const wanted = std::getenv("GSHARD_FAULTS");
  return wanted != nullptr && std::string_view(wanted) == "all" ? 1 : usual;
}

}  // namespace faults
