// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Matrix multiplication by oneDNN, in float and in bf16.

#include <gshard/core/base/bf16.hpp>

#include <dnnl.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

using gshard::detail::bf16;

/// gemm by oneDNN. Returns false if oneDNN fails (no memory for packing).
inline bool gemm_onednn(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                        std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  return dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

/// True if oneDNN uses these instructions in this process. An instruction set has the bits of all sets that it extends.
inline bool onednn_uses(dnnl::cpu_isa set) {
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & static_cast<unsigned>(set)) == static_cast<unsigned>(set);
}

/// The shape of a product of contiguous bf16 matrices: op(A) is m x k, op(B) is k x n.
struct bf16_product {
  bool trans_a, trans_b, adds;
  std::int64_t m, n, k, ldc;

  auto operator<=>(const bf16_product&) const = default;
};

/// The number of threads that oneDNN uses if this thread calls it. A prepared product needs exactly the number it was prepared for.
inline int onednn_threads() {
#if defined(_OPENMP)
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

/// C = op(A) * op(B), plus C if `adds`, summed in float. Prepares each shape once per thread.
inline void gemm_onednn(const bf16_product& p, const bf16* a, const bf16* b, float* c) {
  using dnnl::memory;
  struct prepared {
    memory::desc a, b, c;
    dnnl::matmul product;
  };
  thread_local dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  thread_local dnnl::stream stream(engine);
  thread_local std::map<std::pair<bf16_product, int>, prepared> known;
  const std::pair key(p, onednn_threads());
  auto at = known.find(key);
  if (at == known.end()) {
    const auto type = memory::data_type::bf16;
    const memory::desc x({p.m, p.k}, type, p.trans_a ? memory::dims{1, p.m} : memory::dims{p.k, 1}),
        y({p.k, p.n}, type, p.trans_b ? memory::dims{1, p.k} : memory::dims{p.n, 1}),
        z({p.m, p.n}, memory::data_type::f32, memory::dims{p.ldc, 1});
    dnnl::primitive_attr adding;
    if (p.adds) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      adding.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine, x, y, z, adding);
#else
    const dnnl::matmul::primitive_desc description({x, y, z}, adding, engine);
#endif
    at = known.emplace(key, prepared{x, y, z, dnnl::matmul(description)}).first;
  }
  const prepared& ready = at->second;
  ready.product.execute(stream, {{DNNL_ARG_SRC, memory(ready.a, engine, const_cast<bf16*>(a))},
                                 {DNNL_ARG_WEIGHTS, memory(ready.b, engine, const_cast<bf16*>(b))},
                                 {DNNL_ARG_DST, memory(ready.c, engine, c)}});
  stream.wait();
}

}}}}  // namespace gshard::v0::kernel::detail
