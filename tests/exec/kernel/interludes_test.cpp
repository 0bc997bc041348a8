// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/interludes.hpp>

#include <gshard/exec/kernel/threads.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace ks = gshard::kernel;

namespace {
using range = std::pair<std::int64_t, std::int64_t>;
/// Waits until the next interlude is due.
void wait_a_period() { std::this_thread::sleep_for(2 * ks::interlude_period); }
}  // namespace

TEST_CASE("interludes: called between pieces, never within one, and not from another thread") {
  std::vector<range> pieces;
  int calls = 0, nested = 0;
  auto call = [&] {
    ++calls;
    nested += ks::has_interlude();
    wait_a_period();
    ks::interlude();  // none during the call
  };
  auto f = [&](std::int64_t begin, std::int64_t end) {
    pieces.emplace_back(begin, end);
    wait_a_period();
  };
  ks::in_pieces(0, 100, 30, f);
  CHECK(pieces == std::vector<range>{{0, 100}});
  pieces.clear();
  {
    const ks::use_interludes here(call);
    ks::in_pieces(0, 100, 30, f);
    CHECK(pieces == std::vector<range>{{0, 30}, {30, 60}, {60, 90}, {90, 100}});
    CHECK(calls == 4);
    CHECK(nested == 0);
    bool elsewhere = true;
    std::thread([&] { elsewhere = ks::has_interlude(); }).join();
    CHECK_FALSE(elsewhere);
    {
      auto other = [&] { calls += 100; };
      const ks::use_interludes inner(other);
      ks::interlude();
    }
    CHECK(calls == 104);
    wait_a_period();
    ks::interlude();
    CHECK(calls == 105);
  }
  CHECK_FALSE(ks::has_interlude());
  ks::interlude();
  CHECK(calls == 105);
}

TEST_CASE("interludes: parallel_for covers every index once, in pieces of at least four grains") {
  auto nothing = [] {};
  const ks::use_interludes here(nothing);
  for (const std::int64_t n : {0, 1, 7, 100, 1000})
    for (const std::int64_t grain : {0, 1, 3, 40, 5000}) {
      std::vector<int> seen(std::size_t(n), 0);
      ks::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        CHECK((end - begin >= 4 * grain || end == n));
        for (; begin < end; ++begin) ++seen[std::size_t(begin)];
      });
      CHECK(seen == std::vector<int>(std::size_t(n), 1));
    }
}
