// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/directory_lock.hpp>

#include "../../io/scratch.hpp"
#include "../other_process.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace gs = gshard;
namespace fs = std::filesystem;
using gs::detail::directory, gs::detail::directory_lock;

namespace {

/// The reason why this process, or another one, does not get the lock. Empty if it does.
std::string refused_here(const std::string& path, double seconds = 0) {
  directory_lock::refusal why;
  const auto lock = directory_lock::take(directory::at(path), seconds, why);
  CHECK(lock.has_value() == why.text.empty());
  return (why.held ? "held: " : "") + why.text;
}
std::string refused_there(const std::string& path) {
  return in_child([&] {
    directory_lock::refusal why;
    const auto lock = directory_lock::take(directory::at(path), 0, why);
    return std::string(lock ? "" : why.held ? "held: " : "none: ") + why.text;
  });
}
std::string by(const std::string& path, pid_t process) {
  return "held: " + path + ": another run uses this directory: process " + std::to_string(process) + " on host " + gs::detail::host_name();
}

}  // namespace

TEST_CASE("directory_lock: another process does not get it, and is told who has it; objects of one process share it") {
  const scratch dir;
  const std::string path = dir / "run";
  directory::made(path);
  CHECK(refused_there(path) == "");
  directory_lock::refusal why;
  std::optional<directory_lock> first = directory_lock::take(directory::at(path), 0, why);
  REQUIRE(first.has_value());
  CHECK(refused_there(path) == by(path, ::getpid()));
  {
    const auto second = directory_lock::take(directory::at(path), 0, why);
    REQUIRE(second.has_value());
    CHECK(refused_there(path) == by(path, ::getpid()));
  }
  CHECK(refused_there(path) == by(path, ::getpid()));  // neither the second one's end nor failed attempts release the first one's lock
  auto second = directory_lock::take(directory::at(path), 0, why);
  first.reset();
  CHECK(refused_there(path) == by(path, ::getpid()));
  first = std::move(second);
  CHECK(refused_there(path) == by(path, ::getpid()));
  first.reset();
  CHECK(refused_there(path) == "");
}

TEST_CASE("directory_lock: a killed process leaves none, also if its children live") {
  const scratch dir;
  for (const bool child_lives : {false, true}) {
    other_run other(dir / "run", child_lives);
    REQUIRE(other.locked());
    CHECK(refused_here(dir / "run", 0.1) == by(dir / "run", other.pid()));
    other.kill();
    CHECK(refused_here(dir / "run") == "");
  }
}

TEST_CASE("directory_lock: waits for a process that is ending") {
  const scratch dir;
  const other_run other(dir / "run", false, 0.3);
  REQUIRE(other.locked());
  CHECK(refused_here(dir / "run", 60) == "");
}

TEST_CASE("directory_lock: a child process that makes one of its own does not share that of its parent") {
  const scratch dir;
  directory::made(dir / "run");
  directory_lock::refusal why;
  auto lock = directory_lock::take(directory::at(dir / "run"), 0, why);
  CHECK(refused_there(dir / "run") == by(dir / "run", ::getpid()));
  CHECK(in_child([&] {
          lock.reset();  // the parent's lock stays
          directory_lock::refusal reason;
          return std::string(directory_lock::take(directory::at(dir / "run"), 0, reason) ? "" : "held");
        }) == "held");
  lock.reset();
  CHECK(refused_there(dir / "run") == "");
}

TEST_CASE("directory_lock: the file is the owner's alone; other files of its name are neither followed nor changed") {
  const scratch dir;
  const std::string lock = dir / ".lock";
  const mode_t before = ::umask(0);
  CHECK(refused_here(dir / "") == "");
  CHECK(fs::status(lock).permissions() == fs::perms(0600));
  ::umask(0777);
  fs::remove(lock);
  CHECK(refused_here(dir / "") == "");
  ::umask(before);
  CHECK(fs::status(lock).permissions() == fs::perms(0600));
  CHECK(content_of(lock) == "gshard lock: process " + std::to_string(::getpid()) + " on host " + gs::detail::host_name() + "\n");

  fs::remove(lock);
  set_content(dir / "target", "mine");
  fs::create_symlink(dir / "target", lock);
  CHECK(refused_here(dir / "") == (dir / "") + "/.lock: is a symbolic link: Too many levels of symbolic links");
  fs::remove(lock);
  fs::create_hard_link(dir / "target", lock);
  CHECK(refused_here(dir / "") == (dir / "") + "/.lock: is not a regular file of one name");
  fs::remove(lock);
  set_content(lock, "mine");
  CHECK(refused_here(dir / "") == (dir / "") + "/.lock: is not the lock of a run");
  CHECK(content_of(lock) == "mine");
  CHECK(content_of(dir / "target") == "mine");
  fs::remove(lock);
  fs::create_directory(lock);
  CHECK(refused_here(dir / "") == (dir / "") + "/.lock: cannot be opened: Is a directory");
}
