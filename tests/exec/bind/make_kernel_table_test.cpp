// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/make_kernel_table.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <utility>

namespace gs = gshard;
using gs::op;

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
  }(std::make_index_sequence<std::size_t(op::count_)>{});
}

namespace {
struct only_softmax {
  static constexpr auto has = [] {
    std::array<bool, gs::kernel_table::size> has{};
    has[gs::kernel_table::index(op::softmax, gs::dtype::f32)] = true;
    return has;
  }();
};
}  // namespace

TEST_CASE("a table has the selected kernels") {
  constexpr gs::kernel_table table = gs::detail::make_kernel_table<only_softmax>();
  const gs::kernel_table::binder none = &gs::detail::no_kernel;
  for (const gs::op_traits& kind : gs::op_table) CHECK(((table(kind.kind, gs::dtype::f32) != none) == (kind.kind == op::softmax)));
  CHECK((table(op::softmax, gs::dtype::f64) == none));
}
