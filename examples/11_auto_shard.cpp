// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// auto_shard is a program whose annotations are found by search, at compile time.
#include <gshard/gshard.hpp>
#include <gshard/sim/search/auto_shard.hpp>
#include <gshard/report.hpp>

#include <iostream>

namespace gs = gshard;

inline constexpr auto mlp = [](auto& m, auto x) {
  auto wi = m.param("wi", "MH", gs::init::fan_in("M")), wo = m.param("wo", "HM", gs::init::fan_in("H"));
  return gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, wi)), wo);
};

// The weights have 512 MiB, and a device may use 200 MiB. Therefore they must be sharded.
using found = gs::auto_shard<mlp, gs::mesh<gs::axis<"x", 4>>, gs::in<"BM">, gs::extent<'B', 64>, gs::extent<'M', 4096>,
                             gs::extent<'H', 16384>, gs::memory_limit<200 << 20>>;
static_assert(found::plan.collectives() == 1);  // columns of wi, rows of wo, one sum: as an expert would write it

int main() { std::cout << gs::describe(found::plan) << gs::describe(found::choice, found::plan); }
