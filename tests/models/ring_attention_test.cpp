// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ring_attention_cases.hpp"

#include <doctest/doctest.h>

using namespace ring;

// In the forward pass, the blocks of k and v move on 3 times. In the backward pass, their gradients do as well.
static_assert(around<false>::plan.count(gs::op::collective_permute) == 12 && around<false>::plan.collectives() == 12);
static_assert(around<true>::plan.count(gs::op::collective_permute) == 12 && around<true>::plan.collectives() == 12);
static_assert(masked_around::plan.count(gs::op::collective_permute) == 5 && masked_around::plan.collectives() == 5);

TEST_CASE("ring attention equals attention on one device") {
  check<one<false>, around<false>>(gs::simulate<mesh>(4));
  check<one<true>, around<true>>(gs::simulate<mesh>(4));
}

TEST_CASE("ring attention with padding, and heads over another axis") {
  check_masked<masked_one, masked_around>(gs::simulate<wide_mesh>({2, 2}));
}
