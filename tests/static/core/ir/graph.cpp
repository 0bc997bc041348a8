// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/graph.hpp>
#include <gshard/ops/window/convolution.hpp>

#include <cstdint>
#include <type_traits>

namespace gs = gshard;

namespace {

static_assert(gs::dtype_of<float> == gs::dtype::f32 && gs::dtype_of<double> == gs::dtype::f64 &&
              gs::dtype_of<std::int32_t> == gs::dtype::i32);
static_assert(gs::size_of(gs::dtype::f32) == sizeof(float) && gs::size_of(gs::dtype::f64) == sizeof(double) &&
              gs::size_of(gs::dtype::i32) == sizeof(std::int32_t));

// Plans are tables of these: flat, and copied thousands of times while the compiler runs.
static_assert(std::is_trivially_copyable_v<gs::node> && std::is_trivially_copyable_v<gs::value> &&
              std::is_trivially_copyable_v<gs::parameter> && std::is_trivially_copyable_v<gs::port> &&
              std::is_trivially_copyable_v<gs::dim>);

static_assert([] {
  gs::sharding_rule r;
  for (int f = 0; f < 16; f += 3) r.block(f);
  for (int f = 0; f < 16; ++f)
    if (r.is_blocked(f) != (f % 3 == 0)) return false;
  return true;
}());

// Every operation takes at least as many operands as a user's map, and its gradient one more.
static_assert(gs::sharding_rule::most_in >= gs::pointwise::most_operands);

static_assert([] {
  gs::graph g;
  g.values.push_back({});
  g.at(0).producer = 7;
  const gs::graph& read = g;
  return read.at(0).producer == 7 && read.at(0).rank() == 0 && !read.problem;
}());

// Equal windows share a row. A full table accepts no more.
static_assert([] {
  gs::list<gs::window> windows = {gs::window{}};
  for (int round = 0; round < 2; ++round)
    for (int i = 1; i <= gs::dim_list::largest; ++i)
      if (gs::row_of(windows, {.low = i}) != i) return false;
  return gs::row_of(windows, {.low = -1}) == 0 && gs::row_of(windows, {.low = 7}) == 7;
}());

// Taps from another tensor.
static_assert([] {
  gs::node n;
  n.kind = gs::op::convolution;
  n.inputs = 2;
  for (const int t : {0, 5}) n.attr.dims.push_back(t);
  const bool found = gs::tap_factor(n, 0, 0) == -1 && gs::tap_factor(n, 0, 1) == 4 && gs::tap_factor(n, 1, 1) == -1;
  n.inputs = 1;
  return found && gs::tap_factor(n, 0, 1) == -1;
}());

}  // namespace
