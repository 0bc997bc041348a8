// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/positions.hpp>
#include <gshard/core/trace/map.hpp>

#include "../../tracing.hpp"

// Devices run the nodes that some result needs, in the order of the program. Other nodes have no position.
namespace gs = gshard;

namespace {

constexpr bool has_positions() {
  gs::builder b;
  const gs::symbol x = tracing::input(b, "A");
  const gs::symbol first = 2.0 * x;
  (void)(3.0 * first);
  b.program.outputs.push_back({gs::tensor_name("y"), (4.0 * first).id});
  gs::detail::set_positions(b.program);
  const auto& n = b.program.nodes;
  return n.size() == 3 && n[0].place.position == 0 && n[1].place.position == -1 && n[2].place.position == 1;
}
static_assert(has_positions());

}  // namespace
