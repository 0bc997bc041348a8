// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/window/sources.hpp>

#include "../windows.hpp"

using namespace test;
using window_cases::window_case;

TEST_CASE("sources: every element that reads something is visited once, the others are in gaps") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const window_case c(gen, true, 3);
    std::vector<std::int64_t> x(std::size_t(c.whole_in()));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::int64_t(i);
    const auto in = c.region(x);
    ks::index_array stride{};  // maybe with space between the elements
    std::int64_t size = 1;
    for (int d = c.out.rank; d-- > 0;) {
      stride[std::size_t(d)] = size *= pick(gen, 0, 2) == 0 ? 2 : 1;
      size *= c.out.extent[std::size_t(d)];
    }
    ks::for_each_tap(c.out.rank, c.windows, [&](const ks::index_array& taps, std::int64_t) {
      std::vector<std::int64_t> found(std::size_t(size), -1), times(found.size()), in_gap(found.size());
      ks::sources(c.windows, taps, c.in, c.out, stride)
          .for_each(
              [&](std::int64_t o, std::int64_t i, std::int64_t n, std::int64_t out_step, std::int64_t in_step) {
                for (std::int64_t k = 0; k < n; ++k) {
                  found[std::size_t(o + k * out_step)] = in.at(std::size_t(i + k * in_step));
                  ++times[std::size_t(o + k * out_step)];
                }
              },
              [&](std::int64_t o, std::int64_t n, std::int64_t step) {
                for (std::int64_t k = 0; k < n; ++k) ++in_gap[std::size_t(o + k * step)];
              });
      bool right = true;
      std::int64_t met = 0;
      for_each_index(c.out.rank, c.out.extent, [&](const ks::index_array& i, std::int64_t) {
        const auto at = std::size_t(offset_of(c.out.rank, i, stride));
        const std::int64_t read = c.read(i, taps);
        right = right && found[at] == read && times[at] == (read < 0 ? 0 : 1) && (read >= 0 || in_gap[at] == 1) && in_gap[at] <= 1;
        met += times[at] + in_gap[at];
      });
      for (std::size_t i = 0; i < found.size(); ++i) met -= times[i] + in_gap[i];
      CHECK((right && met == 0));
    });
  }
}

TEST_CASE("for_each_tap: row-major") {
  ks::window_array windows{};
  windows[0].taps = 2, windows[2].taps = 3;
  std::int64_t next = 0;
  ks::for_each_tap(3, windows, [&](const ks::index_array& taps, std::int64_t flat) {
    CHECK(flat == next++);
    CHECK((taps[0] == flat / 3 && taps[1] == 0 && taps[2] == flat % 3));
  });
  CHECK(next == 6);
  windows[1].taps = 0;
  ks::for_each_tap(3, windows, [&](const ks::index_array&, std::int64_t) { ++next; });
  CHECK(next == 6);
}

TEST_CASE("for_each_slice: the shard in pieces") {
  ks::placement p{2, {7, 10}, {3, 2}, {20, 20}};
  std::int64_t next = 0;
  ks::for_each_slice(p, 30, [&](const ks::placement& slice, std::int64_t first) {
    CHECK(first == next);
    CHECK((slice.offset[0] == 3 + next / 10 && slice.offset[1] == 2 && slice.extent[0] == (next == 60 ? 1 : 3) && slice.extent[1] == 10));
    next += slice.extent[0] * 10;
  });
  CHECK(next == 70);
  p.extent[1] = 0;
  ks::for_each_slice(p, 30, [&](const ks::placement&, std::int64_t) { ++next; });
  ks::for_each_slice({}, 30, [&](const ks::placement& slice, std::int64_t first) { next += 1000 + slice.rank + first; });
  CHECK(next == 1070);
}
