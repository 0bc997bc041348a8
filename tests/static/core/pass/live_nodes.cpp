// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/live_nodes.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

namespace {

/// relu(relu(x)), whose outer result is unused, and a loop, whose control nodes are all needed.
constexpr gs::graph with_dead_node(bool loops) {
  gs::builder b;
  const gs::symbol x{&b, b.add_value(b.dims_of("A", "x"), gs::dtype::f32)};
  b.program.inputs.push_back({gs::tensor_name("x"), x.id});
  const gs::symbol used = gs::relu(x);
  (void)gs::relu(used);
  const gs::symbol y = loops ? gs::repeat(gs::sum(x), [](gs::symbol s) { return s + s; }, used) : used;
  b.program.outputs.push_back({gs::tensor_name("y"), y.id});
  return b.program;
}
constexpr int live(bool loops) {
  int count = 0;
  for (const char c : gs::detail::live_nodes(with_dead_node(loops))) count += c;
  return count;
}
static_assert(with_dead_node(false).nodes.size() == 2 && live(false) == 1);
static_assert(live(true) == int(with_dead_node(true).nodes.size()) - 1);

}  // namespace
