// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/gemm_onednn.hpp>

#include "gemm_check.hpp"

TEST_CASE("gemm_onednn: random shapes, transpositions and leading dimensions") {
  test::check_gemm<float>([](auto... x) { CHECK(gshard::kernel::detail::gemm_onednn(x...)); }, 1);
}
