// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/contract_plan.hpp>

#include "../einsum_reference.hpp"
#include "../support.hpp"

#include <algorithm>

namespace {

using namespace einsum_reference;
using ks::detail::gemm_plan, ks::detail::matrix_side;

gemm_plan plan_for(const std::string& a, const std::string& b, const std::string& out, const extents& sizes) {
  auto nest = ks::detail::loops_of<3>("plan", {operand(a, sizes), operand(b, sizes), operand(out, sizes)});
  ks::detail::merge_loops(nest);
  return ks::detail::plan_contraction(nest);
}

// The offset in the operand of element (row, col) of a matrix of the plan. For packed matrices it is computed by the loops.
std::size_t offset_in(const matrix_side& side, std::int64_t block, std::int64_t row, std::int64_t col) {
  const std::int64_t in_matrix = side.transposed ? col * side.ld + row : row * side.ld + col;
  if (!side.packed) return std::size_t(block + in_matrix);
  std::int64_t found = -1;
  int times = 0;
  ks::detail::for_each_offset(side.pack, [&](const auto& at) {
    if (at[1] == in_matrix) found = at[0], ++times;
  });
  REQUIRE(times == 1);
  return std::size_t(block + found);
}

TEST_CASE("contraction plan: blocks of matrix products, each term once, make the einsum") {
  int packed = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    extents sizes;
    std::string a, b, out;
    std::int64_t terms = 1;
    for (char c = 'a'; c < char('a' + seed % 6); ++c) {  // every index in two operands, or in all
      terms *= sizes[c] = test::pick(gen, 1, 4);
      const std::int64_t without = test::pick(gen, 0, 3);
      for (auto [o, letters] : {std::pair(0, &a), std::pair(1, &b), std::pair(2, &out)})
        if (o != without) *letters += c;
    }
    for (std::string* s : {&a, &b, &out}) std::shuffle(s->begin(), s->end(), gen);
    CAPTURE(a + "," + b + "->" + out);
    const gemm_plan plan = plan_for(a, b, out, sizes);
    CHECK(plan.outer.iterations() * plan.m * plan.n * plan.k == terms);
    const bool packs = std::ranges::any_of(plan.side, &matrix_side::packed);
    packed += packs ? 1 : 0;

    std::vector<double> x, y;
    for (std::int64_t i = count(a, sizes); i > 0; --i) x.push_back(double(test::pick(gen, -9, 9)));
    for (std::int64_t i = count(b, sizes); i > 0; --i) y.push_back(double(test::pick(gen, -9, 9)));
    std::vector<double> z(std::size_t(count(out, sizes)));
    ks::detail::for_each_offset(plan.outer, [&](const auto& at) {
      for (std::int64_t m = 0; m < plan.m; ++m)
        for (std::int64_t n = 0; n < plan.n; ++n)
          for (std::int64_t k = 0; k < plan.k; ++k)
            z.at(offset_in(plan.side[2], at[2], m, n)) +=
                x.at(offset_in(plan.side[0], at[0], m, k)) * y.at(offset_in(plan.side[1], at[1], k, n));
    });
    CHECK(z == einsum(a, b, out, sizes, x, y, 1));
  }
  CHECK(packed > 10);  // of both kinds
  CHECK(packed < 140);
}

TEST_CASE("contraction plan: products of row-major matrices need no packing, in any orientation") {
  const extents sizes{{'h', 4}, {'k', 40}, {'m', 24}, {'n', 56}};
  for (std::string a : {"mk", "km"})
    for (std::string b : {"kn", "nk"})
      for (std::string out : {"mn", "nm"})
        for (std::string batch : {"", "h"}) {
          CAPTURE(a + "," + b + "->" + out);
          const gemm_plan plan = plan_for(batch + a, batch + b, batch + out, sizes);
          CHECK(plan.outer.iterations() == (batch.empty() ? 1 : 4));
          for (const matrix_side& side : plan.side) CHECK(!side.packed);
          CHECK(plan.side[0].transposed == (a == "km"));
          CHECK(plan.side[1].transposed == (b == "nk"));
          CHECK(plan.side[2].transposed == (out == "nm"));
        }
}

TEST_CASE("contraction plan: a result with interleaved rows is packed, and factors are not") {
  const extents sizes{{'c', 128}, {'e', 4}, {'f', 1024}, {'g', 2}, {'m', 256}};
  const gemm_plan plan = plan_for("egcf", "efm", "gecm", sizes);
  CHECK(plan.n == 256);
  CHECK(plan.k == 1024);
  for (const std::size_t factor : {std::size_t(0), std::size_t(1)}) {
    CHECK(!plan.side[factor].packed);
    CHECK(!plan.side[factor].transposed);
  }
  CHECK(!plan.side[2].transposed);
}

}  // namespace
