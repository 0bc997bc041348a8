// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/pool_kernel.hpp>

#include "../../exec/kernel/windows.hpp"

#include <limits>

using gshard::reduction;
using namespace test;
using window_cases::window_case;

namespace {

template <class T>
std::vector<T> whole_numbers(std::int64_t n, std::mt19937& gen, bool nans = false) {
  using limits = std::numeric_limits<T>;
  std::vector<T> v;
  for (std::int64_t i = 0; i < n; ++i) {
    v.push_back(T(pick(gen, -4, 4)));
    if (nans && pick(gen, 0, 9) == 0) v.back() = pick(gen, 0, 1) ? limits::quiet_NaN() : -limits::infinity();
  }
  return v;
}

template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

}  // namespace

TEST_CASE_TEMPLATE("pooling: random windows, shards and regions", T, float, double) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const window_case c(gen, true, 3);
    const bool largest = pick(gen, 0, 1);
    const auto x = whole_numbers<T>(c.whole_in(), gen, seed % 2), in = c.region(x);
    std::vector<T> y(std::size_t(c.out_elements()), 7);
    std::vector<std::int32_t> tap(y.size(), 7);
    ks::pooling(c.in, c.out, c.windows).run(largest ? reduction::max : reduction::min, in.data(), y.data(), tap.data());
    bool right = true;
    for_each_index(c.out.rank, c.out.extent, [&](const ks::index_array& i, std::int64_t linear) {
      T best = largest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
      std::int64_t first = -1;
      ks::for_each_tap(c.out.rank, c.windows, [&](const ks::index_array& taps, std::int64_t flat) {
        const std::int64_t at = c.read(i, taps);
        if (at < 0 || (best != best && first >= 0)) return;
        const T v = x[std::size_t(at)];
        if (first >= 0 && v == v && !(largest ? v > best : v < best)) return;
        best = v;
        first = flat;
      });
      right = right && same(y[std::size_t(linear)], best) && tap[std::size_t(linear)] == first;
    });
    CHECK(right);
  }
}

TEST_CASE_TEMPLATE("pooling_grad: random windows, shards and regions", T, float, double) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    window_case c(gen, false, 3);
    c.out = ks::whole(c.out.rank, c.out.global);
    c.in = ks::whole(c.in.rank, c.in.global);
    for (std::size_t d = 0; d < std::size_t(c.out.rank); ++d)  // a rotation has as many indices as elements
      if (c.windows[d].stride == 1 && c.windows[d].dilation == 1 && c.in.global[d] == c.out.global[d]) c.windows[d].wrap = pick(gen, 0, 1);
    const auto x = whole_numbers<T>(c.whole_in(), gen), dy = whole_numbers<T>(c.out_elements(), gen);
    std::vector<T> y(dy.size()), expected(x.size());
    std::vector<std::int32_t> tap(y.size());
    ks::pooling(c.in, c.out, c.windows).run(reduction::max, x.data(), y.data(), tap.data());
    for_each_index(c.out.rank, c.out.extent, [&](const ks::index_array& i, std::int64_t linear) {
      ks::for_each_tap(c.out.rank, c.windows, [&](const ks::index_array& taps, std::int64_t flat) {
        if (tap[std::size_t(linear)] == flat) expected[std::size_t(c.read(i, taps))] += dy[std::size_t(linear)];
      });
    });
    // A shard of dx and the region of dy that reads it, cut out by windows that change nothing.
    window_case back = c;
    std::swap(back.in, back.out);
    for (std::size_t d = 0; d < std::size_t(c.out.rank); ++d) {
      auto& part = back.out;
      part.offset[d] = pick(gen, 0, part.global[d]);
      part.extent[d] = pick(gen, 0, part.global[d] - part.offset[d]);
      const auto r = gshard::reach(c.windows[d].inverse(), {part.offset[d], part.offset[d] + part.extent[d]}, back.in.global[d]);
      back.in.offset[d] = r.begin;
      back.in.extent[d] = r.size();
    }
    std::vector<T> dx(std::size_t(back.out_elements()), 7);
    // All of the taps, or all of dy, may be present.
    window_case of_taps = back, of_dy = back;
    (pick(gen, 0, 1) ? of_taps : of_dy).in = pick(gen, 0, 1) ? ks::whole(c.out.rank, c.out.global) : back.in;
    const auto taps_here = of_taps.region(tap);
    const auto dy_here = of_dy.region(dy);
    ks::pooling_grad(of_taps.in, of_dy.in, back.out, c.windows).run(taps_here.data(), dy_here.data(), dx.data());
    bool right = true;
    const ks::index_array stride = ks::row_major_strides(c.in.rank, c.in.global);
    const std::int64_t first = offset_of(c.in.rank, back.out.offset, stride);
    for_each_index(back.out.rank, back.out.extent, [&](const ks::index_array& i, std::int64_t linear) {
      right = right && dx[std::size_t(linear)] == expected[std::size_t(first + offset_of(c.in.rank, i, stride))];
    });
    CHECK(right);
  }
}

TEST_CASE("pool: a tensor of many slices") {
  std::mt19937 gen(1);
  const auto in_at = ks::whole(2, {300, 401}), out_at = ks::whole(2, {300, 200});
  ks::window_array windows{};
  windows[1] = {.stride = 2, .taps = 3};
  const auto x = whole_numbers<float>(300 * 401, gen);
  std::vector<float> y(300 * 200), dx(x.size()), expected(x.size());
  std::vector<std::int32_t> tap(y.size());
  ks::pooling(in_at, out_at, windows).run(reduction::max, x.data(), y.data(), tap.data());
  bool right = true;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto* from = x.data() + i / 200 * 401 + i % 200 * 2;
    const auto best = std::max_element(from, from + 3);
    right = right && y[i] == *best && tap[i] == best - from;
    expected[std::size_t(best - x.data())] += y[i];
  }
  CHECK(right);
  ks::pooling_grad(out_at, out_at, in_at, windows).run(tap.data(), y.data(), dx.data());
  CHECK(dx == expected);
}

TEST_CASE("pool: sums have no place") {
  float x = 1;
  std::int32_t tap = 0;
  CHECK_THROWS_WITH_AS(ks::pooling({}, {}, {}).run(reduction::sum, &x, &x, &tap), "pool: only max and min pooling have indices",
                       gshard::error);
}
