// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/window/slice.hpp>

#include <cstddef>
#include <string_view>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::map, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// The dims of an operand of lower rank are matched in their order, in exactly one way.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GBHTT");
  const auto lines_up = [&](std::string_view letters, std::initializer_list<int> factors) {
    const symbol y = input(b, letters) + x;
    return has_dims(y, "GBHTT") && tracing::reads(b.program.nodes.back().rule.in[0], factors) &&
           tracing::reads(b.program.nodes.back().rule.in[1], {0, 1, 2, 3, 4});
  };
  return lines_up("TT", {3, 4}) && lines_up("GBTT", {0, 1, 3, 4}) && lines_up("GB", {0, 1}) && lines_up("GH", {0, 2}) &&
         lines_up("", {}) && lines_up("GBHTT", {0, 1, 2, 3, 4});
}));
// A repeated dim is matched by the dims around it.
static_assert(tracing::holds([](builder& b, auto&) {
  input(b, "THB") + input(b, "THTBT");
  return tracing::reads(b.program.nodes.back().rule.in[0], {0, 1, 3});
}));
template <class F>
constexpr bool is_ambiguous(F f, int operand) {
  const gs::diagnostic d = tracing::problem_of(f);
  return d.what == fault::ambiguous_dims && d.subject.view() == "map" && d.first == operand;
}
static_assert(is_ambiguous([](builder& b, auto&) { input(b, "TT") - input(b, "T"); }, 1));
static_assert(is_ambiguous([](builder& b, auto&) { input(b, "T") * input(b, "GTBT"); }, 0));
static_assert(is_ambiguous([](builder& b, auto&) { input(b, "TTT") / input(b, "TT"); }, 1));
static_assert(is_ambiguous([](builder& b, auto&) { input(b, "THB") + input(b, "THTHB"); }, 0));
static_assert(is_ambiguous([](builder& b, auto&) { gs::less(input(b, "GT"), input(b, "GTT")); }, 0));
static_assert(is_ambiguous([](builder& b, auto&) { gs::equal(input(b, "GTT"), input(b, "GT")); }, 1));
static_assert(is_ambiguous([](builder& b, auto&) { gs::select(input(b, "TT"), input(b, "T"), input(b, "")); }, 1));
static_assert(is_ambiguous(
    [](builder& b, auto&) { map<[](auto p, auto q, auto r) { return p * q + r; }>(input(b, "T"), input(b, ""), input(b, "TBT")); }, 0));
// Dims of one fixed extent are one dim.
static_assert(is_ambiguous([](builder& b, auto&) {
  const symbol square = gs::slice(gs::slice(input(b, "AB"), 0, 0, 4), 1, 0, 4);
  square + gs::slice(input(b, "A"), 0, 0, 4);
}, 1));
// A selection between the number and a constant of any type.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  const symbol y = map<[](auto v) { return v < 0 ? 0 : v; }>(x) + map<[](auto v) { return 0 < v ? v : 0.0f; }>(x);
  return has_dims(y + map<[](auto v) { return v <= 1.0 ? v : 1.0; }>(x), "AB");
}));
// A verb that calls another one has the place of its call.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = input(b, "AB");
  const auto is_here = [&](symbol made) {
    return std::string_view(b.program.nodes[std::size_t(made.get().producer)].place.file).ends_with("map.cpp");
  };
  return is_here(x > y) && is_here(x >= y) && is_here(x >= 3) && is_here(3 <= x) && is_here(3 < x) && is_here(1 - x) && is_here(1 / x);
}));
// A dim of extent 1 is not repeated.
static_assert(fails(fault::dims_do_not_broadcast, "map", [](builder& b, auto&) { input(b, "AB") + gs::expand_dims<0>(input(b, "B")); }));
// If two operands have one rank, the first determines the order. The other must have it.
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(input(b, "AB") * input(b, "AB"), "AB");
}));
static_assert(fails(fault::dims_do_not_broadcast, "map",
                    [](builder& b, auto&) { input(b, "AB") + input(b, "BA"); }));
static_assert(fails(fault::dims_do_not_broadcast, "map",
                    [](builder& b, auto&) { input(b, "A") + input(b, "B"); }));
static_assert(fails(fault::dims_do_not_broadcast, "map",
                    [](builder& b, auto&) { input(b, "ABC") / input(b, "CA"); }));
static_assert(tracing::problem_of([](builder& b, auto&) { input(b, "AB") + input(b, "C"); }).first == 1);

static_assert(tracing::wrong_type("map", 0, "i32", "f32, f64",
                                  [](builder& b, auto&) { gs::relu(input(b, "A", dtype::i32)); }));
static_assert(tracing::wrong_type("map", 1, "f64", "f32",
                                  [](builder& b, auto&) { input(b, "A") + input(b, "A", dtype::f64); }));

// A partial sum may pass through sums and differences, but not through products.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A");
  const auto linear = [&](symbol) { return b.program.nodes.back().attr.function->linear; };
  return linear(x + x) && linear(x - x) && !linear(x * x) && !linear(x / x) && !linear(gs::relu(x));
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A");
  map<[](auto p, auto q, auto r, auto s, auto t) { return p * q + r * s - t; }>(x, x, x, x, x);
  return b.program.nodes.back().inputs == 5 && b.program.nodes.back().attr.function->arity == 5;
}));
// One function has one entry, so that equal nodes are recognized.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A");
  gs::relu(x);
  const gs::pointwise* first = b.program.nodes.back().attr.function;
  gs::relu(gs::relu(x));
  return b.program.nodes.back().attr.function == first;
}));

static_assert(tracing::holds([](builder& b, auto&) {
  2.5 * input(b, "AB");
  const gs::attributes a = b.program.nodes.back().attr;
  gs::scale_by<"BA">(input(b, "AB"), -0.5);
  const gs::attributes& by = b.program.nodes.back().attr;
  return a.factor == 2.5 && a.dims.empty() && by.factor == 1 && gs::own<gs::scale_attributes>(by).power == -0.5 &&
         by.dims.size() == 2;
}));

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::cast<float>(input(b, "AB", dtype::i32));
  return has_dims(y, "AB") && y.get().type == dtype::f32 && b.program.nodes.back().kind == op::cast;
}));

static_assert([] {
  builder b;
  b.fail(fault::unknown_axis, "w");
  const symbol none = b.nothing();
  return (none + none).id < 0 && (2.0 * none).id < 0 && (1 / (1 - (none + 2) / 3)).id < 0 && (-none).id < 0 && gs::relu(none).id < 0 &&
         gs::cast<float>(none).id < 0 && gs::scale_by<"A">(none, 1).id < 0;
}());
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::stop_gradient(input(b, "GSE")), "GSE"); }));

}  // namespace
