// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/file.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;

namespace {
std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}
}  // namespace

TEST_CASE("atomic_file: takes its name by commit, not before") {
  const scratch dir;
  set_content(dir / "f", "old");
  {
    gs::atomic_file file(dir / "f");
    file.append(bytes("new content"));
    file.patch(4, bytes("CON"));
    CHECK(file.size() == 11);
    CHECK(content_of(dir / "f") == "old");
    file.commit();
    CHECK(content_of(dir / "f") == "new CONtent");
  }
  CHECK(content_of(dir / "f") == "new CONtent");
  CHECK(dir.entries() == 1);
}

TEST_CASE("atomic_file: grows and shrinks before it takes its name") {
  const scratch dir;
  gs::atomic_file file(dir / "f");
  CHECK(file.temporary().starts_with(dir / "f.tmp-"));
  file.append(bytes("12345"));
  file.resize(7);
  file.append(bytes("8"));
  file.sync();
  CHECK(content_of(file.temporary()) == std::string("12345\0\0" "8", 8));
  file.resize(3);
  file.commit();
  CHECK(content_of(dir / "f") == "123");
}

TEST_CASE("atomic_file: without commit nothing stays of it") {
  const scratch dir;
  set_content(dir / "f", "old");
  gs::atomic_file(dir / "f").append(bytes("new"));
  gs::atomic_file(dir / "g").append(bytes("new"));
  CHECK(content_of(dir / "f") == "old");
  CHECK(dir.entries() == 1);
}

TEST_CASE("atomic_file: only the owner may read it, whatever the umask and whoever could read the old file") {
  for (const unsigned masked : {0000u, 0022u, 0027u, 0077u, 0777u})
    for (const unsigned old : {0u, 0600u, 0644u}) {
      const scratch dir;
      if (old != 0) {
        set_content(dir / "f", "old");
        fs::permissions(dir / "f", fs::perms(old));
      }
      const mode_t before = ::umask(mode_t(masked));
      gs::atomic_file file(dir / "f"), readable(dir / "g", 0644);
      ::umask(before);
      file.commit();
      readable.commit();
      CHECK(fs::status(dir / "f").permissions() == fs::perms(0600u));
      CHECK(fs::status(dir / "g").permissions() == fs::perms(0644u));
    }
}

TEST_CASE("atomic_file: removes what a killed process left, and nothing else") {
  const scratch dir;
  const std::vector<std::string> others{"f.tmp",
                                        "f.tmp-",
                                        "f.tmp-0123456789abcde",
                                        "f.tmp-0123456789abcdeg",
                                        "f.tmp-0123456789abcdef0",
                                        "g.tmp-0123456789abcdef",
                                        "f.tmp-0123456789ABCDEF"};
  for (const std::string& name : others) set_content(dir / name, "a file of the user");
  set_content(dir / "f.tmp-0123456789abcdef", "left by a killed process");
  fs::create_symlink(dir / "g.tmp-0123456789abcdef", dir / "f.tmp-00000000000000ff");
  gs::atomic_file file(dir / "f");
  file.append(bytes("x"));
  file.commit();
  CHECK(content_of(dir / "f") == "x");
  CHECK_FALSE(fs::exists(dir / "f.tmp-0123456789abcdef"));
  CHECK(fs::is_symlink(dir / "f.tmp-00000000000000ff"));
  for (const std::string& name : others) CHECK(content_of(dir / name) == "a file of the user");
  CHECK(dir.entries() == others.size() + 2);
}

TEST_CASE("atomic_file: also without a directory in its path") {
  const scratch dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir / "");
  set_content(dir / "f.tmp-0123456789abcdef", "left by a killed process");
  {
    gs::atomic_file file("f");
    file.append(bytes("x"));
    file.commit();
  }
  fs::current_path(before);
  CHECK(content_of(dir / "f") == "x");
  CHECK(dir.entries() == 1);
}

TEST_CASE("atomic_file: symbolic links are replaced, not followed") {
  const scratch dir;
  set_content(dir / "target", "mine");
  fs::create_symlink(dir / "target", dir / "f");
  gs::atomic_file file(dir / "f");
  file.append(bytes("new"));
  file.commit();
  CHECK(content_of(dir / "target") == "mine");
  CHECK(content_of(dir / "f") == "new");
  CHECK_FALSE(fs::is_symlink(dir / "f"));
  CHECK(dir.entries() == 2);
}

TEST_CASE("atomic_file: what cannot be made or replaced is refused at once, by name") {
  const scratch dir;
  fs::create_directory(dir / "d");
  set_content(dir / "file", "");
  CHECK(complaint([&] { gs::atomic_file(dir / "d"); }) ==
        (dir / "d") + ": cannot be replaced: it is not a regular file");
  CHECK(complaint([] { gs::atomic_file("/dev/null"); }) ==
        "/dev/null: cannot be replaced: it is not a regular file");
  CHECK(complaint([&] { gs::atomic_file(dir / "none/f"); }) ==
        (dir / "none/f") + ": no temporary file can be made in its directory: No such file or directory");
  CHECK(contains(complaint([&] { gs::atomic_file(dir / "file/f"); }), "Not a directory"));
  CHECK(contains(complaint([&] { gs::atomic_file(dir / std::string(300, 'f')); }), "name too long"));
  CHECK(dir.entries() == 2);
}

TEST_CASE("atomic_file: of two writers the later one wins, the other is told") {
  const scratch dir;
  set_content(dir / "f", "old");
  gs::atomic_file first(dir / "f");
  first.append(bytes("first"));
  std::optional<gs::atomic_file> second(std::in_place, dir / "f");
  second->append(bytes("second"));
  CHECK(contains(complaint([&] { first.commit(); }), "another process is writing it too"));
  CHECK(content_of(dir / "f") == "old");
  second->commit();
  CHECK(content_of(dir / "f") == "second");
  second.reset();
  CHECK(dir.entries() == 1);
}

TEST_CASE("atomic_file: a full disk is an error with file, place and reason") {
  const scratch dir;
  set_content(dir / "f", "old");
  std::string said;
  {
    gs::atomic_file file(dir / "f");
    const small_disk disk(10);
    said = complaint([&] {
      file.append(bytes("1234567"));
      file.append(bytes("8901234"));
    });
  }
  CHECK(said == (dir / "f") + ": writing at byte 10 failed: File too large");
  CHECK(content_of(dir / "f") == "old");
  CHECK(dir.entries() == 1);

  if (const gs::detail::descriptor full(gs::detail::open_file("/dev/full", O_WRONLY)); full.get() >= 0)
    CHECK(complaint([&] { gs::detail::write_at(full, "f", 3, bytes("x")); }) ==
          "f: writing at byte 3 failed: No space left on device");
}

TEST_CASE("input_file: reads anywhere, and nothing but regular files") {
  const scratch dir;
  set_content(dir / "f", "0123456789");
  const gs::input_file file(dir / "f");
  CHECK(file.size() == 10);
  std::string text(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(text)));
  CHECK(text == "3456");
  CHECK(
      contains(complaint([&] { file.read(8, std::as_writable_bytes(std::span(text))); }), "ends at byte 10"));
  CHECK(complaint([&] { gs::input_file(dir / "g"); }) ==
        (dir / "g") + ": cannot be opened: No such file or directory");
  CHECK(contains(complaint([&] { gs::input_file(dir / ""); }), "is not a regular file"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(contains(complaint([&] { gs::input_file(dir / "pipe"); }), "is not a regular file"));
}

TEST_CASE("a path with a NUL is no other path, and is not cut in the error") {
  using namespace std::string_literals;
  const scratch dir;
  set_content(dir / "f", "old");
  const std::string path = (dir / "f") + "\0g"s, refused = (dir / "f") + "\\0g: a path has no character NUL";
  CHECK(complaint([&] { gs::input_file file(path); }) == refused);
  CHECK(contains(complaint([&] { gs::atomic_file file(path); }), "f\\0g"));
  CHECK(content_of(dir / "f") == "old");
  CHECK(dir.entries() == 1);
}
