// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/gemm.hpp>

#include "gemm_check.hpp"

TEST_CASE_TEMPLATE("gemm: random shapes, empty ones too, transpositions and leading dimensions", T, float, double) {
  test::check_gemm<T>([](auto... x) { gshard::kernel::gemm(x...); }, 0);
}
