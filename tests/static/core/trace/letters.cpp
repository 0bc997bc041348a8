// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/letters.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::fault, tracing::input;

namespace {

constexpr gs::equation read(std::string_view text) {
  gs::diagnostic none;
  return gs::parse_equation(text, none);
}
// "ab,bc->ca" of two tensors.
constexpr gs::diagnostic matched(const char* first, const char* second) {
  return tracing::problem_of([=](gs::builder& b, auto&) {
    const gs::equation e = read("ab,bc->ca");
    const std::array<gs::symbol, 2> operands{input(b, first), input(b, second)};
    const auto dim_of = gs::detail::dims_of_letters(b, operands, e, "test");
    const gs::dim_list output = gs::detail::output_dims(e, dim_of);
    if (!b.failed() && (output[0] != operands[1].get().dims[1] || output[1] != operands[0].get().dims[0])) b.fail(fault::bad_range, "test");
  });
}
static_assert(!matched("XY", "YZ") && !matched("XX", "XX"));
static_assert(matched("XY", "ZY").what == fault::dims_differ && matched("XY", "ZY").first == 1 && matched("XY", "ZY").second == 0);
static_assert(matched("XYZ", "YZ").what == fault::rank_mismatch);

}  // namespace
