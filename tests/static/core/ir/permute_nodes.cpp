// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/permute_nodes.hpp>
#include <gshard/core/trace/map.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

// Nodes move along the cycles of a permutation, and tensors get the new numbers of their producers.
namespace gs = gshard;

namespace {

constexpr bool permutes(std::array<std::int32_t, 5> from) {
  gs::builder b;
  const gs::symbol x = tracing::input(b, "A");
  for (std::size_t i = 0; i < from.size(); ++i) (void)(double(i + 1) * x);
  const gs::graph before = b.program;
  std::array<std::int32_t, 5> used = from;
  gs::detail::permute_nodes(b.program, used.data());
  bool right = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const gs::node& n = b.program.nodes[i];
    right = right && n.attr.factor == double(from[i] + 1) && n.output() == before.nodes[std::size_t(from[i])].output();
    right = right && b.program.at(n.output()).producer == std::int32_t(i);
  }
  return right;
}
static_assert(permutes({0, 1, 2, 3, 4}));
static_assert(permutes({4, 3, 2, 1, 0}));
static_assert(permutes({1, 2, 0, 4, 3}));
static_assert(permutes({1, 2, 3, 4, 0}));

}  // namespace
