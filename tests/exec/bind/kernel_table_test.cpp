// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/kernel_table.hpp>

#include <gshard/pass/program.hpp>
#include <gshard/trace/embedding.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::dtype, gs::op;

namespace {

inline constexpr auto look_up = [](auto&, auto table, auto ids) { return gs::gather(table, ids); };
template <class T>
using rows = gs::program<look_up, gs::mesh<gs::axis<"x">>, gs::in<"AB", gs::P<gs::none, gs::none>, T>, gs::in<"C", gs::P<"x">, std::int32_t>>;

/// The type by which the kernel of a program's gather is found.
template <class T>
constexpr dtype type_of_gather() {
  for (const gs::node& step : rows<T>::plan.steps)
    if (step.kind == op::gather) return gs::detail::element_type(rows<T>::plan, step);
  return dtype::i32;
}
static_assert(type_of_gather<float>() == dtype::f32 && type_of_gather<double>() == dtype::f64);

}  // namespace

TEST_CASE("every operation has an entry of its own for float and for double") {
  std::vector<int> used(gs::kernel_table::size, 0);
  for (const gs::op_traits& kind : gs::op_table)
    for (const dtype type : {dtype::f32, dtype::f64}) ++used[gs::kernel_table::index(kind.kind, type)];
  for (const int n : used) CHECK(n == 1);
}

TEST_CASE("a table without kernels has none") {
  constexpr gs::kernel_table none;
  for (const gs::op_traits& kind : gs::op_table) CHECK((none(kind.kind, dtype::f32) == nullptr));
}
