// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/build_options.hpp>

#include <doctest/doctest.h>

#include <string_view>

TEST_CASE("build options name the flags of a source that change bits") {
  constexpr std::string_view options = GSHARD_FLOAT_OPTIONS;
#if defined(__AVX__)
  CHECK(options.starts_with(", AVX"));
#endif
#if defined(__FMA__)
  CHECK(options.find(", FMA") != std::string_view::npos);
#else
  CHECK(options.find("FMA") == std::string_view::npos);
#endif
#if !defined(__FAST_MATH__)
  CHECK(options.find("fast") == std::string_view::npos);
#endif
  CHECK((std::string_view(GSHARD_MATRIX_LIBRARIES).find("BLAS") != std::string_view::npos) == (GSHARD_HAS_BLAS == 1));
}
