// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor outside of programs that is a partial sum of masks.
// expect: gshard: a partial sum of masks or half precision, which are not added
#include <gshard/exec/tensor/tensor.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using element = bool;
#else
using element = double;
#endif

inline gs::tensor<element, gs::P<gs::none, gs::partial<"x">>> of(const gs::any_cluster& on) { return {on, {3}}; }
