// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The equation of an einsum outside of a program has half an arrow.
// expect: gshard: malformed einsum equation: expected index letters
// expect: in_equation<.*"AB,BC-AC"
// expect: at_column<5>
#include <gshard/gshard.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
#define EQUATION "AB,BC-AC"
#else
#define EQUATION "AB,BC->AC"
#endif

void multiply(const gs::tensor<float, gs::P<"x", gs::none>>& a, const gs::tensor<float, gs::P<gs::none, gs::none>>& b) {
  gs::einsum<EQUATION>(a, b);
}
