// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/assignment.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::fault, gs::symbol;
using list = std::initializer_list<int>;

namespace {

using mesh = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 4>>;

struct reading {
  gs::sharding layout;
  fault problem;
};
constexpr reading read(list pieces, list devices, const gs::mesh_shape& shape = mesh::shape) {
  gs::builder b = tracing::on(shape);
  const symbol x = tracing::input(b, "ABC"), y = gs::assign(x, pieces, devices);
  return {y.id >= 0 ? y.get().layout : gs::sharding{}, b.program.problem.what};
}
constexpr bool lies(const reading& r, list a, list b, list c) {
  return r.problem == fault::nothing && tracing::reads(r.layout[0], a) && tracing::reads(r.layout[1], b) && tracing::reads(r.layout[2], c);
}

// The paper's example: [3, 16, 64] in pieces of [3, 8, 16].
static_assert(lies(read({1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), {}, {0}, {1}));
// The order of the devices says which axis is which, and which is major.
static_assert(lies(read({1, 4, 2}, {0, 4, 1, 5, 2, 6, 3, 7}), {}, {1}, {0}));
static_assert(lies(read({8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7}), {0, 1}, {}, {}));
static_assert(lies(read({8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}), {1, 0}, {}, {}));
// No axes do that; too few devices; extents that are not known.
static_assert(read({8, 1, 1}, {7, 6, 5, 4, 3, 2, 1, 0}).problem == fault::no_such_assignment);
static_assert(read({1, 2, 2}, {0, 1, 2, 3}).problem == fault::no_such_assignment);
static_assert(read({2, 1, 1}, {0, 1}, gs::mesh<gs::axis<"x">>::shape).problem == fault::no_such_assignment);
static_assert(read({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}).problem == fault::rank_mismatch);

}  // namespace
