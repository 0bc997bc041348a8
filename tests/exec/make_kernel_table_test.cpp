// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/make_kernel_table.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <utility>

namespace gs = gshard;
namespace op = gs::op;

namespace {
/// True if an overload of `bind` takes steps of this kind.
template <const gs::operation& Kind>
constexpr bool has_bind = requires(const gs::detail::local_step<float>& step) { bind(gs::detail::kernel_of<Kind>{}, step); };
}  // namespace

TEST_CASE("every operation is bound to a kernel, but for reshards and the control of loops") {
  []<std::size_t... K>(std::index_sequence<K...>) {
    ([] {
      constexpr const gs::operation& kind = *gs::all_operations[K];
      CAPTURE(kind.name);
      CHECK(has_bind<kind> == !(kind.reshards || kind.control));
    }(), ...);
  }(std::make_index_sequence<std::size(gs::all_operations)>{});
}

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
