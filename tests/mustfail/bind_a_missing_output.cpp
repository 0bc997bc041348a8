// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: bind_output of an output that the program does not have
#include <gshard/gshard.hpp>

#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
using program = gs::program<twice, mesh, gs::in<"AB">>;

void run(gs::executable<program>& f, std::vector<float>& y) {
#if defined(MUST_FAIL)
  f.bind_output<1>(y);
#else
  f.bind_output<0>(y);
#endif
}
