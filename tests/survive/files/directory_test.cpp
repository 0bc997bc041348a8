// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/directory.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;
using gs::detail::directory;

TEST_CASE("directory: what it makes, only the owner may use, whatever the umask") {
  for (const unsigned masked : {0000u, 0022u, 0777u}) {
    const scratch dir;
    const mode_t before = ::umask(mode_t(masked));
    const directory made = directory::made(dir / "a/b");
    made.made_sub("c");
    made.create("f");
    made.replace("g", "text");
    ::umask(before);
    for (const char* name : {"a", "a/b", "a/b/c"}) CHECK(fs::status(dir / name).permissions() == fs::perms(0700));
    for (const char* name : {"a/b/f", "a/b/g"}) CHECK(fs::status(dir / name).permissions() == fs::perms(0600));
    CHECK(made.names() == std::vector<std::string>{"c", "f", "g"});
  }
}

TEST_CASE("directory: replaces files in one step, and leaves no other files") {
  const scratch dir;
  const directory in = directory::at(dir / "");
  in.replace("f", "old");
  fs::permissions(dir / "f", fs::perms(0644));
  in.replace("f", "new");
  CHECK(content_of(dir / "f") == "new");
  CHECK(fs::status(dir / "f").permissions() == fs::perms(0600));
  in.link("latest", "f");
  in.link("latest", "g");
  CHECK(in.target_of("latest") == "g");
  CHECK(in.has_link("latest"));
  fs::create_directory(dir / "d");
  CHECK(contains(complaint([&] { in.replace("d", "x"); }), "cannot be replaced"));
  CHECK(dir.entries() == 3);
}

TEST_CASE("directory: symbolic links are not followed") {
  const scratch dir;
  const directory in = directory::at(dir / "");
  set_content(dir / "target", "mine");
  fs::create_directory(dir / "elsewhere");
  fs::create_symlink(dir / "target", dir / "f");
  fs::create_symlink(dir / "elsewhere", dir / "d");
  CHECK(contains(complaint([&] { in.create("f"); }), "File exists"));
  CHECK(contains(complaint([&] { in.read("f"); }), "is a symbolic link"));
  CHECK(contains(complaint([&] { in.made_sub("d"); }), "cannot be opened as a directory"));
  in.replace("f", "new");
  CHECK(content_of(dir / "target") == "mine");
  CHECK(content_of(dir / "f") == "new");
}

TEST_CASE("directory: failures have the path and the reason") {
  const scratch dir;
  const directory in = directory::at(dir / "");
  CHECK_FALSE(directory::find(dir / "none").has_value());
  CHECK(contains(complaint([&] { directory::at(dir / "none"); }), (dir / "none") + ": cannot be opened as a directory: No such file"));
  set_content(dir / "f", "12345");
  CHECK(contains(complaint([&] { directory::made(dir / "f/x"); }), "cannot be made as a directory"));
  CHECK(contains(complaint([&] { directory::find(dir / "f"); }), "Not a directory"));
  CHECK(contains(complaint([&] { in.text_of("f", 4); }), "has 5 bytes, more than 4"));
  CHECK(in.text_of("f", 5) == "12345");
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(contains(complaint([&] { in.read("pipe"); }), "is not a regular file"));
  CHECK_FALSE(in.remove("none"));
  fs::create_directory(dir / "d");
  set_content(dir / "d/x", "");
  CHECK_FALSE(in.remove_directory("d"));
  CHECK(in.sub("d").remove("x"));
  CHECK(in.remove_directory("d"));
}

TEST_CASE("directory: temporary names") {
  CHECK(directory::is_temporary_of("f", directory::temporary_of("f")));
  CHECK(directory::temporary_of("f") != directory::temporary_of("f"));
  for (const char* other : {"f.tmp", "f.tmp-", "f.tmp-0123456789abcde", "g.tmp-0123456789abcdef", "f.tmp-0123456789abcdeg"})
    CHECK_FALSE(directory::is_temporary_of("f", other));
}

TEST_CASE("directory: a path with a NUL is no other path") {
  using namespace std::string_literals;
  const scratch dir;
  for (const bool make : {false, true}) {
    const std::string path = (dir / "a") + "\0b/c"s;
    CHECK(complaint([&] { make ? directory::made(path) : directory::at(path); }) == (dir / "a") + "\\0b/c: a path has no character NUL");
  }
  CHECK(dir.entries() == 0);
}
