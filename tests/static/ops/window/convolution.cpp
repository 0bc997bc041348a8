// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/slice.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// The paper's example (arXiv 2006.16668 table 4); without padding X x taps leave X - x + 1 positions.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::conv<"BIXY,xyIO->BOXY">(input(b, "BIXY"), input(b, "PQIO"));
  const gs::dim& x = b.program.dims[std::size_t(y.get().dims[2])];
  return y.rank() == 4 && x.what == gs::dim::kind::linear && x.first_times == 1 && x.second_times == -1 && x.number == 1;
}));
// Taps of known extent, with padding that compensates for them, keep the dim.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol w = gs::slice(input(b, "PIO"), 0, 0, 3);
  return has_dims(gs::conv<"BXI,xIO->BXO">(input(b, "BXI"), w, {{.low = 1, .high = 1}}), "BXO");
}));
static_assert(fails(fault::no_taps, "BXI,IO->BXO", [](builder& b, auto&) { gs::conv<"BXI,IO->BXO">(input(b, "BXI"), input(b, "IO")); }));
static_assert(tracing::out_of_range("BX,x->BX", ".stride", {0},
                                    [](builder& b, auto&) { gs::conv<"BX,x->BX">(input(b, "BX"), input(b, "P"), {{.stride = 0}}); }));
static_assert(tracing::out_of_range("BX,x->BX", ".step", {-1},
                                    [](builder& b, auto&) { gs::conv<"BX,x->BX">(input(b, "BX"), input(b, "P"), {{.step = -1}}); }));
static_assert(tracing::out_of_range("BX,x->BX", ".dilation", {0},
                                    [](builder& b, auto&) { gs::conv<"BX,x->BX">(input(b, "BX"), input(b, "P"), {{.dilation = 0}}); }));
// The column of the letter's second occurrence in its operand.
static_assert(tracing::problem_of([](builder& b, auto&) { gs::conv<"BX,xBB->BX">(input(b, "BX"), input(b, "PBB")); }).first == 5);
static_assert(fails(fault::dims_differ, "BXI,xIO->BXO",
                    [](builder& b, auto&) { gs::conv<"BXI,xIO->BXO">(input(b, "BXI"), input(b, "PJO")); }));

// An equation that is known at run time gives the same nodes.
static_assert(tracing::alike(
    [](builder& b) { gs::conv<"BXYI,xyIO->BXYO">(input(b, "BXYI"), input(b, "PQIO"), {{.low = 1}, {.stride = 2}}); },
    [](builder& b) { gs::conv("BXYI,xyIO->BXYO", input(b, "BXYI"), input(b, "PQIO"), {{.low = 1}, {.stride = 2}}); }));
static_assert(tracing::alike([](builder& b) { gs::conv<"BX,x->BX">(input(b, "BX"), input(b, "P")); },
                             [](builder& b) { gs::conv("BX,x->BX", input(b, "BX"), input(b, "P")); }));
static_assert(fails(fault::malformed_equation, "BX,x=BX", [](builder& b, auto&) { gs::conv("BX,x=BX", input(b, "BX"), input(b, "P")); }));
static_assert(fails(fault::operand_count, "BX->BX", [](builder& b, auto&) { gs::conv("BX->BX", input(b, "BX"), input(b, "P")); }));
// The dims with a window, and the factor of its taps.
static_assert([] {
  gs::diagnostic none;
  const gs::equation e = gs::parse_equation("bXYZ,xZzyY->bXY", none);
  return !none && gs::tap_of(e, 0) < 0 && gs::tap_of(e, 1) == e.factor('x') && gs::tap_of(e, 2) < 0 && gs::tap_of(e, 3) < 0;
}());

}  // namespace
