// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/gemm_blas.hpp>

#include "gemm_check.hpp"

TEST_CASE_TEMPLATE("gemm_blas: random shapes, transpositions and leading dimensions", T, float, double) {
  test::check_gemm<T>([](auto... x) { gshard::kernel::detail::gemm_blas(x...); }, 1);
}

static_assert(gshard::kernel::detail::fits_blas(0x7fffffff, std::int64_t(1)) && !gshard::kernel::detail::fits_blas(std::int64_t(1) << 31));
