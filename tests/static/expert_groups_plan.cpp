// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The data that a mixture-of-experts layer with groups of experts sends between nodes: each token once per group, counted by the compiler.
#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

#include "soundness.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P, gs::symbol;

namespace {

constexpr int E = 32, k = 8;
constexpr std::int64_t G = 8, S = 1024, M = 1024;

constexpr gs::nn::moe_options options(int groups) {
  return {.routing = {.k = k}, .experts = gs::experts::in_groups(groups, {groups == 1 ? 0 : gs::expected_expert_groups(E, groups, k)})};
}
template <int Groups>
inline constexpr auto layer = [](auto& m, auto x, auto mask) {
  return gs::nn::moe<"node", "expert">(m, x, mask, options(Groups)).y;
};
template <int Groups>
inline constexpr auto layer_on_nodes = [](auto& m, auto x, auto mask) { return gs::nn::moe<"node">(m, x, mask, options(Groups)).y; };
template <int Groups>
inline constexpr auto step = [](auto& m, auto x, auto mask, auto dy) {
  const symbol y = gs::nn::moe<"node", "expert">(m, x, mask, options(Groups)).y;
  gs::list<symbol> wanted = gs::trainable(m);
  wanted.push_back(x);
  const gs::list<symbol> g = gs::gradients(m.objective(gs::sum(y * dy), 0.01), wanted);
  return std::tuple{y, g[0], g[1], g[2], g[3]};
};

using mesh = gs::mesh<gs::axis<"node">, gs::axis<"expert">>;
using tokens = gs::in<"GSM", P<gs::axes<"expert", "node">, none, none>>;
using mask = gs::in<"GS", P<gs::axes<"expert", "node">, none>>;

template <class Program>
constexpr int over(std::string_view axis) {
  int n = 0;
  for (const gs::node& s : Program::plan.steps) n += s.kind == op::all_to_all && s.attr.axes == 1u << Program::plan.mesh.find(axis);
  return n;
}
/// The bytes between nodes with equally many consecutive devices each.
template <class Program>
constexpr std::int64_t between(int nodes, int devices) {
  std::array<int, 64> node{};
  for (int d = 0; d < nodes * devices; ++d) node[std::size_t(d)] = d / devices;
  const gs::plan_view& p = Program::plan;
  const gs::dims sizes{{'G', G}, {'S', S}, {'M', M}, {'E', E}, {'F', 512}};
  const std::array<int, 2> grid{nodes, devices};
  const gs::extents e = p.bind(sizes, {grid.data(), std::size_t(p.mesh.rank())});
  return gs::bytes_between_nodes(p, e, {node.data(), std::size_t(nodes * devices)});
}
constexpr bool within_one_percent(std::int64_t found, double expected) {
  return double(found) <= 1.01 * expected && double(found) >= 0.99 * expected;
}
/// The bytes of rows that tokens send to groups on other nodes, and of the returned results.
constexpr double bytes_of_rows(int nodes, double groups_of_token) {
  return double(G * S) * groups_of_token * double(nodes - 1) / nodes * 2 * double(M * sizeof(float));
}
/// The bytes of its k indices and weights, which are sent with it.
constexpr double bytes_of_slots(int nodes, double groups_of_token) {
  return double(G * S) * groups_of_token * double(nodes - 1) / nodes * k * 8;
}

using flat = gs::program<layer<1>, mesh, tokens, mask>;
using grouped = gs::program<layer<4>, mesh, tokens, mask>;

// Forward, one exchange per axis each way. Experts are not moved.
static_assert(over<grouped>("node") == 2 && over<grouped>("expert") == 2 && grouped::plan.collectives() == 4);
static_assert(flat::plan.count(op::all_to_all) == 2 && flat::plan.collectives() == 2);
static_assert(soundness::is_sound(grouped::plan) && soundness::is_sound(flat::plan));

// Without groups, a node receives a row for each choice of an expert on another node. With groups, one for each token and group.
template <int Groups>
constexpr bool saves() {
  constexpr double groups = gs::expected_expert_groups(E, Groups, k);
  const std::int64_t with = between<gs::program<layer<Groups>, mesh, tokens, mask>>(Groups, 2);
  return within_one_percent(between<flat>(Groups, 2), bytes_of_rows(Groups, k)) &&
         within_one_percent(with, bytes_of_rows(Groups, groups) + bytes_of_slots(Groups, groups));
}
static_assert(saves<2>() && saves<4>() && saves<8>());
static_assert(between<grouped>(4, 2) < between<flat>(4, 2) * 48 / 100);

// Two groups per node: a token is sent to a node once for each of them.
static_assert(within_one_percent(between<gs::program<layer<8>, mesh, tokens, mask>>(4, 2),
                                 (bytes_of_rows(4, 1) + bytes_of_slots(4, 1)) * gs::expected_expert_groups(E, 8, k)));

// One device per node: the experts of a group are on one device.
using by_node =
    gs::program<layer_on_nodes<4>, gs::mesh<gs::axis<"node">>, gs::in<"GSM", P<"node", none, none>>, gs::in<"GS", P<"node", none>>>;
static_assert(by_node::plan.count(op::all_to_all) == 2 && by_node::plan.collectives() == 2);
static_assert(between<by_node>(4, 1) == between<grouped>(4, 2));

// A training step: forward and back, and the gradients of the weights on their way back. Gradients of the experts are not moved.
using training = gs::program<step<4>, mesh, tokens, mask, tokens>;
static_assert(over<training>("node") == 5 && over<training>("expert") == 4 && training::plan.count(op::all_to_all) == 9);
static_assert(training::plan.count(op::all_reduce) == 1 && training::plan.collectives() == 10 && soundness::is_sound(training::plan));

// With data parallelism in addition, exchanges stay within the replicas.
using cube = gs::mesh<gs::axis<"data">, gs::axis<"node">, gs::axis<"expert">>;
using replicas = gs::program<layer<4>, cube, gs::in<"GSM", P<gs::axes<"data", "expert", "node">, none, none>>,
                             gs::in<"GS", P<gs::axes<"data", "expert", "node">, none>>>;
static_assert(over<replicas>("node") == 2 && over<replicas>("expert") == 2 && replicas::plan.collectives() == 4);

}  // namespace
