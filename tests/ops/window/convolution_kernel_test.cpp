// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/convolution_kernel.hpp>

#include <gshard/exec/kernel/threads.hpp>

#include "../../exec/kernel/einsum_reference.hpp"
#include "../../exec/kernel/windows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

using einsum_reference::extents;
using einsum_reference::operand;
using test::pick;
using test::random_values;
using window_cases::window_case;
namespace ks = gshard::kernel;

namespace {

template <class T>
bool close(const std::vector<T>& found, const std::vector<double>& expected) {
  bool right = found.size() == expected.size();
  for (std::size_t i = 0; right && i < found.size(); ++i)
    right = std::abs(double(found[i]) - expected[i]) < 500 * double(std::numeric_limits<T>::epsilon()) * (1 + std::abs(expected[i]));
  return right;
}

std::string choose(const std::string& letters, std::mt19937& gen) {
  std::string some;
  for (char c : letters)
    if (pick(gen, 0, 1)) some += c;
  std::shuffle(some.begin(), some.end(), gen);
  return some;
}

// The indices of dim d have the letter 'a' + d, its taps 'i' + d.
template <class T>
void check_random(std::mt19937& gen) {
  const window_case c(gen, true, 3);
  ks::windowed_dims a{.at = c.in, .indices = c.out, .windows = c.windows};
  std::string letters;
  extents sizes{{'z', pick(gen, 1, 3)}};
  for (std::size_t d = 0; d < std::size_t(c.out.rank); ++d) {
    letters += char('a' + int(d));
    sizes[letters.back()] = c.out.extent[d];
    if (c.windows[d].taps == 1 && pick(gen, 0, 1)) continue;
    letters += char('i' + int(d));
    sizes[letters.back()] = c.windows[d].taps;
  }
  std::int64_t work = 1;
  for (const auto& [letter, size] : sizes) work *= size;
  if (work > 10000) return;
  for (std::size_t d = 0; d < std::size_t(c.out.rank); ++d) {
    a.factor[d] = operand(std::string(1, char('a' + int(d))), sizes).factor[0];
    const char tap = char('i' + int(d));
    if (sizes.contains(tap)) a.tap_factor[d] = operand(std::string(1, tap), sizes).factor[0];
  }
  const bool two = pick(gen, 0, 3) > 0;
  const std::string b = two ? choose(letters, gen) + 'z' : "";
  const std::string out = choose(two ? letters + 'z' : letters, gen);
  if (!two) sizes['z'] = 1;

  const auto x = random_values<T>(c.whole_in(), gen);
  const auto w = two ? random_values<T>(einsum_reference::count(b, sizes), gen) : std::vector<T>{1};
  const auto region = c.region(x);
  std::vector<double> expected(std::size_t(einsum_reference::count(out, sizes)));
  einsum_reference::for_each_index(sizes, [&](const extents& index) {
    ks::index_array i{}, taps{};
    for (std::size_t d = 0; d < std::size_t(c.out.rank); ++d) {
      i[d] = index.at(char('a' + int(d)));
      if (const auto tap = index.find(char('i' + int(d))); tap != index.end()) taps[d] = tap->second;
    }
    if (const std::int64_t at = c.read(i, taps); at >= 0)
      expected[einsum_reference::position(out, sizes, index)] +=
          double(x[std::size_t(at)]) * double(w[einsum_reference::position(b, sizes, index)]);
  });
  const std::int64_t most_bytes = pick(gen, 0, 1) ? 1 << 20 : pick(gen, 1, 400);
  std::vector<T> y(expected.size(), std::numeric_limits<T>::quiet_NaN());
  const ks::use_threads threads(int(pick(gen, 1, 3)));
  for (int repeat = 0; repeat < 2; ++repeat)
    if (two) ks::convolution<T>(a, operand(b, sizes), operand(out, sizes), most_bytes).run(region.data(), w.data(), y.data());
    else ks::convolution<T>(a, operand(out, sizes), most_bytes).run(region.data(), y.data());
  CAPTURE(letters);
  CAPTURE(b);
  CAPTURE(out);
  CHECK(close(y, expected));
}

}  // namespace

TEST_CASE_TEMPLATE("convolution: random windows, factors, shards and pieces", T, float, double) {
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    check_random<T>(gen);
  }
}

namespace {

// A convolution over 1 to 3 dims, channels before or after them, and its gradients, whole or in pieces of the batch.
void check_ordinary(std::size_t spatial, bool channels_last, std::mt19937& gen) {
  const std::string dims = std::string("XYZ").substr(0, spatial), taps = std::string("xyz").substr(0, spatial);
  const std::string in = channels_last ? "B" + dims + "I" : "BI" + dims, out = channels_last ? "B" + dims + "O" : "BO" + dims;
  const std::string weights = taps + "IO";
  extents before{{'B', 3}, {'I', 2}, {'O', 4}}, after = before;
  ks::window_array windows{};
  for (std::size_t d = 0; d < spatial; ++d) {
    gshard::bound_window w;
    w.stride = pick(gen, 1, 2);
    w.taps = pick(gen, 1, 3);
    w.step = pick(gen, 1, 2);
    w.low = -pick(gen, 0, 2);
    before[dims[d]] = 6 - std::int64_t(d);
    after[dims[d]] = 4 - std::int64_t(d) / 2;
    before[taps[d]] = after[taps[d]] = w.taps;
    windows[d + (channels_last ? 1 : 2)] = w;
  }
  // The operand with these letters. Its indices have the sizes in `to`.
  const auto windowed = [&](const std::string& letters, const extents& from, const extents& to, bool inverse) {
    ks::windowed_dims a;
    a.at = ks::whole(int(letters.size()), operand(letters, from).extent);
    a.indices = ks::whole(int(letters.size()), operand(letters, to).extent);
    a.factor = operand(letters, to).factor;
    for (std::size_t d = 0; d < letters.size(); ++d)
      if (const auto s = dims.find(letters[d]); s != std::string::npos) {
        a.windows[d] = inverse ? windows[d].inverse() : windows[d];
        a.tap_factor[d] = operand(taps.substr(s, 1), to).factor[0];
      }
    return a;
  };
  const auto n = [](const std::string& letters, const extents& sizes) { return einsum_reference::count(letters, sizes); };
  const auto x = random_values(n(in, before), gen), w = random_values(n(weights, before), gen), dy = random_values(n(out, after), gen);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  const std::int64_t most_bytes = pick(gen, 0, 1) ? 1 << 20 : 1;
  const auto read = windowed(in, before, after, false);
  ks::convolution<double>(read, operand(weights, after), operand(out, after), most_bytes).run(x.data(), w.data(), y.data());
  ks::convolution<double>(read, operand(out, after), operand(weights, after), most_bytes).run(x.data(), dy.data(), dw.data());
  const auto read_back = windowed(out, after, before, true);
  ks::convolution<double>(read_back, operand(weights, before), operand(in, before), most_bytes).run(dy.data(), w.data(), dx.data());

  std::vector<double> expected(y.size());
  extents loops = after;
  einsum_reference::for_each_index(loops, [&](const extents& index) {
    extents at = index;
    for (std::size_t d = 0; d < spatial; ++d) {
      const auto& win = windows[d + (channels_last ? 1 : 2)];
      at[dims[d]] = index.at(dims[d]) * win.stride + win.low + index.at(taps[d]) * win.step;
      if (at[dims[d]] < 0 || at[dims[d]] >= before[dims[d]]) return;
    }
    expected[einsum_reference::position(out, after, index)] +=
        x[einsum_reference::position(in, before, at)] * w[einsum_reference::position(weights, after, index)];
  });
  CHECK(close(y, expected));
  CHECK(test::inner(y, dy) == doctest::Approx(test::inner(x, dx)));
  CHECK(test::inner(y, dy) == doctest::Approx(test::inner(w, dw)));
}

}  // namespace

TEST_CASE("convolution: 1 to 3 dims and the gradients") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    check_ordinary(seed % 3 + 1, seed / 3 % 2, gen);
  }
}

// Regions of x, cut anywhere, each contribute their own elements.
TEST_CASE("convolution: what is not held counts nothing") {
  const extents sizes{{'X', 6}, {'x', 3}, {'C', 2}};
  std::mt19937 gen(1);
  const auto x = random_values(14, gen), w = random_values(3, gen);
  for (const gshard::bound_window& window : {gshard::bound_window{1, -1, 3}, {2, -2, 3, 2}, {1, 0, 3, 1, 2}, {-1, 6, 3}})
    for (std::int64_t border = 0; border <= 7; ++border) {
      const auto part = [&](std::int64_t begin, std::int64_t end) {
        ks::windowed_dims a{.at = {2, {end - begin, 2}, {begin, 0}, {7, 2}}, .indices = ks::whole(2, {6, 2})};
        a.windows[0] = window;
        a.factor = operand("XC", sizes).factor;
        a.tap_factor[0] = operand("x", sizes).factor[0];
        std::vector<double> y(12);
        ks::convolution<double>(a, operand("x", sizes), operand("XC", sizes)).run(x.data() + 2 * begin, w.data(), y.data());
        return y;
      };
      std::vector<double> sum = part(0, border);
      const std::vector<double> rest = part(border, 7);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
      CAPTURE(border);
      CHECK(close(sum, part(0, 7)));
    }
}

TEST_CASE("convolution: mistakes are named") {
  const extents sizes{{'a', 2}, {'b', 3}};
  ks::windowed_dims a{.at = ks::whole(1, {2}), .indices = ks::whole(1, {2})};
  a.windows[0].taps = 3;
  CHECK_THROWS_WITH_AS(ks::convolution<float>(a, operand("a", sizes)),
                       "convolution: dim 0 has 3 taps but no factor for them", gshard::error);
  ks::windowed_dims many{.at = ks::whole(5, {1, 1, 1, 1, 1}), .indices = ks::whole(5, {1, 1, 1, 1, 1})};
  for (std::size_t d = 0; d < 5; ++d) many.factor[d] = int(d), many.tap_factor[d] = int(d) + 5;
  CHECK_THROWS_WITH_AS(ks::convolution<float>(many, operand("", {})),
                       "convolution: an operand of 5 dims with taps along 5, but dims and taps may be 8 in all", gshard::error);
}
