// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Labels are indices, not floats.
// expect: gshard: an operand has another element type than the operation takes
// expect: in_operation<.*"cross_entropy"
// expect: operand_number<1>
// expect: actual_element_type<.*"f32"
// expect: expected_element_types<.*"i32"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using label = float;
#else
using label = std::int32_t;
#endif

inline constexpr auto model = [](auto&, auto logits, auto labels) {
  return gs::cross_entropy(logits, labels);
};
static_assert(
    gs::program<model, gs::mesh<gs::axis<"data">>, in<"BV">, in<"B", void, label>>::plan.collectives() == 0);
