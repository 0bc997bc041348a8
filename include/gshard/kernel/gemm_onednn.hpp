// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <dnnl.h>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

/// gemm by oneDNN. False if it could not be done (no memory for what it packs).
inline bool gemm_onednn(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                        std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  return dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

}}}}  // namespace gshard::v0::kernel::detail
