// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/rounds.hpp>

#include "failing_exchanges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;

TEST_CASE("rounds: some are under way at a time, and all take place even if some fail") {
  constexpr std::size_t n = gs::detail::rounds_under_way + 3;
  const auto failing_at = [](std::size_t first, std::size_t second) {
    std::string all(n, '-');
    all[first] = all[second] = 'x';
    return all;
  };
  for (const std::string& fails : {std::string(n, '-'), failing_at(0, 0), failing_at(1, 4), failing_at(n - 1, n - 1)}) {
    failing_exchanges b({2});
    b.fails = fails;
    std::string order;
    struct round {
      std::array<std::array<std::byte, 4>, 2> from{}, to{};
      std::array<std::vector<std::span<const std::byte>>, 2> send;
      std::array<std::vector<std::span<std::byte>>, 2> recv;
      std::vector<gs::exchange_part> parts;
    };
    std::array<round, gs::detail::rounds_under_way> rounds;
    for (round& now : rounds)
      for (std::size_t d = 0; d < 2; ++d) {
        now.send[d].resize(2);
        now.recv[d].resize(2);
        now.send[d][1 - d] = now.from[d];
        now.recv[d][1 - d] = now.to[d];
        now.parts.push_back({now.send[d], now.recv[d]});
      }
    const auto fill = [&](std::size_t r) -> std::span<const gs::exchange_part> {
      order += char('A' + r);
      for (std::size_t d = 0; d < 2; ++d) rounds[r % rounds.size()].from[d].fill(std::byte(10 * d + r));
      return rounds[r % rounds.size()].parts;
    };
    gs::detail::round_sequence sequence;
    const auto run = [&] {
      sequence.start(b, 1, n, {}, fill);
      order += '.';
      sequence.finish(b, 1, fill, [&](std::size_t r) {
        order += char('a' + r);
        for (std::size_t d = 0; d < 2; ++d) CHECK(rounds[r % rounds.size()].to[d][0] == std::byte(10 * (1 - d) + r));
      });
    };
    if (fails.find('x') == std::string::npos) {
      run();
      CHECK(order == "ABCDEFGHIJKLMNOP.aQbRcSdefghijklmnopqrs");
    } else {
      CHECK_THROWS_WITH_AS(run(), ("exchange " + std::to_string(fails.find('x')) + " failed").c_str(), gs::error);
    }
    CHECK(b.started == n);
    CHECK(b.finished == n);
    CHECK(b.received()[0] == gs::traffic{});

    sequence.start(b, 1, n, {}, fill);
    sequence.drop();
    CHECK(b.started == b.finished);
    sequence.finish(b, 1, fill, [](std::size_t) { FAIL("nothing was under way"); });
  }
}

TEST_CASE("rounds: portions shrink with the group, to a size that still fills messages, in whole elements") {
  CHECK(gs::detail::bytes_per_round(1) == gs::detail::bytes_per_round(2));
  for (std::size_t p = 2; p < 5000; ++p) {
    CHECK(gs::detail::bytes_per_round(p) % 64 == 0);
    CHECK(gs::detail::bytes_per_round(p) >= 1 << 13);
    CHECK(gs::detail::bytes_per_round(p, true) % 64 == 0);
    CHECK(gs::detail::bytes_per_round(p, true) >= 1 << 13);
    CHECK(gs::detail::bytes_per_round(p + 1) <= gs::detail::bytes_per_round(p));
  }
}
