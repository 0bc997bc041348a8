// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: an input of a program is a tensor, a contiguous range .std::vector, std::span., an Eigen matrix, or an xtensor array
#include <gshard/gshard.hpp>

#include <list>
#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
using program = gs::program<twice, mesh, gs::in<"A">>;

int main() {
  gs::executable<program> run(gs::on_one_device<mesh>(), {{'A', 3}});
#if defined(MUST_FAIL)
  const std::list<float> x(3);
#else
  const std::vector<float> x(3);
#endif
  run(x);
}
