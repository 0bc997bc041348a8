// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_options.hpp>

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace gs = gshard;

TEST_CASE("mpi_options: every option is a fact of the backend") {
  const std::vector<int> mesh{2, 3}, other_mesh{3, 2};
  std::set<std::uint64_t> hashes;
  const auto add = [&](const gs::mpi_options& options) {
    return hashes.insert(gs::hash_of(gs::detail::backend_facts(mesh, options))).second;
  };
  CHECK(add({}));
  CHECK(!add({}));
  CHECK(add({.message_limit = 7}));
  CHECK(add({.node_piece = 7}));
  CHECK(add({.in_flight = 7}));
  CHECK(add({.small_block = 7}));
  CHECK(add({.by_node = gs::node_routing::always}));
  CHECK(add({.node_block = 7}));
  CHECK(add({.node_size = 7}));
  CHECK(add({.shared_memory = true}));
  CHECK(add({.overlap = gs::overlap_mode::on}));
  CHECK(add({.overlap = gs::overlap_mode::off}));
  CHECK(add({.sums = gs::summation::by_node}));
  CHECK(add({.axis_order = {1, 0}}));
  CHECK(add({.choose_axis_order = [](std::span<const int>) { return std::vector<int>{}; }}));
  CHECK(add({.deadlines = {.warn = 7}}));
  CHECK(add({.deadlines = {.fail = 7}}));
  CHECK(hashes.insert(gs::hash_of(gs::detail::backend_facts(other_mesh, {}))).second);
  CHECK(hashes.insert(gs::hash_of(gs::detail::backend_facts(mesh, {}, {}, "another version"))).second);
  CHECK(hashes.insert(gs::hash_of(gs::detail::backend_facts(mesh, {}, {.compile_options = ", AVX"}))).second);
}
