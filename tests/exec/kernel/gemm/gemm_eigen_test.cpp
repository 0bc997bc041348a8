// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/gemm_eigen.hpp>

#include "gemm_check.hpp"

TEST_CASE_TEMPLATE("gemm_eigen: random shapes, transpositions and leading dimensions", T, float, double) {
  test::check_gemm<T>([](auto... x) { gshard::kernel::detail::gemm_eigen(x...); }, 1);
}
