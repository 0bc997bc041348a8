// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An input has more letters than its partition spec has entries.
// expect: gshard: a tensor has another number of dims than its partition spec
// expect: in_operation<.*"GSM"
// expect: expected_rank<3>
// expect: actual_rank<2>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using tokens = in<"GSM", P<"data", none>>;
#else
using tokens = in<"GSM", P<"data", none, none>>;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, tokens>::plan.collectives() == 0);
