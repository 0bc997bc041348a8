// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/log_file.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace gs = gshard;
namespace detail = gs::detail;

#ifdef __linux__
namespace {
std::mutex synced_mutex;
std::set<std::pair<dev_t, ino_t>> synced;  // files that this process has flushed to the disk
}  // namespace

// Replaces the system's function for all headers in this program.
extern "C" int fsync(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) == 0) {
    const std::scoped_lock lock(synced_mutex);
    synced.emplace(status.st_dev, status.st_ino);
  }
  return int(::syscall(SYS_fsync, fd));
}

TEST_CASE("log file: the name of a file that was made is on the disk, also if an earlier process was killed before it saw to that") {
  const scratch folder;
  struct stat of_folder {};
  REQUIRE(::stat((folder / "").c_str(), &of_folder) == 0);
  const auto is_synced = [&] {
    const std::scoped_lock lock(synced_mutex);
    return synced.erase({of_folder.st_dev, of_folder.st_ino}) == 1;
  };
  is_synced();
  { const detail::descriptor first = detail::open_to_append(folder / "log"); }
  CHECK(is_synced());
  { const detail::descriptor again = detail::open_to_append(folder / "log"); }
  CHECK(is_synced());
}
#endif

TEST_CASE("log file: a file of another user is refused, whatever its permissions") {
  if (::geteuid() != 0) return;  // only root can make one
  const scratch folder;
  set_content(folder / "log", "");
  REQUIRE(::chmod((folder / "log").c_str(), 0666) == 0);
  REQUIRE(::chown((folder / "log").c_str(), 65534, 65534) == 0);
  CHECK(complaint([&] { detail::open_to_append(folder / "log"); }) == folder / "log" + ": belongs to another user, who could change it");
  CHECK(content_of(folder / "log").empty());
}

TEST_CASE("log file: permissions are set, or the failure is an error") {
  const scratch folder;
  const detail::descriptor file = detail::open_to_append(folder / "log");
  struct stat status {};
  for (const mode_t mode : {mode_t(0644), mode_t(0600)}) {
    detail::set_mode(file, folder / "log", mode);
    REQUIRE(::fstat(file.get(), &status) == 0);
    CHECK((status.st_mode & 0777u) == mode);
  }
  CHECK(contains(complaint([&] { detail::set_mode(detail::descriptor(-1), "log", 0600); }), "log: its permissions cannot be set: "));
}

TEST_CASE("log file: names, times, and texts of which the disk takes a part") {
  CHECK(detail::file_of_process("run", "events", 3, ".jsonl") == "run/events-00003.jsonl");
  CHECK(detail::file_of_process("run/", "events", 123456, ".prom") == "run/events-123456.prom");
  CHECK(detail::file_of_process("", "events", 0, "") == "events-00000");
  const std::chrono::system_clock::time_point when(std::chrono::microseconds(1764000000250001));
  CHECK(detail::utc_text(when) == "2025-11-24T16:00:00.250001Z");
  CHECK(std::abs(detail::unix_seconds() - double(std::time(nullptr))) < 60);
  CHECK(!detail::host_name().empty());
  const scratch folder;
  const detail::descriptor file = detail::open_to_append(folder / "log");
  std::string text = "0123456789";
  {
    const small_disk disk(4);
    CHECK(contains(detail::append_text(file, "log", text), "log: cannot be written: "));
  }
  CHECK(text == "456789");
  CHECK(detail::append_text(file, "log", text).empty());
  CHECK(content_of(folder / "log") == "0123456789");
}
