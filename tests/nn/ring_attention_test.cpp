// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ring_attention_cases.hpp"

#include <doctest/doctest.h>

using namespace ring;

TEST_CASE("ring attention equals attention on one device") {
  check<one<false>, around<false>>(gs::simulate<mesh>(4));
  check<one<true>, around<true>>(gs::simulate<mesh>(4));
}

TEST_CASE("ring attention with padding, and heads over another axis") {
  check_masked<masked_one, masked_around>(gs::simulate<wide_mesh>({2, 2}));
}
