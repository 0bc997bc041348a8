// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/record/faults.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "../../complaint.hpp"

namespace gs = gshard;

TEST_CASE("no faults") {
  const gs::faults none;
  CHECK(none.none());
  CHECK_FALSE(none.tells_devices_apart());
  CHECK(none.slowness(3, 5) == 1);
  CHECK(none.delay(3) == 0);
  CHECK(none.link_factor(0, 1) == 1);
  CHECK_FALSE(none.dead(0));
}

TEST_CASE("faults are of one device, or one direction of a link") {
  const gs::faults f{.dead_devices = {4}, .links = {{0, 1, 0.5}, {2, 3, 0}}, .stragglers = {{7, 1.5, 1e-3}}};
  CHECK((f.dead(4) && !f.dead(5)));
  CHECK((f.link_factor(0, 1) == 0.5 && f.link_factor(1, 0) == 1 && f.link_factor(2, 3) == 0));
  CHECK((f.slowness(7, 0) == 1.5 && f.slowness(6, 0) == 1 && f.delay(7) == 1e-3 && f.delay(6) == 0));
  CHECK(f.tells_devices_apart());
}

TEST_CASE("jitter is drawn from its seed") {
  gs::faults f{.jitter = 0.1, .seed = 1};
  double sum = 0, least = 2, most = 0;
  for (int device = 0; device < 64; ++device)
    for (std::uint64_t step = 0; step < 64; ++step) {
      const double x = f.slowness(device, step);
      sum += x;
      least = std::min(least, x);
      most = std::max(most, x);
      CHECK(x == gs::faults(f).slowness(device, step));
    }
  CHECK((least >= 1 && least < 1.001 && most <= 1.1 && most > 1.099));
  CHECK(sum / 4096 == doctest::Approx(1.05).epsilon(0.002));
  const double before = f.slowness(1, 1);
  f.seed = 2;
  CHECK(f.slowness(1, 1) != before);
}

TEST_CASE("faults that make no sense") {
  const auto problem = [](const gs::faults& f) { return complaint([&] { f.check(8); }); };
  CHECK(problem({.dead_devices = {8}}) == "faults: dead device 8 is not one of 8 devices");
  CHECK(problem({.stragglers = {{-1, 2, 0}}}) == "faults: straggler -1 is not one of 8 devices");
  CHECK(problem({.stragglers = {{1, 0, 0}}}) == "faults: straggler 1 needs a factor above 0 and a delay of at least 0");
  CHECK(problem({.jitter = -1}) == "faults: jitter and timeout are at least 0");
  CHECK_NOTHROW(gs::faults{.dead_devices = {7}}.check(8));
}

TEST_CASE("who waits for whom") {
  const auto text = [](std::vector<int> waiting, std::vector<int> dead) {
    return complaint([&] { gs::fail_waiting("all_gather over axis 0", waiting, dead, 1.5); });
  };
  CHECK(text({0, 1, 3}, {2}) == "all_gather over axis 0: devices 0, 1, 3 waited 1.5 s for device 2, which is dead");
  CHECK(text({0}, {2, 3}) == "all_gather over axis 0: device 0 waited 1.5 s for devices 2, 3, which are dead");
  CHECK(text(std::vector<int>(20, 7), {2}).find("7, 7, 7, 7, 7, 7, 7, 7 and 12 more waited") != std::string::npos);
}
