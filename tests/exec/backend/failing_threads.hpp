// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <pthread.h>

#include <cstddef>

/// While it exists, this process cannot create threads: each would need a stack of a pebibyte.
class failing_threads {
 public:
  failing_threads() {
#ifdef __GLIBC__
    pthread_attr_init(&before_);
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    fail_ = pthread_attr_setstacksize(&huge, std::size_t(1) << 50) == 0 && pthread_setattr_default_np(&huge) == 0;
    pthread_attr_destroy(&huge);
#endif
  }
  failing_threads(const failing_threads&) = delete;
  failing_threads& operator=(const failing_threads&) = delete;
  ~failing_threads() {
#ifdef __GLIBC__
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
#endif
  }
  /// False if the test cannot make them fail.
  bool fail() const { return fail_; }

 private:
  bool fail_ = false;
  pthread_attr_t before_;
};
