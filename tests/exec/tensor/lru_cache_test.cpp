// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/lru_cache.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>

using gshard::detail::kept, gshard::detail::lru_cache;

namespace {

template <int Kind>
struct numbered : kept {
  numbered(int n, std::int64_t size, int* count = nullptr) : kept(its_kind(), size), number(n), alive(count) {
    if (alive) ++*alive;
  }
  ~numbered() override {
    if (alive) --*alive;
  }
  static const void* its_kind() {
    static constexpr char here = 0;
    return &here;
  }
  int number;
  int* alive;
};

template <int Kind>
std::unique_ptr<numbered<Kind>> take(lru_cache& all, int number) {
  return all.take<numbered<Kind>>(numbered<Kind>::its_kind(), [&](const numbered<Kind>& n) { return n.number == number; });
}

}  // namespace

TEST_CASE("lru_cache: an entry that is taken is gone until it is put back, and has the requested type") {
  lru_cache all;
  CHECK(take<0>(all, 7) == nullptr);
  all.put_back(std::make_unique<numbered<0>>(7, 1));
  all.put_back(std::make_unique<numbered<1>>(8, 1));
  CHECK(take<1>(all, 7) == nullptr);
  auto seven = take<0>(all, 7);
  REQUIRE(seven != nullptr);
  CHECK(take<0>(all, 7) == nullptr);
  all.put_back(std::move(seven));
  CHECK(take<0>(all, 7) != nullptr);
  CHECK(take<1>(all, 8) != nullptr);
  CHECK(all.size() == 0);
}

TEST_CASE("lru_cache: what was not used for longest goes first, by number and by size") {
  int alive = 0;
  lru_cache all;
  const int most = int(lru_cache::most);
  for (int i = 0; i < most; ++i) all.put_back(std::make_unique<numbered<0>>(i, 1, &alive));
  all.put_back(take<0>(all, 0));  // used
  all.put_back(std::make_unique<numbered<0>>(most, 1, &alive));
  CHECK(all.size() == lru_cache::most);
  CHECK(alive == most);
  CHECK(take<0>(all, 1) == nullptr);
  CHECK(take<0>(all, 0) != nullptr);

  all.put_back(std::make_unique<numbered<0>>(100, lru_cache::most_bytes, &alive));
  CHECK(all.size() == 1);
  all.put_back(std::make_unique<numbered<0>>(101, lru_cache::most_bytes + 1, &alive));
  CHECK(take<0>(all, 101) == nullptr);
  all.put_back(std::make_unique<numbered<0>>(102, 1, &alive));
  CHECK(all.size() == 1);
  CHECK(take<0>(all, 102) != nullptr);
  CHECK(alive == 0);
}
