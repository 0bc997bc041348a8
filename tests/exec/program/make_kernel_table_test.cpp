// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/program/make_kernel_table.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>

#include <doctest/doctest.h>

#include <array>

namespace gs = gshard;
namespace op = gs::op;

namespace {
struct only_softmax {
  static constexpr std::array used{gs::detail::used_kernels{op::softmax, gs::only(gs::dtype::f32)}};
};
}  // namespace

TEST_CASE("a table has the selected kernels") {
  constexpr gs::kernel_table table = gs::detail::make_kernel_table<only_softmax>();
  for (const gs::op_ref kind : gs::all_operations) CHECK(((table.find(kind, gs::dtype::f32) != nullptr) == (kind == op::softmax)));
  CHECK((table.find(op::softmax, gs::dtype::f64) == nullptr));
}
