// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A header-only program includes the header of a verb, but not that of its kernel.
// expect: gshard: the kernel of an operation is missing
// expect: op::softmax
#undef GSHARD_COMPILED_KERNELS
#include <gshard/core/program/program.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <vector>

#if !defined(MUST_FAIL)
#include <gshard/ops/rows/softmax_kernel.hpp>
#endif

namespace gs = gshard;

inline constexpr auto model = [](auto&, auto x) { return gs::softmax(x); };
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<model, mesh, gs::in<"AB">>;

void run(const gs::cluster<mesh>& cluster, const std::vector<float>& x) {
  gs::executable<program> f(cluster, {{'A', 2}, {'B', 2}});
  f(x);
}
