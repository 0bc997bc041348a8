// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A function of map of int32: it takes float and double.
// expect: gshard: an operand has another element type than the operation takes
// expect: in_operation<.*"map"
// expect: operand_number<0>
// expect: actual_element_type<.*"i32"
// expect: expected_element_types<.*"f32, f64"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto as_number = [](auto ids) { return ids; };
#else
constexpr auto as_number = [](auto ids) { return gs::cast<float>(ids); };
#endif

inline constexpr auto model = [](auto&, auto ids) { return gs::relu(as_number(ids)); };
static_assert(
    gs::program<model, gs::mesh<gs::axis<"data">>, in<"BS", void, std::int32_t>>::plan.collectives() == 0);
