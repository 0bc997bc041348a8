// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Planning needs no exceptions: compiled with -fno-exceptions.
#include <gshard/plan.hpp>

namespace gs = gshard;

namespace {

inline constexpr auto model = [](auto&, auto x) { return gs::relu(gs::sum<"AB->A">(x)); };
static_assert(gs::program<model, gs::mesh<gs::axis<"d">>, gs::in<"AB", gs::P<gs::none, "d">>>::plan.collectives() == 1);

}  // namespace
