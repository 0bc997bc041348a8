// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/program/kernels.hpp>
#include <gshard/kernel_headers.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;
namespace op = gs::op;
using gs::dtype;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr auto product = [](auto&, auto x, auto y) { return gs::einsum<"ab,bc->ac">(x, y); };
inline constexpr auto softmax_of_rows = [](auto&, auto x) { return gs::softmax(x); };
using multiply = gs::program<product, mesh, gs::in<"AB", gs::P<"x", gs::none>>, gs::in<"BC">>;
using loop = gs::program<product, mesh, gs::in<"AB", gs::P<"x", gs::none>>, gs::in<"BC", gs::P<gs::none, "x">>, gs::extent<'A', 8>,
                          gs::extent<'B', 8>, gs::extent<'C', 8>, gs::loop_above<0>>;
using normalize = gs::program<softmax_of_rows, mesh, gs::in<"AB", gs::P<"x", gs::none>, double>>;

}  // namespace

// Kernels that the plan does not use are not named, and therefore not compiled.
static_assert([] {
  for (const gs::op_ref kind : gs::all_operations)
    for (const dtype type : {dtype::f32, dtype::f64}) {
      const auto names = [&](const auto& used) {
        for (const gs::detail::used_kernels& k : used)
          if (gs::op_ref(*k.kind) == kind && (k.types & gs::only(type)) != 0) return true;
        return false;
      };
      if (names(gs::detail::kernels_in<multiply>::used) != (kind == op::einsum && type == dtype::f32)) return false;
      if (names(gs::detail::kernels_in<loop>::used) != (kind == op::looped_einsum && type == dtype::f32)) return false;
      if (names(gs::detail::kernels_in<normalize>::used) != (kind == op::softmax && type == dtype::f64)) return false;
    }
  return true;
}());

TEST_CASE("a plan that is bound to the kernels of another is refused") {
  const auto on = gs::simulate<mesh>(2);
  const gs::dims dims{{'A', 4}, {'B', 3}, {'C', 2}};
  gs::executor(multiply::plan, gs::kernels_of<multiply>, on, dims, gs::parameter_store(on));
  gs::executor(loop::plan, gs::kernels_of<loop>, on, {{'A', 8}, {'B', 8}, {'C', 8}}, gs::parameter_store(on)).run({});
  CHECK_THROWS_WITH_AS(gs::executor(multiply::plan, gs::kernels_of<normalize>, on, dims, gs::parameter_store(on)),
                       doctest::Contains("executor: no kernel of this program runs a step of kind einsum, in einsum("), gs::error);
}
