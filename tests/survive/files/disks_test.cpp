// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/disks.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::detail::disk_table;

TEST_CASE("disk_table: members and neighbors; a neighbor is on the next disk") {
  const disk_table t(std::vector<std::size_t>{0, 0, 2, 0, 2, 5});
  CHECK(t.disks() == 3);
  CHECK(t.members(0) == std::vector<std::size_t>{0, 1, 3});
  CHECK(t.members(2) == std::vector<std::size_t>{5});
  CHECK(t.disk_of(4) == 1);
  CHECK(t.member(3) == 2);
  CHECK(t.is_first(2));
  CHECK_FALSE(t.is_first(4));
  std::vector<std::size_t> neighbors;
  for (std::size_t p = 0; p < 6; ++p) neighbors.push_back(t.neighbor(p));
  CHECK(neighbors == std::vector<std::size_t>{2, 4, 5, 2, 5, 0});
  const disk_table one(std::vector<std::size_t>{0, 0});
  CHECK(one.neighbor(1) == 1);
}

TEST_CASE("find_disks: one process has one disk; marks of killed processes are removed, and nothing else") {
  const scratch dir;
  for (const char* name : {".disk-0123456789abcdef-12", ".disk-0123456789abcdef-", ".disk-x", ".disk-0123456789abcdex-12"})
    set_content(dir / name, "");
  set_content(dir / ".disk-0123456789abcdef-13", "a file of the user");
  gs::loopback on(1);
  CHECK(gs::detail::find_disks(on, dir / "").disks() == 1);
  CHECK(dir.entries() == 4);
  CHECK_FALSE(std::filesystem::exists(dir / ".disk-0123456789abcdef-12"));
  set_content(dir / "f", "");
  CHECK(contains(complaint([&] { gs::detail::find_disks(on, dir / "f"); }), "cannot be made as a directory"));
}
