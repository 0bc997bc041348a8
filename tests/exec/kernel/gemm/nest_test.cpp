// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/nest.hpp>

#include "../support.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace {

using namespace test;
using ks::detail::loop_nest;

struct nest_case {
  loop_nest<3> nest;
  std::vector<double> a, b, expected;
};

// Up to four loops in any order. Some are over a dense result, others are sums. The operands are small whole numbers, so that sums are
// exact in any order.
nest_case random_case(std::mt19937& gen, double alpha) {
  nest_case c;
  std::int64_t size = 1;
  for (std::int64_t i = pick(gen, 0, 4); i > 0; --i) {
    const std::int64_t extent = pick(gen, 1, 5);
    const bool over_result = pick(gen, 0, 1) == 0;
    c.nest.push({extent, {pick(gen, 0, 3), pick(gen, 0, 3), over_result ? size : 0}});
    if (over_result) size *= extent;
  }
  std::shuffle(c.nest.at.begin(), c.nest.at.begin() + std::ptrdiff_t(c.nest.count), gen);
  for (auto* x : {&c.a, &c.b})
    for (int i = 0; i < 4 * 3 * 4 + 1; ++i) x->push_back(double(pick(gen, -9, 9)));
  c.expected.resize(std::size_t(size));
  ks::detail::for_each_offset(c.nest, [&](const auto& at) {
    c.expected[std::size_t(at[2])] += alpha * c.a[std::size_t(at[0])] * c.b[std::size_t(at[1])];
  });
  return c;
}

TEST_CASE("nest: sums of products, whatever the order of the loops, into memory with anything in it") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const double alpha = double(pick(gen, -2, 2));
    const nest_case c = random_case(gen, alpha);
    for (const loop_nest<3>& nest : {c.nest, ks::detail::order_nest(c.nest)}) {
      std::vector<double> out(c.expected.size(), std::numeric_limits<double>::quiet_NaN());
      ks::detail::run_nest({nest}, alpha, c.a.data(), c.b.data(), out.data(), std::int64_t(out.size()));
      CHECK(out == c.expected);
    }
  }
}

TEST_CASE("nest: the cheapest loop goes inside, those of the result outside of the other sums") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const loop_nest<3> nest = random_case(gen, 1).nest, ordered = ks::detail::order_nest(nest);
    REQUIRE(ordered.count == nest.count);
    REQUIRE(ordered.iterations() == nest.iterations());
    for (std::size_t i = 0; i < nest.count; ++i)
      CHECK(ks::detail::nest_cost(ordered, ordered.count - 1) <= ks::detail::nest_cost(nest, i));
    for (std::size_t i = 1; i + 1 < ordered.count; ++i)
      CHECK(ordered.at[i - 1].stride[2] >= ordered.at[i].stride[2]);
  }
}

TEST_CASE("nest: term by term, sums have the same bits in every order of the other loops and for every extent of the batch") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const double alpha = seed % 2 == 0 ? 1 : 0.3;
    loop_nest<3> nest = random_case(gen, alpha).nest;
    std::int64_t size = 1;
    for (std::size_t i = 0; i < nest.count; ++i) size *= nest.at[i].stride[2] == 0 ? 1 : nest.at[i].extent;
    ks::detail::merge_loops(nest);
    const auto values = random_values<double>(200, gen);
    const ks::detail::loop<3> batch{pick(gen, 2, 40), {3, 4, size}};
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      const ks::detail::nest_plan plan = ks::detail::plan_nest(nest, ks::detail::loop<3>{end - begin, batch.stride});
      std::vector<double> out(std::size_t((end - begin) * size));
      ks::detail::run_nest(plan, alpha, values.data() + begin * 3, values.data() + begin * 4, out.data(), std::int64_t(out.size()));
      return out;
    };
    std::vector<double> pieces;
    for (std::int64_t i = 0; i < batch.extent; ++i)
      for (const double x : run(i, i + 1)) pieces.push_back(x);
    CHECK(run(0, batch.extent) == pieces);
  }
}

}  // namespace
