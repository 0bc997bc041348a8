// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/all_kernels.hpp>

#include <gshard/exec/bind/make_kernel_table.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <set>

namespace gs = gshard;
using gs::op, gs::dtype;

TEST_CASE("every operation has a kernel of its own for each type that it takes") {
  for (const gs::op_traits& kind : gs::op_table) {
    CAPTURE(kind.name);
    std::set<gs::kernel_table::binder> own;
    for (int t = 0; t < gs::element_types; ++t) {
      CAPTURE(gs::name(dtype(t)));
      const gs::kernel_table::binder found = gs::all_kernels(kind.kind, dtype(t));
      REQUIRE((found != nullptr));
      CHECK((found == &gs::detail::no_kernel) == !gs::supports(kind.kind, dtype(t)));
      if (gs::supports(kind.kind, dtype(t))) own.insert(found);
    }
    CHECK(own.size() == (kind.by_size ? 5 : std::size_t(std::popcount(kind.elements))));
  }
}
