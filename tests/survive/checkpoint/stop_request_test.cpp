// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/stop_request.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <csignal>

namespace gs = gshard;

namespace {
volatile std::sig_atomic_t others = 0;
void other(int) {
  others = others + 1;
}
}  // namespace

TEST_CASE("stop_request: remembers signals while it lives, then the old handlers are back") {
  struct sigaction mine {
  }, before{};
  mine.sa_handler = other;
  REQUIRE(::sigaction(SIGUSR1, &mine, &before) == 0);
  CHECK_FALSE(gs::stop_request::exists());
  gs::stop_request::request();
  CHECK_FALSE(gs::stop_request::requested());
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const gs::stop_request stop;
    CHECK(gs::stop_request::exists());
    CHECK_FALSE(gs::stop_request::requested());
    std::raise(signal);
    CHECK(gs::stop_request::requested());
  }
  CHECK_FALSE(gs::stop_request::requested());
  CHECK(others == 0);
  std::raise(SIGUSR1);
  CHECK(others == 1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("stop_request: one at a time, and only signals that can be handled") {
  {
    const gs::stop_request stop({SIGUSR2});
    CHECK(complaint([] { gs::stop_request(); }) == "stop_request: there is one already");
    CHECK(gs::stop_request::exists());
    gs::stop_request::request();
    CHECK(gs::stop_request::requested());
  }
  CHECK(complaint([] { gs::stop_request({SIGUSR2, SIGKILL}); }) == "stop_request: signal 9 cannot be handled: Invalid argument");
  CHECK_FALSE(gs::stop_request::exists());
  struct sigaction now {};
  ::sigaction(SIGUSR2, nullptr, &now);
  CHECK((now.sa_handler == SIG_DFL));
}
