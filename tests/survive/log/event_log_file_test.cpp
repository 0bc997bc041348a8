// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/log/event_log_file.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <string>

namespace gs = gshard;

TEST_CASE("event log file: what it refuses stays as it is, with its permissions") {
  const scratch folder;
  const std::string path = folder / "notes";
  set_content(path, "my notes\n");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(contains(complaint([&] { gs::detail::event_log_file log(path, {}); }), "A log with a broken chain is not continued"));
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777u) == 0644);
  CHECK(content_of(path) == "my notes\n");
}

TEST_CASE("event log file: records follow each other") {
  const scratch folder;
  gs::detail::event_log_file log(folder / "log", {});
  log.write("start", {{"n", 1}});
  log.write("stop", nlohmann::ordered_json::object());
  CHECK(log.path() == folder / "log");
  CHECK(log.head().records == 2);
  CHECK(gs::check_event_log(folder / "log").records == 2);
}
