// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses the processor instructions for bf16 matrix products.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/kernel/gemm/gemm.hpp>

#if GSHARD_HAS_ONEDNN && (defined(__x86_64__) || defined(__i386__))
#include <cpuid.h>
#endif

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The instructions that multiply bf16 matrices: float instructions, or bf16 instructions of the processor.
enum class bf16_unit : std::uint8_t { float32, avx512, amx };

constexpr std::string_view name(bf16_unit u) {
  switch (u) {
    case bf16_unit::avx512: return "AVX512_BF16";
    case bf16_unit::amx: return "AMX";
    default: return "float";
  }
}

namespace kernel { namespace detail {

/// The properties of processor and oneDNN that determine the unit.
struct bf16_support {
  bool avx512 = false, amx = false;  // oneDNN uses these instructions
  bool describes_tiles = false;      // CPUID lists AMX's tiles
  bool is_intel = false;
};

/// oneDNN reads the sizes of AMX tiles from CPUID. If a hypervisor hides them, its kernels stop with SIGILL. Products in AVX512_BF16 take
/// twice as long as in float on Intel processors, and half as long on AMD processors.
constexpr bf16_unit choose_bf16_unit(const bf16_support& s) {
  if (s.amx) return s.describes_tiles ? bf16_unit::amx : bf16_unit::float32;
  return s.avx512 && !s.is_intel ? bf16_unit::avx512 : bf16_unit::float32;
}

#if GSHARD_HAS_ONEDNN
inline bf16_support this_bf16_support() {
  bf16_support s{.avx512 = onednn_uses(dnnl::cpu_isa::avx512_core_bf16), .amx = onednn_uses(dnnl::cpu_isa::avx512_core_amx)};
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  s.is_intel = __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_INTEL_ebx && c == signature_INTEL_ecx && d == signature_INTEL_edx;
  const bool has_palette = __get_cpuid_count(0x1d, 0, &a, &b, &c, &d) != 0 && a >= 1;
  const bool has_palette_1 = has_palette && __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) != 0;
  s.describes_tiles = has_palette_1 && b == ((8u << 16) | 64u) && (c & 0xffffu) == 16;  // 8 tiles of 16 rows of 64 bytes
#endif
  return s;
}
#endif

}}  // namespace kernel::detail

/// The unit for the large products of programs with `bf16_products` in this process. Without oneDNN it is `float32`; factors are still
/// rounded to bf16.
///
/// Never changes oneDNN's settings. oneDNN fixes its instruction set at its first call, which may be this one. An application that
/// restricts the set (by `DNNL_MAX_CPU_ISA` or `dnnl::set_max_cpu_isa`) must do so before. @see bf16_products
bf16_unit bf16_unit_in_use();

#if GSHARD_HAS_BODIES
GSHARD_INLINE bf16_unit bf16_unit_in_use() {
#if GSHARD_HAS_ONEDNN
  static const bf16_unit unit = kernel::detail::choose_bf16_unit(kernel::detail::this_bf16_support());
  return unit;
#else
  return bf16_unit::float32;
#endif
}
#endif

}}  // namespace gshard::v0
