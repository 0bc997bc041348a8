// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/product_extents.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>

#include <array>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;
inline constexpr auto product = [](auto&, auto a, auto b) { return gs::einsum<"BNM,BMH->BNH">(a, b); };
using batched = gs::program<product, mesh, in<"BNM", P<"x", none, none>>, in<"BMH", P<"x", none, none>>>;

constexpr gs::product_extents p =
    gs::extents_of_product(batched::plan, batched::plan.steps[0],
                                   batched::plan.bind({{'B', 8}, {'N', 30}, {'M', 16}, {'H', 128}}, std::array{4}));
static_assert(batched::plan.steps[0].kind == gs::op::einsum);
static_assert(p.batch == 2 && p.rows == 30 && p.columns == 128 && p.contracted == 16 && p.smallest() == 16);

}  // namespace
