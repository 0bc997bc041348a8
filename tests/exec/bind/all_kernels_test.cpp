// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/all_kernels.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>

namespace gs = gshard;
using gs::op, gs::dtype;

namespace {
/// True if an overload of `bind` takes steps of this kind.
template <op Kind>
constexpr bool is_bound = requires(const gs::detail::local_step<float>& step) { bind(gs::detail::operation<Kind>{}, step); };
}  // namespace

TEST_CASE("every operation is bound to a kernel, but for reshards and the control of loops") {
  []<std::size_t... K>(std::index_sequence<K...>) {
    ([] {
      constexpr gs::op_traits kind = gs::op_table[K];
      CAPTURE(kind.name);
      CHECK(is_bound<op(K)> == !(kind.reshards || kind.control));
    }(), ...);
  }(std::make_index_sequence<gs::op_table.size()>{});
}

TEST_CASE("every operation has a kernel of its own for each type, but for those that communicate") {
  const gs::kernel_table::binder none = &gs::detail::bind_step<op::count_, float>;
  for (const gs::op_traits& kind : gs::op_table) {
    CAPTURE(kind.name);
    const auto narrow = gs::all_kernels(kind.kind, dtype::f32), wide = gs::all_kernels(kind.kind, dtype::f64);
    CHECK((narrow != nullptr));
    CHECK((wide != nullptr));
    CHECK((narrow != none));
    CHECK((narrow != wide));
  }
}
