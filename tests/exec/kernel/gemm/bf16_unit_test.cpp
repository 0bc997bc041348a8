// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/bf16_unit.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
using gs::bf16_unit;
using gs::kernel::detail::bf16_support, gs::kernel::detail::choose_bf16_unit;

// AMX only if CPUID describes its tiles. AVX512_BF16 only if it is faster than float.
static_assert(choose_bf16_unit({.avx512 = true, .amx = true, .describes_tiles = true, .is_intel = true}) == bf16_unit::amx);
static_assert(choose_bf16_unit({.avx512 = true, .amx = true, .describes_tiles = false, .is_intel = true}) == bf16_unit::float32);
static_assert(choose_bf16_unit({.avx512 = true, .amx = false, .describes_tiles = true, .is_intel = true}) == bf16_unit::float32);
static_assert(choose_bf16_unit({.avx512 = true, .amx = false, .describes_tiles = false, .is_intel = false}) == bf16_unit::avx512);
static_assert(choose_bf16_unit({}) == bf16_unit::float32);

TEST_CASE("bf16_unit_in_use: named, and needs oneDNN") {
  const bf16_unit used = gs::bf16_unit_in_use();
  MESSAGE("products of bf16 by " << std::string(gs::name(used)));
  CHECK(used == gs::bf16_unit_in_use());
  if (!GSHARD_HAS_ONEDNN) CHECK(used == bf16_unit::float32);
  CHECK((gs::name(used) == "float" || gs::name(used) == "AVX512_BF16" || gs::name(used) == "AMX"));
}
