// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/shared_file.hpp>

#include <gshard/exec/backend/loopback.hpp>

#include "../complaint.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {
std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string content_text(const std::string& path) { return gs::detail::content_text(gs::input_file(path)); }
}  // namespace

TEST_CASE("shared_file: takes its name by commit, after what the leader adds; not if there is a problem") {
  const scratch dir;
  gs::loopback on(1);
  set_content(dir / "f", "old");
  const auto save = [&](const std::string& problem) {
    gs::detail::shared_file file(on, dir / "f", 60);
    CHECK(content_of(file.temporary()).starts_with("unfinished "));
    CHECK(content_of(file.temporary()).size() == 60);
    file.write(50, bytes("0123456789"));
    file.commit(problem, [&] { file.write(0, bytes(std::string(50, 'a'))); });
  };
  CHECK(complaint([&] { save("no"); }) == "no");
  CHECK(content_of(dir / "f") == "old");
  CHECK(dir.entries() == 1);
  save("");
  CHECK(content_of(dir / "f") == std::string(50, 'a') + "0123456789");
  CHECK(dir.entries() == 1);
}

TEST_CASE("content_text: differs where size or content do, and not between copies") {
  const scratch dir;
  for (const std::size_t size : {0u, 1u, 15u, 4096u, 4097u, 65537u, 1000000u}) {
    const std::string content(size, 'x');
    set_content(dir / "f", content);
    set_content(dir / "copy", content);
    CHECK(content_text(dir / "f") == content_text(dir / "copy"));
    set_content(dir / "copy", content + "x");
    CHECK(content_text(dir / "f") != content_text(dir / "copy"));
    for (const std::size_t at : {std::size_t(0), size - 1}) {
      if (at >= size) continue;
      std::string other = content;
      other[at] = 'y';
      set_content(dir / "copy", other);
      CHECK(content_text(dir / "f") != content_text(dir / "copy"));
    }
    set_content(dir / "copy", std::string(size, 'y'));
    CHECK((size == 0 || content_text(dir / "f") != content_text(dir / "copy")));
  }
}

TEST_CASE("open_for_all: the error of the check is the error") {
  const scratch dir;
  gs::loopback on(1);
  set_content(dir / "f", "content");
  CHECK(gs::detail::open_for_all(on, "a test", dir / "f", [](const gs::input_file&) {}).size() == 7);
  CHECK(complaint([&] { gs::detail::open_for_all(on, "a test", dir / "f", [](const gs::input_file&) { throw gs::error("no"); }); }) ==
        "no");
  CHECK(contains(complaint([&] { gs::detail::open_for_all(on, "a test", dir / "g", [](const gs::input_file&) {}); }), "No such file"));
}
