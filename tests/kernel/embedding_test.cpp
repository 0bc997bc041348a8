// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/embedding.hpp>

#include "support.hpp"

#include <string>

using namespace test;

TEST_CASE("gather_rows, scatter_add_rows: transposes of each other") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const std::int64_t n = pick(gen, 0, 20), cols = pick(gen, 0, 40), vocab = pick(gen, 1, 10);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < n; ++i) ids.push_back(static_cast<std::int32_t>(pick(gen, 0, vocab - 1)));
    const auto table = random_values(vocab * cols, gen), dy = random_values(n * cols, gen);
    std::vector<double> out(dy.size()), dtable(table.size(), 7);
    ks::gather_rows(table.data(), ids.data(), out.data(), n, cols, vocab);
    bool same = true;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto c = static_cast<std::size_t>(cols);
      same = same && out[i] == table[static_cast<std::size_t>(ids[i / c]) * c + i % c];
    }
    CHECK(same);
    ks::scatter_add_rows(ids.data(), dy.data(), dtable.data(), n, cols, vocab);
    CHECK(inner(out, dy) == doctest::Approx(inner(table, dtable)));
  }
}

TEST_CASE("gather_rows, scatter_add_rows: an id outside the table throws") {
  const std::vector<float> table(6), dy(4);
  std::vector<float> out(4), dtable(6);
  for (std::int32_t bad : {-1, 3, 9}) {
    const std::vector<std::int32_t> ids{0, bad};
    const std::string where = ": id " + std::to_string(bad) + " at position 1 is outside a table of 3 rows";
    CHECK_THROWS_WITH_AS(ks::gather_rows(table.data(), ids.data(), out.data(), 2, 2, 3),
                         ("gather_rows" + where).c_str(), gshard::error);
    CHECK_THROWS_WITH_AS(ks::scatter_add_rows(ids.data(), dy.data(), dtable.data(), 2, 2, 3),
                         ("scatter_add_rows" + where).c_str(), gshard::error);
  }
}
