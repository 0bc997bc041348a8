// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups on nodes, and bytes between nodes.
#include <gshard/core/cost/node_traffic.hpp>

#include <gshard/core/cost/step_time.hpp>

#include <array>

namespace gs = gshard;
namespace op = gs::op;

namespace {

constexpr gs::extents mesh(std::initializer_list<int> axes) {
  gs::extents e;
  int a = 0;
  for (const int n : axes) e.axes[std::size_t(a++)] = n;
  e.known_axes = (1u << a) - 1;
  return e;
}
constexpr std::uint32_t first = 1, second = 2, both = 3;

/// Compares the closed form with the result from a list of nodes.
constexpr gs::nodes_of_group on(std::uint32_t axes, const gs::extents& e, int node_devices) {
  const gs::nodes_of_group g = gs::group_on_nodes(axes, e, node_devices);
  std::array<int, 64> node{};
  for (int d = 0; d < 64; ++d) node[std::size_t(d)] = d / node_devices;
  return gs::group_on_nodes(axes, e, node, 0) == g ? g : gs::nodes_of_group{};
}

// 4 x 4 devices, nodes of 4: the second axis is within nodes.
static_assert(on(first, mesh({4, 4}), 4) == gs::nodes_of_group{4, 4, 12, 4});
static_assert(on(second, mesh({4, 4}), 4) == gs::nodes_of_group{4, 1, 0, 0});
static_assert(on(both, mesh({4, 4}), 4) == gs::nodes_of_group{16, 4, 16 * 12, 4});
// Nodes of 2 divide the second axis. Nodes of 8 have two rows.
static_assert(on(second, mesh({4, 4}), 2) == gs::nodes_of_group{4, 2, 8, 2});
static_assert(on(first, mesh({4, 4}), 8) == gs::nodes_of_group{4, 2, 8, 2});
static_assert(on(both, mesh({2, 2}), 4).nodes == 1);
static_assert(on(first, mesh({8}), 1) == gs::nodes_of_group{8, 8, 56, 8});

// 4 members on 2 nodes. A sum of 120 bytes each: a node sends its sums of 60 bytes and receives as many, twice.
static_assert(gs::bytes_between_nodes(op::all_reduce, {4, 2, 8, 2}, 2 * 120 * 3 / 4) == 2 * 120);
static_assert(gs::bytes_between_nodes(op::reduce_scatter, {4, 2, 8, 2}, 3 * 30) == 120);
static_assert(gs::bytes_between_nodes(op::all_gather, {4, 2, 8, 2}, 3 * 30) == 120);
static_assert(gs::bytes_between_nodes(op::all_to_all, {4, 2, 8, 2}, 3 * 10) == 80);
static_assert(gs::bytes_between_nodes(op::all_reduce, {4, 2, 8, 2}, 3 * 10, true) == 80);  // all addends to all
static_assert(gs::bytes_between_nodes(op::looped_einsum, {4, 2, 8, 2}, 3 * 10) == 60);     // a ring crosses two links
static_assert(gs::bytes_between_nodes(op::all_gather, {4, 1, 0, 0}, 3 * 30) == 0);

// Nodes of 2 devices, links of 10 bytes per second, 100 within nodes.
constexpr gs::machine cluster{.link_bytes = 10, .start = 0, .node_devices = 2, .node_bytes = 100, .node_start = 0};
// Along the first axis a node has one member of each of two groups of two.
static_assert(cluster.seconds(op::all_gather, first, mesh({2, 2}), 1000) == 2 * 1000 / 10.);
static_assert(cluster.seconds(op::all_gather, second, mesh({2, 2}), 1000) == 1000 / 100.);
static_assert(cluster.seconds(op::all_gather, both, mesh({2, 2}), 3000) == 2000 / 10.);
static_assert(cluster.bytes_between_nodes(op::all_gather, both, mesh({2, 2}), 3000) == 2000);
// If both groups move the same data, a node receives it once, and its devices exchange halves.
static_assert(cluster.bytes_between_nodes(op::all_gather, first, mesh({2, 2}), 1000) == 2000);
static_assert(cluster.bytes_between_nodes(op::all_gather, first, mesh({2, 2}), 1000, second) == 1000);
static_assert(cluster.seconds(op::all_gather, first, mesh({2, 2}), 1000, second) == 1000 / 10.);
static_assert(gs::machine{.link_bytes = 1e9, .start = 1, .node_devices = 2, .node_bytes = 100, .node_start = 2}.seconds(
                  op::all_gather, first, mesh({2, 2}), 1000, second) == 3 + 500 / 100.);
static_assert(cluster.seconds(op::all_gather, second, mesh({2, 2}), 1000, first) == 1000 / 100.);
static_assert(gs::machine{.link_bytes = 10, .start = 1}.seconds(op::all_gather, first, mesh({4}), 30) == 4);

// Blocks of a tensor of two dims, and the number of elements in at least one of them.
constexpr gs::detail::block_of_tensor block(gs::interval rows, gs::interval columns) { return {{rows, columns}}; }
using blocks = gs::list<gs::detail::block_of_tensor>;
static_assert(gs::detail::elements_in_any(blocks{block({2, 5}, {1, 3})}, 2) == 6);
static_assert(gs::detail::elements_in_any(blocks{block({0, 4}, {0, 4}), block({2, 6}, {2, 6})}, 2) == 16 + 16 - 4);
static_assert(gs::detail::elements_in_any(blocks{block({0, 4}, {0, 4}), block({6, 7}, {0, 4}), block({1, 2}, {3, 4})}, 2) == 20);
static_assert(gs::detail::elements_in_any(blocks{{}, {}}, 0) == 1);

}  // namespace
