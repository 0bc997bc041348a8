// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/replica_shares.hpp>

#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::detail::replica_shares;

namespace {

/// Simulated devices on several nodes, in one process.
gs::simulated on_nodes(const std::vector<int>& mesh, std::vector<int> node) {
  return gs::simulated(mesh, gs::node_map{std::move(node), gs::summation::by_member});
}

}  // namespace

TEST_CASE("replica shares: groups on the same nodes have shares, others have none") {
  // Sums along the first axis of 2 x 4. The first two groups are on nodes 0 and 1, the third one on 1 and 0, the last one on one node.
  const auto b = on_nodes({2, 4}, {0, 0, 1, 2, 1, 1, 0, 2});
  const replica_shares s(b, 1, 2);
  CHECK(s.any());
  CHECK(s.axes() == 2);
  const std::vector<std::size_t> counts{2, 2, 1, 1}, places{0, 1, 0, 0};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(s.count(i) == counts[i % 4]);
    CHECK(s.place(i) == places[i % 4]);
  }
  CHECK(s.elements(1, 1, 7) == gs::interval{4, 7});
  CHECK(s.elements(2, 0, 7) == gs::interval{0, 7});
  CHECK(!replica_shares().any());
  CHECK(!replica_shares(on_nodes({2, 2}, {0, 0, 0, 0}), 1, 2).any());  // one node
  CHECK(!replica_shares(on_nodes({2, 2}, {0, 1, 2, 3}), 1, 2).any());
}

TEST_CASE("replica shares: after the exchange, every member has all shares") {
  auto b = on_nodes({2, 4}, {0, 0, 0, 2, 1, 1, 1, 2});
  replica_shares s(b, 1, 2);
  std::vector<std::vector<std::byte>> data(8, std::vector<std::byte>(10));
  for (std::size_t i = 0; i < 8; ++i) {
    const gs::interval own = s.elements(i, s.place(i), 10);
    for (std::int64_t k = own.begin; k < own.end; ++k) data[i][std::size_t(k)] = std::byte(k + 1);
  }
  s.exchange(b, 0, [&](std::size_t i, std::size_t k) {
    const gs::interval part = s.elements(i, k, 10);
    return std::span(data[i]).subspan(std::size_t(part.begin), std::size_t(part.size()));
  });
  for (const std::vector<std::byte>& all : data)
    for (std::size_t k = 0; k < 10; ++k) CHECK(all[k] == std::byte(k + 1));
  for (const gs::traffic& t : b.received()) CHECK(t == gs::traffic{});  // within nodes
}
