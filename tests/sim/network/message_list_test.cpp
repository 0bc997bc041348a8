// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/message_list.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gs = gshard;

namespace {

std::vector<int> after(const gs::message_list& l, std::size_t i) {
  std::vector<int> list(l.after(i).begin(), l.after(i).end());
  std::ranges::sort(list);
  return list;
}

gs::message_list fan() {  // 0 sends to 1 and 2, which send to 3
  gs::message_list l;
  const int a = l.add({.from = 0, .to = 1, .bytes = 1}), b = l.add({.from = 0, .to = 2, .bytes = 2});
  l.add({.from = 1, .to = 3, .bytes = 3}, {a});
  l.add({.from = 2, .to = 3, .bytes = 4, .up = false}, {b});
  return l;
}

}  // namespace

TEST_CASE("backwards, what waited is waited for") {
  const gs::message_list back = fan().reversed();
  REQUIRE(back.size() == 4);
  CHECK((back[0].from == 3 && back[0].to == 2 && back[0].bytes == 4 && back[0].up));
  CHECK((back[3].from == 1 && back[3].to == 0 && !back[3].up));
  CHECK(after(back, 0).empty());
  CHECK(after(back, 2) == std::vector{0});
  CHECK(after(back, 3) == std::vector{1});
  const gs::message_list again = back.reversed();
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(after(again, i) == after(fan(), i));
    CHECK(again[i].bytes == fan()[i].bytes);
  }
}

TEST_CASE("one list after another: a device begins when it has sent and received all") {
  gs::message_list next;
  next.add({.from = 3, .to = 0, .bytes = 5});
  next.add({.from = 0, .to = 3, .bytes = 6});
  next.add({.from = 3, .to = 1, .bytes = 7}, {0});
  const gs::message_list both = fan().then(next);
  REQUIRE(both.size() == 4 + 4 + 3);  // and for every device, the end of its work
  CHECK((both[7].from == 3 && both[7].to == 3 && both[7].bytes == 0));
  CHECK(after(both, 4) == std::vector{0, 1});
  CHECK(after(both, 5) == std::vector{0, 2});
  CHECK(after(both, 7) == std::vector{2, 3});
  CHECK(after(both, 8) == std::vector{7});
  CHECK(after(both, 9) == std::vector{4});
  CHECK(after(both, 10) == std::vector{8});
}
