// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions of ranks that are assigned to several nodes: the same bits, and the same bytes between nodes, as on simulated devices.
#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/reduce.hpp>

#include "../../mpi_world.hpp"
#include "../backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gs = gshard;

namespace {

constexpr std::int64_t by_gather = std::numeric_limits<std::int64_t>::max(), by_blocks = 0;

/// Every mesh of all processes with up to two axes.
std::vector<std::vector<int>> meshes() {
  std::vector<std::vector<int>> all{{mpi_world::ranks()}};
  for (int a = 2; a < mpi_world::ranks(); ++a)
    if (mpi_world::ranks() % a == 0) all.push_back({a, mpi_world::ranks() / a});
  return all;
}

}  // namespace

TEST_CASE("all_reduce, mpi: on any nodes the same bits and bytes as on simulated devices") {
  const auto me = std::size_t(mpi_world::rank());
  struct input {
    std::uint32_t axes;
    std::int64_t n;
    cases::sum_case<float> sum;
  };
  for (const std::vector<int>& extents : meshes()) {
    std::vector<input> inputs;
    for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes)
      for (const std::int64_t n : {0, 1, 7, 100, 400'000}) inputs.push_back({axes, n, {extents, axes, n, std::uint64_t(n)}});
    for (const int node_size : {0, 1, 2, 3})
      for (const gs::summation sums : {gs::summation::by_member, gs::summation::by_node}) {
        gs::mpi_backend b(MPI_COMM_WORLD, extents, {.node_size = node_size, .sums = sums});
        gs::simulated alike(extents, b.nodes());
        for (const auto& [axes, n, sum_of] : inputs)
          for (const std::int64_t limit : {by_gather, by_blocks}) {
            CAPTURE(gs::detail::mesh_text(extents));
            CAPTURE(node_size);
            CAPTURE(axes);
            CAPTURE(n);
            CAPTURE(limit);
            cases::sum_case<float> c = sum_of, on_simulated = sum_of;
            const auto sum = [&, axes = axes, n = n](gs::backend& on, cases::sum_case<float>& with) {
              gs::detail::reducer reduce(limit);
              on.reset_received();
              reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, on, axes, cases::readers(with.data, on.devices()),
                                cases::pointers(with.data, on.devices()), cases::on_each(on, n), n);
            };
            sum(b, c);
            sum(alike, on_simulated);
            CHECK(cases::same_bits(c.data[me], on_simulated.data[me]));
            if (sums == gs::summation::by_member) CHECK(cases::same_bits(c.data[me], c.expected[me]));
            CHECK(b.received()[0] == alike.received()[me]);
          }
      }
  }
}

TEST_CASE("all_reduce, mpi: several sums are started before the first is finished, on several nodes") {
  const auto me = std::size_t(mpi_world::rank());
  const std::vector<int> extents{mpi_world::ranks()};
  gs::mpi_backend b(MPI_COMM_WORLD, extents, {.node_size = 2});
  std::vector<cases::sum_case<double>> sums;
  std::vector<gs::detail::reducer> reducers;
  const std::int64_t n = 30'000;
  for (std::uint64_t i = 0; i < 3; ++i) {
    sums.emplace_back(extents, 1u, n, i);
    reducers.emplace_back(by_blocks);
  }
  const auto from = [&](std::size_t i) { return cases::readers(sums[i].data, b.devices()); };
  const auto to = [&](std::size_t i) { return cases::pointers(sums[i].data, b.devices()); };
  const std::vector<std::int64_t> elements = cases::on_each(b, n);
  for (std::size_t i = 0; i < 3; ++i)
    reducers[i].start_all_reduce({gs::dtype_of<double>, gs::reduction::sum}, b, 1, from(i), to(i), elements, n, std::uint32_t(i));
  for (std::size_t i = 0; i < 3; ++i) {
    reducers[i].finish_all_reduce(b, from(i), to(i), elements, n);
    CHECK(cases::same_bits(sums[i].data[me], sums[i].expected[me]));
  }
}

TEST_CASE("all_reduce, mpi: ranks advance several sums at moments of their own") {
  const auto me = std::size_t(mpi_world::rank());
  const std::vector<int> extents{mpi_world::ranks()};
  for (const int node_size : {1, 2}) {
    gs::mpi_backend b(MPI_COMM_WORLD, extents, {.node_size = node_size});
    CHECK(b.advances_in_calls() == (mpi_world::ranks() > node_size));
    cases::rng r(std::uint64_t(100 + mpi_world::rank()));
    std::vector<cases::sum_case<float>> sums;
    std::vector<gs::detail::reducer> reducers;
    const std::vector<std::int64_t> sizes{700'000, 30'000, 1'500'000, 3};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sums.emplace_back(extents, 1u, sizes[i], i);
      reducers.emplace_back(by_blocks);
    }
    const auto from = [&](std::size_t i) { return cases::readers(sums[i].data, b.devices()); };
    const auto to = [&](std::size_t i) { return cases::pointers(sums[i].data, b.devices()); };
    const auto advance = [&](std::size_t started) {
      for (std::int64_t calls = cases::below(r, 300); calls > 0; --calls) {
        const auto i = std::size_t(cases::below(r, std::int64_t(started)));
        reducers[i].advance_all_reduce(b, from(i), to(i));
        b.advance();
      }
    };
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      reducers[i].start_all_reduce({gs::dtype_of<float>, gs::reduction::sum}, b, 1, from(i), to(i), cases::on_each(b, sizes[i]), sizes[i],
                                   std::uint32_t(i + 1));
      advance(i + 1);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      reducers[i].finish_all_reduce(b, from(i), to(i), cases::on_each(b, sizes[i]), sizes[i]);
      CHECK(cases::same_bits(sums[i].data[me], sums[i].expected[me]));
    }
  }
}
