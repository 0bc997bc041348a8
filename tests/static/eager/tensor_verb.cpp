// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/tensor_verb.hpp>

#include <array>
#include <cstdint>
#include <string_view>

// How the dims of operands match. The verbs of the table: tests/eager/verbs_test.cpp.
namespace gs = gshard;
namespace d = gs::detail;

namespace {

/// True if the dims of the operands match like these letters.
template <std::size_t N>
constexpr bool match(const d::operand_factors& f, const std::array<std::string_view, N>& letters) {
  for (std::size_t i = 0; i < N; ++i) {
    if (f[i].size() != int(letters[i].size())) return false;
    for (std::size_t j = 0; j < N; ++j)
      for (int a = 0; a < f[i].size(); ++a)
        for (int b = 0; b < f[j].size(); ++b)
          if ((letters[i][std::size_t(a)] == letters[j][std::size_t(b)]) != (f[i][a] == f[j][b])) return false;
  }
  return true;
}
using ranks2 = std::array<int, 2>;
using ranks3 = std::array<int, 3>;
using numbers = std::array<std::int64_t, 2>;
using number = std::array<std::int64_t, 1>;
using names2 = std::array<std::string_view, 2>;
using names3 = std::array<std::string_view, 3>;

static_assert(match(d::by_position(ranks3{2, 1, 0}, {}), names3{"AB", "A", ""}));
static_assert(match(d::by_last_dim(ranks3{3, 1, 1}, {}), names3{"ABC", "C", "C"}));
static_assert(match(d::with_own_dim(ranks3{2, 2, 2}, number{1}), names3{"AB", "AC", "AD"}));
static_assert(match(d::with_own_dim(ranks3{2, 2, 0}, number{0}), names3{"AB", "CB", ""}));
static_assert(match(d::with_own_dim(ranks2{2, 2}, number{2}), names2{"AB", "AB"}));
static_assert(match(d::by_rows(ranks2{2, 1}, {}), names2{"NC", "I"}));
static_assert(match(d::by_rows(ranks3{2, 2, 3}, {}), names3{"NC", "IJ", "IJC"}));
static_assert(match(d::by_rows(ranks3{3, 1, 3}, number{1}), names3{"ANC", "I", "AIC"}));
static_assert(match(d::by_rows(ranks3{3, 2, 3}, numbers{1, 1}), names3{"BNC", "BI", "BIC"}));
static_assert(match(d::by_rows(ranks2{2, 1}, number{5}), names2{"AB", "A"}));

}  // namespace
