// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/all_kernels.hpp>

#include <gshard/exec/bind/make_kernel_table.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;
using gs::op, gs::dtype;

TEST_CASE("every operation has a kernel of its own for each type, but for those that communicate") {
  const gs::kernel_table::binder none = &gs::detail::no_kernel;
  for (const gs::op_traits& kind : gs::op_table) {
    CAPTURE(kind.name);
    const auto narrow = gs::all_kernels(kind.kind, dtype::f32), wide = gs::all_kernels(kind.kind, dtype::f64);
    CHECK((narrow != nullptr));
    CHECK((wide != nullptr));
    CHECK((narrow != none));
    CHECK((narrow != wide));
  }
}
