// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/positions.hpp>
#include <gshard/core/pass/reader_counts.hpp>
#include <gshard/core/trace/map.hpp>

#include "../../tracing.hpp"

#include <cstddef>

// Nodes count once for each operand, and results count. Nodes that devices do not run do not count.
namespace gs = gshard;

namespace {

constexpr bool counts_readers() {
  gs::builder b;
  const gs::symbol x = tracing::input(b, "A"), square = x * x;
  (void)(3.0 * square);
  b.program.outputs.push_back({gs::tensor_name("y"), square.id});
  const auto counts = [&](gs::symbol s, const gs::list<char>& live) {
    return gs::detail::reader_counts(b.program, live)[std::size_t(s.id)];
  };
  const gs::list<char> all(b.program.nodes.size(), 1), live = gs::detail::live_nodes(b.program);
  return counts(x, all) == 2 && counts(square, all) == 2 && counts(x, live) == 2 && counts(square, live) == 1;
}
static_assert(counts_readers());

}  // namespace
