// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../../complaint.hpp"

namespace gs = gshard;

TEST_CASE("every preset says where it comes from, and what of it is in doubt") {
  for (const gs::preset& p : gs::presets) {
    CAPTURE(p.name);
    CHECK(&gs::find_preset(p.name) == &p);
    CHECK((!p.source.empty() && !p.doubts.empty()));
    CHECK((p.link_bytes > 0 && p.launch > 0 && p.host_bytes > 0));
    CHECK((p.dims == 0 || (p.flops > 0 && p.memory > 0 && p.memory_bytes > 0 && p.hop > 0 && p.pod[std::size_t(p.dims - 1)] > 1)));
  }
}

TEST_CASE("a pod and a slice") {
  const gs::hardware h = gs::parse_hardware("tpu-v3:32x32");
  CHECK(h.name == "tpu-v3:32x32");
  CHECK(h.devices() == 2048);
  CHECK(h.memory == std::int64_t(16) << 30);
  CHECK(h.device.flops == 61.5e12);
  CHECK(h.topology.chips() == 1024);
  CHECK(h.topology.wrap[0]);
  CHECK(gs::parse_hardware("tpu-v3").name == h.name);
  CHECK(gs::assumptions(h)[0].find("100") != std::string::npos);
  CHECK(gs::assumptions(gs::parse_hardware("tpu-v3:64x32")).back().find("no pod") == 0);

  const gs::hardware cluster = gs::parse_hardware("slingshot-11:128");
  CHECK_FALSE(cluster.is_torus());
  CHECK(cluster.devices() == 128);
  CHECK(cluster.device.seconds(gs::op::all_gather, 1, {}, 25'000'000) == doctest::Approx(2e-6 + 1e-3));
}

TEST_CASE("assumptions are the numbers that count, and what was changed of them") {
  const auto says = [](const gs::hardware& h, std::string_view what) {
    const auto all = gs::assumptions(h);
    return std::ranges::count(all, what) == 1;
  };
  gs::hardware h = gs::parse_hardware("tpu-v3:8x8");
  CHECK(says(h, "a link carries one way: 70 GB/s"));
  CHECK(says(h, "a hop takes: 1 us"));
  CHECK(says(h, "a collective starts in: 5 us"));
  CHECK(says(h, "a device computes: 61.5 TFLOP/s"));
  CHECK(says(h, "between cores of a chip: 450 GB/s, taken to be the memory's rate"));
  CHECK(says(h, "gathers and sums go streamed on all links; all-to-alls every message at once, what is as far both ways half each way"));
  h.topology.link_bytes = 10e9;
  h.topology.launch = 1e-6;
  h.topology.gather = gs::gather_scheme::one_way;
  h.topology.all_to_all_efficiency = 0.27;
  CHECK(says(h, "a link carries one way: 10 GB/s, changed from 70 GB/s"));
  CHECK(says(h, "a collective starts in: 1 us, changed from 5 us"));
  CHECK(says(h, "gathers and sums go one way round each ring; all-to-alls every message at once, what is as far both ways half each way"));
  CHECK(says(h, "all-to-alls use: 27 % of the links: fitted, not physical"));
  const gs::hardware cluster = gs::parse_hardware("aries:16");
  CHECK(says(cluster, "a device computes: 1 TFLOP/s, assumed"));
  CHECK(says(cluster, "its memory moves: 100 GB/s, assumed"));
  CHECK(says(cluster, "its port receives: 9.6 GB/s"));
}

TEST_CASE("slices are rings where real ones are") {
  const auto wraps = [](const char* text) { return gs::parse_hardware(text).topology.wrap; };
  CHECK(wraps("tpu-v3:4x2") == std::array{true, true, true});
  CHECK(wraps("tpu-v5e:16x8") == std::array{true, false, true});
  CHECK(wraps("tpu-v6e:4x4") == std::array{false, false, true});
  CHECK(wraps("tpu-v4:4x4x8") == std::array{true, true, true});
  CHECK(wraps("tpu-v5p:4x4x2") == std::array{false, false, false});
}

TEST_CASE("a mesh on a slice") {
  const gs::hardware h = gs::parse_hardware("tpu-v3:8x8");
  CHECK(h.lay(std::array{128}).group(1) == gs::all_of(h.topology));
  CHECK(h.lay(std::array{8, 16}).group(2).cores == 2);
  CHECK(complaint([&] { h.lay(std::array{6, 8}); }) ==
        "tpu-v3:8x8: a mesh of 6x8 devices does not fit 8x8 chips of 2: the last axes must be the cores and the last dimensions, or even "
        "parts of them");
}

TEST_CASE("what cannot be read is named") {
  const auto problem = [](const char* text) { return complaint([&] { gs::parse_hardware(text); }); };
  CHECK(problem("tpu-v9:4x4").find("hardware 'tpu-v9:4x4': there is no preset 'tpu-v9'; there are tpu-v2, tpu-v3, ") == 0);
  CHECK(problem("tpu-v3:32x") == "hardware 'tpu-v3:32x': '' is not a number of chips");
  CHECK(problem("tpu-v3:32x-2") == "hardware 'tpu-v3:32x-2': '-2' is not a number of chips");
  CHECK(problem("tpu-v3:3.2") == "hardware 'tpu-v3:3.2': '3.2' is not a number of chips");
  CHECK(problem("tpu-v3:99999x99999") == "hardware 'tpu-v3:99999x99999': '99999' is not a number of chips");
  CHECK(problem("tpu-v3:4x4x4") == "tpu-v3:4x4x4: tpu-v3 has 2 dimensions, not 3");
  CHECK(problem("aries:4x4") == "aries:4x4: aries has no dimensions, but a number of devices, not 2");
  CHECK(problem("aries") == "hardware 'aries': how many devices? as in aries:64");
}

TEST_CASE("the laws of the paper's figure 9 on slices of a TPU v3: all-to-alls grow with the root of the devices, all-reduces do not") {
  double first = 0, at_128 = 0, first_sum = 0, last_sum = 0;
  double last = 0;
  for (const char* slice : {"4x2", "4x4", "8x4", "8x8", "16x8", "16x16", "32x16", "32x32"}) {
    const gs::hardware h = gs::parse_hardware("tpu-v3:" + std::string(slice));
    const gs::torus_mesh m(h.topology);
    const double n = h.devices();
    const auto seconds = [&](gs::op_ref kind, double bytes) { return m.seconds(kind, 1, {}, std::int64_t(bytes * (n - 1) / n)); };
    last = seconds(gs::op::all_to_all, 32e6);
    if (first == 0) first = last;
    if (h.devices() == 128) at_128 = last;
    last_sum = seconds(gs::op::all_reduce, 2 * 32e6);
    if (first_sum == 0) first_sum = last_sum;
  }
  CHECK((last / first > 7 && last / first < 10));
  CHECK((last / at_128 > 3.4 && last / at_128 < 4.2));
  CHECK(last_sum / first_sum <= 1.2);
}

TEST_CASE("presets: other chips of changed hardware, which stays changed") {
  gs::hardware h = gs::parse_hardware("tpu-v5e:16x16");
  h.topology.link_bytes = 1e9;
  h.device.flops = 1e12;
  h.memory = 7;
  const gs::hardware half = h.with_chips({8, 16});
  CHECK(half.name == "tpu-v5e:8x16");
  CHECK(half.devices() == 128);
  CHECK(half.topology.link_bytes == 1e9);
  CHECK(half.device.flops == 1e12);
  CHECK(half.memory == 7);
  CHECK(!half.topology.wrap[0]);  // as by the rule
  CHECK(half.topology.wrap[1]);
  h.rings = {true, false, false};
  CHECK(h.with_chips({8, 16}).topology.wrap == std::array{true, false, false});
  CHECK_THROWS_AS(h.with_chips({2, 2, 2}), gs::error);
}
