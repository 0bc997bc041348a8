// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A vector is added to a matrix outside of a program, where dims have no names.
// expect: gshard: elementwise operands have equally many dims, or none: state the repeated dims by broadcast
// expect: actual_type<.*replicated
#include <gshard/gshard.hpp>

namespace gs = gshard;
using gs::none, gs::P;

using matrix = gs::tensor<float, P<"x", none>>;
using vector = gs::tensor<float, P<none>>;

#if defined(MUST_FAIL)
void add(const matrix& a, const vector& b) { a + b; }
#else
void add(const matrix& a, const vector& b) { a + gs::broadcast<"k,qk->qk">(b, a); }
#endif
