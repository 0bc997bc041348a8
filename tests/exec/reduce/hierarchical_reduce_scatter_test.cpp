// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/hierarchical_reduce_scatter.hpp>

#include "../backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace gs = gshard;

namespace {

/// One round in a group of all devices: device d has `data[d][m]` for member m.
template <class T>
std::vector<std::vector<T>> reduce_scatter(gs::simulated& b, gs::reduction what, const std::vector<std::vector<std::vector<T>>>& data) {
  gs::detail::held_groups groups;
  groups.use(b, 1);
  gs::detail::hierarchical_reduce_scatter rounds;
  const auto parts =
      rounds.begin(groups, {gs::dtype_of<T>, what}, 0, [&](std::size_t i, std::size_t m) { return std::as_bytes(std::span(data[i][m])); });
  b.start(1, parts).finish();
  if (gs::detail::hierarchical_reduce_scatter::stages(groups) == 2) b.start(1, rounds.forward(groups, 0)).finish();
  std::vector<std::vector<T>> result;
  for (std::size_t d = 0; d < data.size(); ++d) result.emplace_back(data[d][d].size());
  rounds.end(groups, 0, [&](std::size_t i) { return reinterpret_cast<std::byte*>(result[i].data()); });
  return result;
}

}  // namespace

TEST_CASE("hierarchical_reduce_scatter: one level and two give the same bits, for blocks of any sizes on any nodes") {
  cases::rng r(3);
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const int p = 2 + int(cases::below(r, 8));
    std::vector<int> nodes;
    for (int d = 0; d < p; ++d) nodes.push_back(int(cases::below(r, 3)));
    std::vector<std::size_t> size;
    for (int m = 0; m < p; ++m) size.push_back(std::size_t(cases::below(r, 4) == 0 ? 0 : cases::below(r, 30)));
    std::vector<std::vector<std::vector<float>>> data;
    for (int d = 0; d < p; ++d) {
      data.emplace_back();
      for (int m = 0; m < p; ++m) {
        data.back().emplace_back(size[std::size_t(m)]);
        for (float& x : data.back().back()) x = float(cases::below(r, 2001) - 1000) / 7 * float(1 << cases::below(r, 20));
      }
    }
    for (const gs::summation how : {gs::summation::by_member, gs::summation::by_node}) {
      gs::simulated one({p}, {nodes, how, false}), two({p}, {nodes, how, true});
      CHECK(reduce_scatter(one, gs::reduction::sum, data) == reduce_scatter(two, gs::reduction::sum, data));
      if (how == gs::summation::by_member) continue;
      std::int64_t between = 0, least = 0;
      for (const gs::traffic& t : two.received()) between += t.between_nodes;
      const auto used = std::int64_t(std::set<int>(nodes.begin(), nodes.end()).size());
      for (const std::size_t n : size) least += (used - 1) * std::int64_t(n * sizeof(float));
      CHECK(between == least);  // every other node sends one partial sum of every element
    }
  }
}
