// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/factors.hpp>

#include <gshard/exec/process/error.hpp>

#include "../einsum_reference.hpp"
#include "../support.hpp"

#include <algorithm>

namespace {

using namespace einsum_reference;

// Random letters from `from`, with repetitions if `repeat`.
std::string random_letters(std::mt19937& gen, const std::string& from, bool repeat) {
  std::string s;
  for (char c : from)
    for (std::int64_t n = test::pick(gen, 0, repeat ? 2 : 1); n > 0 && s.size() < 6; --n) s += c;
  std::shuffle(s.begin(), s.end(), gen);
  return s;
}

TEST_CASE("factors: the loops reach the element that the index letters name, along diagonals too") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    extents sizes;
    for (char c : std::string("abcde")) sizes[c] = test::pick(gen, 1, 4);
    const std::string a = random_letters(gen, "abcde", true), b = random_letters(gen, "abcde", true);
    std::string used, out;
    for (char c : std::string("abcde"))
      if ((a + b).find(c) != std::string::npos) used += c;
    out = random_letters(gen, used, false);
    CAPTURE(a + "," + b + "->" + out);
    const auto nest =
        ks::detail::loops_of<3>("test", {operand(a, sizes), operand(b, sizes), operand(out, sizes)});
    REQUIRE(nest.count == used.size());  // one loop per letter, in their order
    bool same = true;
    for_each_index(sizes, [&](const extents& index) {
      std::array<std::size_t, 3> at{};
      for (std::size_t i = 0; i < used.size(); ++i)
        for (std::size_t o = 0; o < 3; ++o) at[o] += std::size_t(index.at(used[i]) * nest.at[i].stride[o]);
      same = same && at[0] == position(a, sizes, index) && at[1] == position(b, sizes, index) &&
             at[2] == position(out, sizes, index);
    });
    CHECK(same);
    for (std::size_t i = 0; i < used.size(); ++i) {
      CHECK(nest.at[i].extent == sizes.at(used[i]));
      CHECK(ks::detail::loop_of_factor<3>(used[i] - 'a', {operand(a, sizes), operand(b, sizes), operand(out, sizes)}) == i);
    }
  }
}

TEST_CASE("factors: errors name the operation and all operands") {
  const auto loops = [](ks::operand_dims a, ks::operand_dims b, ks::operand_dims out) {
    return ks::detail::loops_of<3>("product", {a, b, out});
  };
  const ks::operand_dims ab{2, {0, 1}, {2, 3}}, bc{2, {1, 2}, {3, 4}}, ac{2, {0, 2}, {2, 4}};
  CHECK(loops(ab, bc, ac).iterations() == 24);
  CHECK(loops({}, {}, {}).count == 0);
  CHECK_THROWS_WITH_AS(loops(ab, {2, {1, 2}, {5, 4}}, ac),
                       "product [a:2,b:3], [b:5,c:4] -> [a:2,c:4]: 'b' has two extents", gshard::error);
  CHECK_THROWS_WITH_AS(loops({2, {0, 0}, {2, 3}}, bc, {}), doctest::Contains("'a' has two extents"),
                       gshard::error);
  CHECK_THROWS_WITH_AS(loops(ab, bc, {1, {3}, {7}}), doctest::Contains("'d' of the result is in no operand"),
                       gshard::error);
  CHECK_THROWS_WITH_AS(loops(ab, bc, {2, {0, 0}, {2, 2}}),
                       doctest::Contains("'a' occurs twice in the result"), gshard::error);
  for (int factor : {-1, 16})
    CHECK_THROWS_WITH_AS(loops({1, {factor}, {2}}, bc, {}), doctest::Contains("a factor is not in 0..15"),
                         gshard::error);
}

}  // namespace
