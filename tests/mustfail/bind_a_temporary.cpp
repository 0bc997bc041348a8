// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: a program is bound to the memory of a temporary; bind a variable that outlives the executable
#include <gshard/gshard.hpp>

#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
using program = gs::program<twice, mesh, gs::in<"AB">>;

void run(gs::executable<program>& f, const std::vector<float>& x) {
#if defined(MUST_FAIL)
  f.bind_input<0>(std::vector<float>(x));
#else
  f.bind_input<0>(x);
#endif
}
