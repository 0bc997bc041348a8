// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An input is a partial sum of masks, which cannot be added.
// expect: gshard: an operand has another element type than the operation takes
// expect: operand_name<.*"A"
// expect: actual_element_type<.*"bool"
// expect: expected_element_types<.*"f32, f64, i32, i64, c64, c128"
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using element = bool;
#else
using element = std::int64_t;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::reverse(x, 0); };
using input = gs::in<"A", gs::P<gs::none, gs::partial<"x">>, element>;
static_assert(gs::program<model, gs::mesh<gs::axis<"x">>, input>::plan.count(gs::op::all_reduce) == 1);
