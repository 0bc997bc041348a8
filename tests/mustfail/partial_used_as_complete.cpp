// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: a partial sum is used as a complete tensor; reshard it first
#include <gshard/gshard.hpp>

namespace gs = gshard;
using gs::none;
using gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

int main() {
  const std::vector<float> data(12);
  const auto on = gs::simulate<mesh>(2);
  const auto a = gs::from_global<float, P<none, "x">>(on, {3, 4}, data);
  const auto b = gs::from_global<float, P<"x", none>>(on, {4, 3}, data);
  const auto c = gs::einsum<"AB,BC->AC">(a, b);  // the contracted dim is sharded: partial<"x">
#if defined(MUST_FAIL)
  gs::softmax(c);
#else
  gs::softmax(gs::reshard<P<"x", none>>(c));
#endif
}
