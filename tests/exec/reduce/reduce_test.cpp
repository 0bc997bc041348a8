// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/loopback.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/reduce.hpp>

#include "../../effort.hpp"
#include "../backend/failing_exchanges.hpp"
#include "../backend/hasty_exchanges.hpp"
#include "../backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace gs = gshard;

namespace {
const std::vector<std::vector<int>> reduced_meshes{{1}, {2}, {3}, {2, 2}, {2, 3}, {2, 1, 2}, {5}, {7}};
constexpr std::int64_t by_gather = std::numeric_limits<std::int64_t>::max(), by_blocks = 0, by_size = 4096;
}  // namespace

TEST_CASE_TEMPLATE("all_reduce: sums in the order of a binary tree over the members, bit for bit, by every path", T, float, double,
                   std::int32_t, std::int64_t) {
  std::vector<std::int64_t> sizes(18);
  std::iota(sizes.begin(), sizes.end(), 0);
  sizes.push_back(5000);
  for (const std::int64_t limit : {by_gather, by_blocks, by_size}) {
    gs::detail::reducer reduce(limit);
    for (const std::vector<int>& extents : reduced_meshes) {
      gs::simulated b(extents);
      for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes) {
        for (const std::int64_t n : sizes) {
          CAPTURE(limit);
          CAPTURE(axes);
          CAPTURE(n);
          cases::sum_case<T> c(extents, axes, n, std::uint64_t(n));
          reduce.all_reduce({gs::dtype_of<T>, gs::reduction::sum}, b, axes, cases::readers(c.data, b.devices()),
                            cases::pointers(c.data, b.devices()), cases::on_each(b, n), n);
          for (std::size_t d = 0; d < c.data.size(); ++d) CHECK(cases::same_bits(c.data[d], c.expected[d]));
        }
      }
    }
  }
}

TEST_CASE("all_reduce: the cases above would notice another order") {
  cases::sum_case<float> c({3}, 1, 5000, 1);
  int different = 0;
  for (std::size_t k = 0; k < 5000; ++k) different += c.data[0][k] + (c.data[1][k] + c.data[2][k]) != c.expected[0][k];
  CHECK(different > 100);
}

TEST_CASE("all_reduce: the bits do not depend on the nodes, nor on the number of levels") {
  cases::rng r(7);
  for (int i = 0; i < repetitions(300); ++i) {
    CAPTURE(i);
    const std::vector<int>& extents = reduced_meshes[std::size_t(cases::below(r, std::int64_t(reduced_meshes.size())))];
    const std::uint32_t axes = std::uint32_t(cases::below(r, cases::n_masks(extents)));
    std::vector<int> nodes;
    for (int d = 0; d < gs::device_count(extents); ++d) nodes.push_back(int(cases::below(r, 4)));
    gs::simulated b(extents, {nodes});
    const std::int64_t n = cases::below(r, 3) == 0 ? 100000 : cases::below(r, 40);
    cases::sum_case<float> c(extents, axes, n, std::uint64_t(i));
    gs::detail::reducer reduce(by_blocks);
    reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, axes, cases::readers(c.data, b.devices()),
                      cases::pointers(c.data, b.devices()), cases::on_each(b, n), n);
    for (std::size_t d = 0; d < c.data.size(); ++d) CHECK(cases::same_bits(c.data[d], c.expected[d]));
  }
}

TEST_CASE("all_reduce: sums that advance while others are in flight get the same bits") {
  cases::rng r(10);
  for (int i = 0; i < repetitions(200); ++i) {
    CAPTURE(i);
    const std::vector<int> extents{2 + int(cases::below(r, 6))};
    std::vector<int> nodes;
    for (int d = 0; d < extents[0]; ++d) nodes.push_back(int(cases::below(r, 3)));
    hasty_exchanges b(extents, {nodes});
    b.draw.seed(unsigned(i));
    std::vector<cases::sum_case<float>> sums;
    std::vector<gs::detail::reducer> reducers;
    std::vector<std::int64_t> sizes;
    for (std::uint64_t k = 0; k < 3; ++k) {
      sizes.push_back(1 + cases::below(r, cases::below(r, 4) == 0 ? 500000 : 5000));
      sums.emplace_back(extents, 1u, sizes.back(), k);
      reducers.emplace_back(by_blocks);
    }
    const auto from = [&](std::size_t k) { return cases::readers(sums[k].data, b.devices()); };
    const auto to = [&](std::size_t k) { return cases::pointers(sums[k].data, b.devices()); };
    for (std::size_t k = 0; k < 3; ++k)
      reducers[k].start_all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, from(k), to(k), cases::on_each(b, sizes[k]), sizes[k],
                                   std::uint32_t(k));
    for (std::int64_t calls = cases::below(r, 60); calls > 0; --calls) {
      const auto k = std::size_t(cases::below(r, 3));
      reducers[k].advance_all_reduce(b, from(k), to(k));
    }
    for (std::size_t k = 0; k < 3; ++k) {
      reducers[k].finish_all_reduce(b, from(k), to(k), cases::on_each(b, sizes[k]), sizes[k]);
      for (std::size_t d = 0; d < sums[k].data.size(); ++d) CHECK(cases::same_bits(sums[k].data[d], sums[k].expected[d]));
    }
  }
}

TEST_CASE("all_reduce: in the order of the nodes, one level and two give the same bits, and two send the fewest bytes") {
  cases::rng r(8);
  for (int i = 0; i < repetitions(1000); ++i) {
    CAPTURE(i);
    const std::vector<int> extents{2 + int(cases::below(r, 7))};
    const int n_nodes = 1 + int(cases::below(r, 4));
    std::vector<int> nodes;
    for (int d = 0; d < extents[0]; ++d) nodes.push_back(int(cases::below(r, n_nodes)));
    const std::int64_t n = 1 + cases::below(r, 200);
    cases::sum_case<float> flat(extents, 1, n, std::uint64_t(i)), levels = flat;
    gs::simulated one(extents, {nodes, gs::summation::by_node, false}), two(extents, {nodes, gs::summation::by_node, true});
    gs::detail::reducer reduce(by_blocks);
    const auto sum = [&](gs::simulated& b, cases::sum_case<float>& c) {
      reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(c.data, b.devices()),
                        cases::pointers(c.data, b.devices()), cases::on_each(b, n), n);
      std::int64_t bytes = 0;
      for (const gs::traffic& t : b.received()) bytes += t.between_nodes;
      return bytes;
    };
    const std::int64_t most = sum(one, flat), least = sum(two, levels);
    const auto used = std::int64_t(std::set<int>(nodes.begin(), nodes.end()).size());
    CHECK(least == 2 * (used - 1) * n * 4);  // every node except one sends its sums, and receives the results
    CHECK(least <= most);
    for (std::size_t d = 0; d < flat.data.size(); ++d) CHECK(cases::same_bits(flat.data[d], levels.data[d]));
  }
}

TEST_CASE("all_reduce: groups that sum copies of one tensor get the same bits, whatever their nodes are") {
  cases::rng r(9);
  for (int i = 0; i < repetitions(200); ++i) {
    CAPTURE(i);
    const std::vector<int> extents{2 + int(cases::below(r, 5)), 2};
    std::vector<int> nodes;
    for (int d = 0; d < gs::device_count(extents); ++d) nodes.push_back(int(cases::below(r, 3)));
    gs::simulated b(extents, {nodes, gs::summation::by_node});
    cases::sum_case<float> c(extents, 1, 50, std::uint64_t(i));
    for (std::size_t d = 0; d < c.data.size(); d += 2) c.data[d + 1] = c.data[d];
    gs::detail::reducer reduce(cases::below(r, 2) == 0 ? by_gather : by_blocks);
    reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(c.data, b.devices()),
                      cases::pointers(c.data, b.devices()), cases::on_each(b, 50), 50);
    for (std::size_t d = 0; d < c.data.size(); ++d) CHECK(cases::same_bits(c.data[d], c.data[0]));
  }
}

TEST_CASE_TEMPLATE("all_reduce: every reduction", T, float, double, std::int32_t) {
  using rows = std::vector<std::vector<T>>;
  gs::simulated b({2, 3});
  const rows before{{1, 9}, {2, -8}, {-3, 7}, {4, 6}, {5, 5}, {6, 0}};
  const auto check = [&](gs::reduction what, const std::vector<T>& first, const std::vector<T>& second) {
    CAPTURE(int(what));
    for (const std::int64_t limit : {by_gather, by_blocks}) {
      rows data = before;
      gs::detail::reducer reduce(limit);
      reduce.all_reduce({gs::dtype_of<T>, what}, b, 0b10, cases::readers(data, b.devices()), cases::pointers(data, b.devices()),
                        cases::on_each(b, 2), 2);
      CHECK(data == rows{first, first, first, second, second, second});
    }
  };
  check(gs::reduction::sum, {0, 8}, {15, 11});
  check(gs::reduction::max, {2, 9}, {6, 6});
  check(gs::reduction::min, {-3, -8}, {4, 0});
  check(gs::reduction::prod, {-6, -504}, {120, 0});
}

TEST_CASE("all_reduce: sends what it says") {
  gs::simulated b({4});
  gs::detail::reducer reduce(by_size);
  cases::sum_case<float> big({4}, 1, 8000, 1), small({4}, 1, 100, 1);
  reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(big.data, b.devices()),
                    cases::pointers(big.data, b.devices()), cases::on_each(b, 8000), 8000);
  CHECK(b.received()[2] == gs::traffic{1, 3 * 8000, 1, 3 * 8000});
  b.reset_received();
  reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(small.data, b.devices()),
                    cases::pointers(small.data, b.devices()), cases::on_each(b, 100), 100);
  CHECK(b.received()[2] == gs::traffic{0, 0, 1, 3 * 400});
}

TEST_CASE("all_reduce: the largest shard of the mesh decides for all devices") {
  // The view of a process with a short shard: its sums are small, the sums of others are not.
  gs::simulated b({4});
  gs::detail::reducer reduce(by_size);
  cases::sum_case<float> c({4}, 1, 100, 1);
  reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(c.data, b.devices()),
                    cases::pointers(c.data, b.devices()), cases::on_each(b, 100), 8000);
  CHECK(b.received()[2] == gs::traffic{1, 3 * 100, 1, 3 * 100});
  for (std::size_t d = 0; d < c.data.size(); ++d) CHECK(cases::same_bits(c.data[d], c.expected[d]));
  CHECK_THROWS_WITH_AS(reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(c.data, b.devices()),
                                         cases::pointers(c.data, b.devices()), cases::on_each(b, 100), 99),
                       "all_reduce: a device with 100 elements; the maximum is 99", gs::error);
}

TEST_CASE("all_reduce: what fails on the way keeps nobody from gathering") {
  failing_exchanges b({2});
  b.fails = "x";
  gs::detail::reducer reduce(by_size);
  cases::sum_case<float> c({2}, 1, 8000, 1);
  const auto sum = [&] {
    reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(c.data, b.devices()),
                      cases::pointers(c.data, b.devices()), cases::on_each(b, 8000), 8000);
  };
  CHECK_THROWS_WITH_AS(sum(), "exchange 0 failed", gs::error);
  CHECK(b.received()[0].gathers == 1);
}

TEST_CASE("all_reduce: one device needs no others, and mistakes are named") {
  gs::loopback b;
  gs::detail::reducer reduce(by_size);
  std::vector<std::vector<float>> data{{1, 2, 3}};
  reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(data, b.devices()), cases::pointers(data, b.devices()),
                    cases::on_each(b, 3), 3);
  CHECK(data == std::vector<std::vector<float>>{{1, 2, 3}});
  CHECK_THROWS_WITH_AS(reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, {}, {}, cases::on_each(b, 3), 3),
                       "all_reduce: data has 0 entries for 1 local devices", gs::error);
  CHECK_THROWS_AS(reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, cases::readers(data, b.devices()),
                                    cases::pointers(data, b.devices()), cases::on_each(b, -1), 3),
                  gs::error);
}
