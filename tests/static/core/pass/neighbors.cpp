// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/neighbors.hpp>

#include <array>

namespace gs = gshard;

namespace {

/// a -> (0) -> b; a, b, b -> (1) -> c.
constexpr gs::graph chain() {
  gs::graph g;
  for (int v = 0; v < 3; ++v) g.values.push_back({});
  gs::node first, second;
  first.inputs = first.outputs = second.outputs = 1;
  first.out[0] = 1;
  second.inputs = 3;
  second.in[1] = second.in[2] = 1;
  second.out[0] = 2;
  g.nodes.push_back(first);
  g.nodes.push_back(second);
  return g;
}
/// The number of times that each node is near a value.
constexpr std::array<int, 2> near(int value) {
  std::array<int, 2> found{};
  gs::detail::neighbors(chain()).of(value, [&](std::int32_t n) { ++found[std::size_t(n)]; });
  return found;
}
static_assert(near(0) == std::array{1, 1});
static_assert(near(1) == std::array{1, 2});
static_assert(near(2) == std::array{0, 1});
static_assert(gs::detail::neighbors().empty() && !gs::detail::neighbors(chain()).empty());

}  // namespace
