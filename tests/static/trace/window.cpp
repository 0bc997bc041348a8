// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/window.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr const gs::window& window_of_last(const builder& b, int d) {
  const gs::node& n = b.program.nodes.back();
  return b.program.windows[std::size_t(gs::window_row(n, 0, d))];
}

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::slice(input(b, "AB"), 1, 2, 9, 3);
  const gs::window& w = window_of_last(b, 1);
  return has_dims(y, "A#") && b.program.dims[std::size_t(w.over)].number == 3 && w.stride == 3 && w.low == 2 &&
         gs::window_row(b.program.nodes.back(), 0, 0) == 0;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::pad(input(b, "AB"), 0, 2, 1, 1);
  const gs::dim& d = b.program.dims[std::size_t(y.get().dims[0])];
  return d.what == gs::dim::kind::linear && d.first_times == 2 && d.number == 2 && window_of_last(b, 0).dilation == 2;
}));
// If the extent does not change, the dim does not change.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  return has_dims(gs::pad(x, 0, 1, -1), "AB") && has_dims(gs::reverse(x, 1), "AB") && has_dims(gs::roll(x, 0, 7), "AB") &&
         window_of_last(b, 0).wrap;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::concat({x, gs::slice(x, 0, 0, 2), x}, 0);
  const gs::node& n = b.program.nodes.back();
  return y.rank() == 2 && n.inputs == 3 && gs::window_row(n, 1, 0) != gs::window_row(n, 2, 0) && gs::window_row(n, 1, 1) == 0;
}));
// The gradient of the gradient reads as the operation does.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  for (const symbol y : {gs::slice(x, 0, 1, 8, 2), gs::pad(x, 0, 1, 2, 3), gs::reverse(x, 0), gs::roll(x, 0, 2)}) {
    const gs::node n = b.program.nodes[std::size_t(y.get().producer)];
    const symbol back = gs::detail::emit_moved_back(n, x, y);
    const gs::node m = b.program.nodes.back();
    if (gs::detail::emit_moved_back(m, y, back).get().dims != y.get().dims || !(b.program.nodes.back().rule.windows == n.rule.windows))
      return false;
  }
  return true;
}));
// One node reads several dims. For a single dim it is the node of the verb for one dim.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::slice(x, {{1, 2, 9, 3}, {0, 1, 5}});
  const bool reads = b.program.nodes.size() == 1 && window_of_last(b, 1).stride == 3 && window_of_last(b, 0).low == 1;
  return reads && has_dims(y, "##") && has_dims(gs::pad(x, {{0, 1, -1}, {1, 2, 1, 1}}, 0.5), "A+") &&
         b.program.nodes.back().attr.fill == 0.5 && has_dims(gs::reverse(x, {0, 1}), "AB") && window_of_last(b, 0).stride == -1 &&
         window_of_last(b, 1).stride == -1 && has_dims(gs::roll(x, {{1, 3}, {0, -2}}), "AB") && window_of_last(b, 0).low == 2 &&
         b.program.nodes.size() == 4;
}));
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::slice(x, 1, 2, 9, 3), gs::pad(x, 0, 2, 1, 1, 0.5), gs::reverse(x, 0), gs::roll(x, 1, 3);
    },
    [](builder& b) {
      const symbol x = input(b, "AB");
      const gs::list<int> dims{0};
      gs::slice(x, {{1, 2, 9, 3}}), gs::pad(x, {{0, 2, 1, 1}}, 0.5), gs::reverse(x, dims), gs::roll(x, {{1, 3}});
    }));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  return gs::reverse(x, gs::list<int>{}).id == x.id && b.program.nodes.empty();
}));
static_assert(tracing::out_of_range("slice", "start, stop", {3, 2}, [](builder& b, auto&) { gs::slice(input(b, "AB"), {{0, 1, 2}, {1, 3, 2}}); }));
static_assert(tracing::out_of_range("pad", "dim", {0}, [](builder& b, auto&) { gs::pad(input(b, "AB"), {{0, 1, 2}, {0, 3, 2}}); }));
static_assert(tracing::out_of_range("pad", "interior", {-1}, [](builder& b, auto&) { gs::pad(input(b, "AB"), 0, 1, 1, -1); }));
static_assert(fails(fault::rank_mismatch, "reverse", [](builder& b, auto&) { gs::reverse(input(b, "AB"), {0, 2}); }));
static_assert(fails(fault::rank_mismatch, "roll", [](builder& b, auto&) { gs::roll(input(b, "AB"), {{-1, 1}}); }));
static_assert(tracing::out_of_range("slice", "start, stop", {3, 2}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, 3, 2); }));
static_assert(tracing::out_of_range("slice", "start", {-1}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, -1, 2); }));
static_assert(tracing::out_of_range("slice", "stride", {0}, [](builder& b, auto&) { gs::slice(input(b, "AB"), 0, 1, 2, 0); }));
static_assert(tracing::out_of_range("slice", "stop, extent of x", {5, 4},
                                    [](builder& b, auto&) { gs::slice(gs::slice(input(b, "AB"), 0, 0, 4), 0, 0, 5); }));
// A number that does not fit into int is reported as the nearest int.
static_assert(tracing::out_of_range("slice", "start", {std::numeric_limits<int>::max()}, [](builder& b, auto&) {
  gs::slice(input(b, "AB"), 0, std::int64_t(1) << 40, std::int64_t(1) << 41);
}));
static_assert(fails(fault::rank_mismatch, "roll", [](builder& b, auto&) { gs::roll(input(b, "AB"), 2, 1); }));
static_assert(fails(fault::dims_differ, "concat", [](builder& b, auto&) { gs::concat({input(b, "AB"), input(b, "AC")}, 0); }));

}  // namespace
