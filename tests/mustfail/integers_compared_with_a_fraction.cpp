// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor of integers is compared with a fraction.
// expect: gshard: tensors of integers are combined with integers, masks with true and false
#include <gshard/eager/compare.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
constexpr auto bound = 0.5;
#else
constexpr auto bound = 1;
#endif

inline auto small(const gs::tensor<std::int32_t, gs::P<"x">>& x) { return x < bound; }
