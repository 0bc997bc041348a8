// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program gets its mesh in the place of the model: one sentence, and none about the model.
// expect: gshard: program<model, mesh, ...> takes a mesh, and then inputs \(in<...>\) and options
#include <gshard/plan.hpp>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"data">>;

#if defined(MUST_FAIL)
using layer = gs::program<mesh{}, gs::in<"BM">>;
#else
inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
using layer = gs::program<model, mesh, gs::in<"BM">>;
#endif
static_assert(layer::plan.collectives() == 0);
