// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An executable is made with some of a program's inputs, and with inputs of another type.
// expect: gshard: executable<program>\(cluster, .*, store, x, ...\) takes a cluster, extents, maybe a store, and maybe all inputs
// expect: gshard: executable<program>\(cluster, .*, store, x, ...\) takes a cluster, extents, maybe a store, and maybe all inputs
// expect: gshard: executable<program>\(cluster, .*, store, x, ...\) takes a cluster, extents, maybe a store, and maybe all inputs
// expect: gshard: executable<program>\(cluster, .*, store, x, ...\) takes a cluster, extents, maybe a store, and maybe all inputs
#include <gshard/gshard.hpp>

#include <vector>

namespace gs = gshard;

using mesh = gs::mesh<gs::axis<"data">>;
inline constexpr auto model = [](auto&, auto x, auto bias) { return x + bias; };
using program = gs::program<model, mesh, gs::in<"B@data">, gs::in<"">>;

void run(const std::vector<float>& x, const std::vector<float>& bias, const std::vector<double>& numbers) {
  const auto cluster = gs::simulate<mesh>(2);
  static_cast<void>(numbers);
#if defined(MUST_FAIL)
  gs::executable<program>(cluster, x);
  gs::executable<program>(cluster, {{'B', 3}}, numbers, bias);
  gs::executable<program>(x, bias);
  gs::executable<program>(gs::replan, cluster, {{'B', 3}}, bias);
#else
  gs::executable<program>(cluster, x, bias);
  gs::executable<program>(cluster, {{'B', 3}}, x, bias);
  gs::executable<program>(gs::replan, cluster, {{'B', 3}}, x, bias);
#endif
}
