// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel_headers.hpp>

#include <gshard/exec/program/make_kernel_table.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>

namespace gs = gshard;

TEST_CASE("every operation is bound to a kernel, except reshards and the control of loops") {
  []<std::size_t... K>(std::index_sequence<K...>) {
    ([] {
      constexpr const gs::operation& kind = *gs::all_operations[K];
      CAPTURE(kind.name);
      CHECK(gs::detail::has_bind<kind> == !(kind.reshards || kind.control));
    }(), ...);
  }(std::make_index_sequence<std::size(gs::all_operations)>{});
}
