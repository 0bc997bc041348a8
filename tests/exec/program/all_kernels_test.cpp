// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_kernels.hpp>
#include <gshard/all_operations.hpp>

#include <gshard/exec/program/make_kernel_table.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <set>

namespace gs = gshard;
using gs::dtype;

TEST_CASE("every operation has a kernel of its own for each type that it takes") {
  for (const gs::op_ref kind : gs::all_operations) {
    CAPTURE(kind->name);
    std::set<gs::kernel_table::binder> own;
    for (int t = 0; t < gs::element_types; ++t) {
      CAPTURE(gs::name(dtype(t)));
      const gs::kernel_table::binder found = gs::all_kernels.find(kind, dtype(t));
      CHECK((found != nullptr) == (gs::supports(kind, dtype(t)) && !kind->reshards && !kind->control));
      if (found) own.insert(found);
    }
    const bool has_kernels = !kind->reshards && !kind->control;
    CHECK(own.size() == (has_kernels ? kind->by_size ? 5 : std::size_t(std::popcount(kind->elements)) : 0));
  }
}
