// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/bind/kernel_table.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/ops/index/gather.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::dtype;

namespace {

inline constexpr auto look_up = [](auto&, auto table, auto ids) { return gs::gather(table, ids); };
template <class T>
using rows =
    gs::program<look_up, gs::mesh<gs::axis<"x">>, gs::in<"AB", gs::P<gs::none, gs::none>, T>, gs::in<"C", gs::P<"x">, std::int32_t>>;

/// The element type that selects the kernel of a program's gather.
template <class T>
constexpr dtype type_of_gather() {
  for (const gs::node& step : rows<T>::plan.steps)
    if (step.kind == op::gather) return gs::detail::element_type(rows<T>::plan, step);
  return dtype::i32;
}
static_assert(type_of_gather<float>() == dtype::f32 && type_of_gather<double>() == dtype::f64);

}  // namespace

static_assert(type_of_gather<std::int32_t>() == dtype::i32 && type_of_gather<std::int64_t>() == dtype::i64 &&
              type_of_gather<bool>() == dtype::boolean);

TEST_CASE("every operation has an entry of its own for each element type; data movement for each size of elements") {
  for (const gs::op_ref kind : gs::all_operations) {
    CAPTURE(kind->name);
    std::vector<int> used(gs::element_types, 0);
    for (int t = 0; t < gs::element_types; ++t) ++used[std::size_t(gs::detail::kernel_type(kind, dtype(t)))];
    const int most = *std::max_element(used.begin(), used.end());
    CHECK(most == (kind->by_size ? 3 : 1));  // f64, i64 and c64 have 8 bytes
  }
}

TEST_CASE("a table without kernels has none") {
  constexpr gs::kernel_table none;
  for (const gs::op_ref kind : gs::all_operations) CHECK((none.find(kind, dtype::f32) == nullptr));
}
