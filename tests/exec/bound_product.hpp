// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/program/bound_program.hpp>
#include <gshard/exec/program/kernels.hpp>

#include <algorithm>
#include <memory>
#include <utility>

/// A program whose product is a partial sum on every device: einsum, then all_reduce.
namespace bound_product {

namespace gs = gshard;

inline constexpr auto product_of = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::P<"x", gs::none>{}, gs::init::constant(2)));
};
using program = gs::program<product_of, gs::mesh<gs::axis<"x">>, gs::in<"BM", gs::P<gs::none, "x">>>;
static_assert(program::plan.count(gs::op::einsum) == 1 && program::plan.count(gs::op::all_reduce) == 1);
inline constexpr gs::dims sizes{{'B', 2}, {'M', 6}, {'H', 3}};

inline std::unique_ptr<gs::detail::bound_program> unbound(const gs::any_cluster& on, gs::parameter_store store,
                                                          std::vector<gs::detail::lent_value> lent = {}) {
  return std::make_unique<gs::detail::bound_program>(program::plan, on, gs::kernels_of<program>, std::move(store), std::move(lent),
                                                         "");
}

}  // namespace bound_product
