// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plan of one einsum is a constant: batch, free and contracted indices need different communication.
#include <gshard/plan.hpp>
#include <gshard/sim/report/describe.hpp>

#include <array>
#include <iostream>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x", 4>>;

inline constexpr auto product = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, w); };
template <class X, class W, class... Options>
using product_of = gs::program<product, mesh, in<"BM", X>, in<"MH", W>, Options...>;

// B is free: each device multiplies its rows. Nothing is sent.
using free_index = product_of<P<"x", none>, P<none, none>>;
static_assert(free_index::plan.collectives() == 0);

// M is contracted: each device has a partial sum, and one all_reduce completes it.
using contracted = product_of<P<none, "x">, P<"x", none>>;
static_assert(contracted::plan.collectives() == 1 && contracted::plan.count(op::all_reduce) == 1);

// Both operands are sharded along other indices. The cheapest way depends on the extents.
using few_rows = product_of<P<"x", none>, P<none, "x">, gs::extent<'B', 8>, gs::extent<'M', 1024>, gs::extent<'H', 4096>>;
using many_rows = product_of<P<"x", none>, P<none, "x">, gs::extent<'B', 65536>, gs::extent<'M', 1024>, gs::extent<'H', 64>>;

// A device receives 3 of 4 shards of x, or of w. A float has 4 bytes.
static_assert(few_rows::plan.bytes_received(few_rows::plan.bind({{'B', 8}, {'M', 1024}, {'H', 4096}}, std::array{4})) == 3 * 2 * 1024 * 4);
static_assert(many_rows::plan.bytes_received(many_rows::plan.bind({{'B', 65536}, {'M', 1024}, {'H', 64}}, std::array{4})) ==
              3 * 1024 * 16 * 4);

int main() {
  std::cout << "B sharded: " << gs::describe(free_index::plan);
  std::cout << "M sharded: " << gs::describe(contracted::plan);
  std::cout << "few rows: " << gs::describe(few_rows::plan);
  std::cout << "many rows: " << gs::describe(many_rows::plan);
}
