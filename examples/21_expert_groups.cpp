// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Eight experts per token on several nodes: a token is sent once to each node that has one of its experts.
#include <gshard/gshard.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"node">, gs::axis<"expert">>;

constexpr int number_of_experts = 32, experts_per_token = 8;

// A group has the experts of one node. It has a tenth more rows than uniform routing needs.
template <int Groups>
inline constexpr auto layer = [](auto& m, auto x, auto mask) {
  const double rows = Groups == 1 ? 0 : 1.1 * gs::expected_expert_groups(number_of_experts, Groups, experts_per_token);
  constexpr gs::routing_options routing{.k = experts_per_token, .slots = {12}};
  return gs::nn::moe<"node", "expert">(m, x, mask, {.routing = routing, .experts = gs::experts::in_groups(Groups, {rows})}).y;
};
// Token groups are sharded over "node" last, so that one all_to_all over "node" moves rows between nodes.
template <int Groups>
using program = gs::program<layer<Groups>, mesh, gs::in<"G@expert@node,S,M">, gs::in<"G@expert@node,S">>;
using flat = program<1>;
using grouped = program<4>;
static_assert(flat::plan.count(op::all_to_all) == 2 && grouped::plan.count(op::all_to_all) == 4);  // one per axis each way

template <class Program>
std::vector<float> run(const char* what, const std::vector<float>& x, const std::vector<float>& mask, const gs::dims& sizes) {
  constexpr std::array node{0, 0, 1, 1, 2, 2, 3, 3};  // the node of each device
  const gs::extents e = Program::plan.bind(sizes, std::array{4, 2});
  std::cout << what << ": " << gs::bytes_between_nodes(Program::plan, e, node) / 1024 << " KiB between nodes\n";
  gs::executable<Program> layer_on_devices(gs::simulate<mesh>({4, 2}), sizes);
  return gs::to_global(layer_on_devices(x, mask));
}

int main() {
  constexpr int G = 8, S = 64, M = 64;
  const gs::dims sizes{{'G', G}, {'S', S}, {'M', M}, {'E', number_of_experts}, {'F', 64}};
  std::vector<float> x(G * S * M), mask(G * S, 1.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * float(i)) * std::cos(0.03f * float(i));
  const std::vector<float> one = run<flat>("a row per expert", x, mask, sizes), several = run<grouped>("a row per node", x, mask, sizes);
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) largest = std::fmax(largest, std::fabs(double(one[i] - several[i])));
  std::cout << (largest < 1e-4 ? "the results are equal, up to the order of sums" : "a group was full") << '\n';
}
