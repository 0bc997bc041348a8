// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/log/open_event_logs.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <string>

namespace gs = gshard;
namespace detail = gs::detail;

TEST_CASE("open event logs: failures go to the logs that are open; without one, nowhere") {
  const scratch folder;
  detail::failure_hooks::tell_abort("before any log");
  {
    const auto log = std::make_shared<detail::event_log_file>(folder / "log", detail::event_log_file::reporter());
    detail::open_event_logs::add(log);
    detail::failure_hooks::tell_not_finite("the loss is NaN", 7);
    detail::failure_hooks::tell_abort("it gave up");
    CHECK(log->head().records == 2);
  }
  detail::failure_hooks::tell_abort("after all logs");
  const std::string text = content_of(folder / "log");
  CHECK(contains(text, R"("event":"not_finite","fields":{"step":7,"text":"the loss is NaN"})"));
  CHECK(contains(text, R"("event":"abort","fields":{"text":"it gave up"})"));
  CHECK(gs::check_event_log(folder / "log").records == 2);
}

TEST_CASE("open event logs: a process ends although its log's thread hangs") {
  const scratch folder;
  std::mutex hangs;
  const auto hang = [&](const std::string&) { const std::scoped_lock lock(hangs); };
  const auto log = std::make_shared<detail::event_log_file>(folder / "log", hang);
  detail::open_event_logs::add(log);
  std::unique_lock held(hangs);
  {
    const small_disk disk(0);
    detail::failure_hooks::tell_abort("it gave up");  // returns while the writer waits
  }
  held.unlock();
  CHECK(log->head().records == 1);
}
