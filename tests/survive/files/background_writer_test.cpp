// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/background_writer.hpp>

#include <gshard/exec/process/error.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

namespace gs = gshard;

TEST_CASE("background_writer: runs jobs one after another, tells their errors, and ends with the last one") {
  std::atomic<int> done = 0;
  std::atomic<bool> go = false;
  {
    gs::detail::background_writer writer;
    CHECK_FALSE(writer.busy());
    CHECK(writer.wait() == "");
    writer.start([&] {
      while (!go) std::this_thread::yield();
      ++done;
    });
    CHECK(writer.busy());
    go = true;
    CHECK(writer.wait() == "");
    CHECK_FALSE(writer.busy());
    writer.start([] { throw gs::error("disk full"); });
    CHECK(writer.wait() == "disk full");
    CHECK(writer.wait() == "disk full");
    writer.start([] { throw 1; });
    CHECK(writer.wait() == "an exception without a text");
    for (int i = 0; i < 100; ++i) writer.start([&, i] { CHECK(done++ == i + 1); });
    CHECK(writer.wait() == "");
    writer.start([&] { ++done; });
  }
  CHECK(done == 102);
}

TEST_CASE("background_writer: its thread takes no signals of the application") {
  gs::detail::background_writer writer;
  bool blocked = false;
  writer.start([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
  });
  CHECK(writer.wait() == "");
  CHECK(blocked);
}
