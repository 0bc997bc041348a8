// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/storage.hpp>
#include <gshard/train/adam.hpp>

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;

namespace {

/// Value 0 is an input and 1 a parameter; a view of 0, a view of this view, an update of 1, and a map of the view.
constexpr gs::graph shared() {
  gs::graph g;
  for (int v = 0; v < 6; ++v) g.values.push_back({});
  const auto add = [&](gs::op_ref kind, int operand, int result, int in_place) {
    gs::node n;
    n.kind = kind;
    n.inputs = n.outputs = 1;
    n.in_place = std::uint8_t(in_place);
    n.in[0] = operand;
    n.out[0] = result;
    g.at(result).producer = std::int32_t(g.nodes.size());
    g.nodes.push_back(n);
  };
  add(op::reshape, 0, 2, 0);
  add(op::reshape, 2, 3, 0);
  add(op::adam, 1, 4, 1);
  add(op::map, 3, 5, 0);
  return g;
}
constexpr std::int32_t storage(std::int32_t v) {
  const gs::graph g = shared();
  return gs::detail::storage_of(g.values.data(), g.nodes.data(), v);
}
constexpr std::int32_t root(std::int32_t v) {
  const gs::graph g = shared();
  return gs::detail::storage_roots(g.nodes, g.values.size())[std::size_t(v)];
}
static_assert(storage(0) == 0 && storage(2) == 0 && storage(3) == 0 && storage(4) == 4 && storage(5) == 5);
static_assert(root(0) == 0 && root(1) == 1 && root(2) == 0 && root(3) == 0 && root(4) == 1 && root(5) == 5);

}  // namespace
