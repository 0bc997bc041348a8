// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: a program is bound to an expression without memory; compute it first, into a variable
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/gshard.hpp>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
using program = gs::program<twice, mesh, gs::in<"AB">>;

void run(gs::executable<program>& f, const Eigen::MatrixXf& x) {
#if defined(MUST_FAIL)
  f.bind_input<0>(x + x);
#else
  f.bind_input<0>(x.topRows(2));  // a view
#endif
}
