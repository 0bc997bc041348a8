// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchanges in two levels give the same results as direct ones, on ranks that are assigned to several nodes.
#include <gshard/cluster/mpi.hpp>

#include "../mpi_world.hpp"
#include "../exec/backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

constexpr gs::exchange_bounds bounds{40, 3};  // bounds of random cases

gs::mpi_options on_nodes_of(int size) { return {.by_node = gs::node_routing::always, .node_size = size}; }

/// Every mesh of all processes with up to two axes.
std::vector<std::vector<int>> meshes() {
  std::vector<std::vector<int>> all{{mpi_world::ranks()}};
  for (int a = 1; a <= mpi_world::ranks(); ++a)
    if (mpi_world::ranks() % a == 0) all.push_back({a, mpi_world::ranks() / a});
  return all;
}

}  // namespace

TEST_CASE("mpi: an exchange node by node brings what one that goes straight does, and counts the same") {
  const auto me = std::size_t(mpi_world::rank());
  for (const std::vector<int>& extents : meshes()) {
    gs::mpi_backend straight(MPI_COMM_WORLD, extents, {.by_node = gs::node_routing::never});
    for (const int size : {0, 1, 2, 3, 4}) {
      gs::mpi_backend b(MPI_COMM_WORLD, extents, on_nodes_of(size));
      straight.reset_received();
      for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes)
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          CAPTURE(gs::detail::mesh_text(extents));
          CAPTURE(size);
          CAPTURE(axes);
          CAPTURE(seed);
          cases::exchange_case x(extents, axes, seed), y = x;
          b.exchange(axes, cases::parts(x, b.devices()), bounds);
          straight.exchange(axes, cases::parts(y, b.devices()), bounds);
          CHECK(x.recv[me] == y.recv[me]);
          CHECK(x.recv[me] == x.expected[me]);
        }
      CHECK(b.received()[0].exchange_bytes == straight.received()[0].exchange_bytes);
    }
  }
}

TEST_CASE("mpi: several exchanges under way, straight and node by node, each rank finishes them in its own order") {
  const auto me = std::size_t(mpi_world::rank());
  for (const std::vector<int>& extents : meshes())
    for (const int size : {1, 2, 3}) {
      if (mpi_world::ranks() == 1) continue;
      gs::mpi_backend b(MPI_COMM_WORLD, extents, on_nodes_of(size));
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(gs::detail::mesh_text(extents));
        CAPTURE(seed);
        cases::several_exchanges x(extents, 6, seed);
        cases::rng same(seed), mine(seed * 100 + me);
        const auto all_axes = cases::n_masks(extents) - 1;
        std::vector<std::size_t> open;
        for (std::size_t i = 0; i < x.all.size(); ++i) {
          x.start(b, i, cases::below(same, 3) == 0 ? gs::exchange_bounds{} : bounds);
          open.push_back(i);
          if (cases::below(mine, 2) == 0) {
            const auto k = std::size_t(cases::below(mine, std::int64_t(open.size())));
            x.pending[open[k]].finish();
            open.erase(open.begin() + std::ptrdiff_t(k));
          }
          if (cases::below(same, 3) == 0) {
            cases::gather_case gathered(extents, all_axes, seed);
            b.all_gather(all_axes, cases::parts(gathered, b.devices()));
            CHECK(gathered.recv[me] == gathered.expected[me]);
          }
        }
        x.finish_all(mine);
        for (cases::exchange_case& c : x.all) CHECK(c.recv[me] == c.expected[me]);
      }
    }
}

TEST_CASE("mpi: blocks larger than was said are errors before anything is sent") {
  const int n = mpi_world::ranks();
  gs::mpi_backend b(MPI_COMM_WORLD, {n}, on_nodes_of(2));
  cases::exchange_case x({n}, 1, 0);
  for (auto* sizes : {&x.send_bytes, &x.recv_bytes})
    for (cases::sizes& all : *sizes) all.assign(std::size_t(n), 0);
  const auto me = std::size_t(mpi_world::rank()), other = std::size_t((mpi_world::rank() + 1) % n);
  x.send_bytes[me][other] = x.recv_bytes[me][other] = 9;
  x.send[me].resize(100);
  x.recv[me].resize(100);
  const auto parts = cases::parts(x, b.devices());
  if (n == 1) return b.exchange(1, parts, {8, 1});
  const std::string said = "exchange: device " + std::to_string(me) + " has a block of 9 bytes; the limit is 8";
  CHECK_THROWS_WITH_AS(b.exchange(1, parts, {8, 1}), said.c_str(), gs::error);
}
