// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/hierarchical_all_gather.hpp>

#include "../backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace gs = gshard;

TEST_CASE("hierarchical_all_gather: blocks of any sizes arrive on any nodes, once on every node") {
  cases::rng r(4);
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const int p = 2 + int(cases::below(r, 8));
    std::vector<int> nodes;
    for (int d = 0; d < p; ++d) nodes.push_back(int(cases::below(r, 3)));
    gs::simulated b({p}, {nodes});
    std::vector<cases::bytes> own;
    for (int d = 0; d < p; ++d) own.push_back(cases::random_bytes(r, cases::below(r, 4) == 0 ? 0 : cases::below(r, 50)));
    std::vector<std::vector<cases::bytes>> got(std::size_t(p), own);
    for (std::size_t d = 0; d < got.size(); ++d)
      for (std::size_t m = 0; m < got.size(); ++m)
        if (m != d) std::ranges::fill(got[d][m], cases::untouched);
    gs::detail::held_groups groups;
    groups.use(b, 1);
    gs::detail::hierarchical_all_gather rounds;
    const auto parts = rounds.begin(
        groups, 3, [&](std::size_t d) { return std::span<const std::byte>(own[d]); },
        [&](std::size_t d, std::size_t m) { return std::span<std::byte>(got[d][m]); });
    b.start(1, parts).finish();
    if (gs::detail::hierarchical_all_gather::stages(groups) == 2) b.start(1, rounds.forward(groups, 3)).finish();
    rounds.end(groups, 3);
    for (const std::vector<cases::bytes>& of_device : got) CHECK(of_device == own);
    const auto used = std::int64_t(std::set<int>(nodes.begin(), nodes.end()).size());
    std::int64_t between = 0, least = 0;
    for (const gs::traffic& t : b.received()) between += t.between_nodes;
    for (const cases::bytes& block : own) least += (used - 1) * std::int64_t(block.size());
    if (groups.have_levels()) CHECK(between == least);
  }
}
