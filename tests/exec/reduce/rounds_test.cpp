// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/reduce/rounds.hpp>

#include "../backend/failing_exchanges.hpp"
#include "../backend/hasty_exchanges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

/// Rounds whose functions are lambdas.
template <class Exchange, class Took>
class rounds_of final : public gs::detail::round_work {
 public:
  rounds_of(std::size_t stages, Exchange exchange, Took took) : stages_(stages), exchange_(exchange), took_(took) {}
  std::size_t stages() const override { return stages_; }
  std::span<const gs::exchange_part> exchange(std::size_t r, std::size_t stage) override { return exchange_(r, stage); }
  void took(std::size_t r) override { took_(r); }

 private:
  std::size_t stages_;
  Exchange exchange_;
  Took took_;
};

}  // namespace

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
    const auto fill = [&](std::size_t r, std::size_t) -> std::span<const gs::exchange_part> {
      order += char('A' + r);
      for (std::size_t d = 0; d < 2; ++d) rounds[r % rounds.size()].from[d].fill(std::byte(10 * d + r));
      return rounds[r % rounds.size()].parts;
    };
    gs::detail::round_sequence sequence;
    const auto took = [&](std::size_t r) {
      order += char('a' + r);
      for (std::size_t d = 0; d < 2; ++d) CHECK(rounds[r % rounds.size()].to[d][0] == std::byte(10 * (1 - d) + r));
    };
    rounds_of work(1, fill, took);
    const auto run = [&] {
      sequence.start(b, 1, n, {}, work);
      order += '.';
      sequence.finish(work);
    };
    if (fails.find('x') == std::string::npos) {
      run();
      CHECK(order == "ABCDEFGHIJKL.aMbNcOdefghijklmno");
    } else {
      CHECK_THROWS_WITH_AS(run(), ("exchange " + std::to_string(fails.find('x')) + " failed").c_str(), gs::error);
    }
    CHECK(b.started == n);
    CHECK(b.finished == n);
    CHECK(b.received()[0] == gs::traffic{});

    b.fails = std::string(n + 2, '-') + "x";
    sequence.start(b, 1, n, {}, work);
    sequence.drop(work);
    CHECK(b.started == 2 * n);  // other members may have sent all rounds
    CHECK(b.finished == 2 * n);
    order.clear();
    sequence.finish(work);
    CHECK(order.empty());
  }
}

TEST_CASE("rounds: whatever arrives first, every stage is in the order of rounds, and no more rounds are under way than may be") {
  hasty_exchanges b({2});
  const std::vector<std::span<const std::byte>> send(2);
  const std::vector<std::span<std::byte>> recv(2);
  const std::vector<gs::exchange_part> parts{{send, recv}, {send, recv}};
  gs::detail::round_sequence sequence;
  for (const std::size_t stages : {1u, 2u})
    for (std::size_t n = 0; n < 60; ++n) {
      CAPTURE(n);
      std::array<std::size_t, 3> reached{};  // the number of rounds that reached each stage
      std::size_t most = 0;
      const auto exchange = [&](std::size_t r, std::size_t stage) -> std::span<const gs::exchange_part> {
        CHECK(r == reached[stage]++);
        if (stage == 1) CHECK(reached[1] <= reached[0]);
        most = std::max(most, reached[0] - reached[2]);
        return parts;
      };
      const auto took = [&](std::size_t r) {
        CHECK(r == reached[2]++);
        CHECK(reached[2] <= reached[stages - 1]);
      };
      rounds_of work(stages, exchange, took);
      sequence.start(b, 1, n, {}, work);
      bool complete = false;
      for (auto calls = b.draw() % 40; calls > 0; --calls) complete = sequence.advance(work);
      CHECK((!complete || reached[2] == n));
      sequence.finish(work);
      CHECK(reached[2] == n);
      CHECK(most <= gs::detail::rounds_under_way);
      CHECK(most == std::min(n, gs::detail::rounds_under_way));
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
