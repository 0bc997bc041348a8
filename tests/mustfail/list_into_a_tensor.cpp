// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: whole data are a contiguous range .std::vector, std::span., an Eigen matrix, or an xtensor array
#include <gshard/gshard.hpp>

#include <list>
#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

int main() {
#if defined(MUST_FAIL)
  const std::list<float> x(3);
#else
  const std::vector<float> x(3);
#endif
  gs::from_global<float, gs::P<"x">>(gs::on_one_device<mesh>(), {3}, x);
}
