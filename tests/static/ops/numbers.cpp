// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/gshard.hpp>

#include "../tracing.hpp"

// Verbs take their numbers as template arguments, as on tensors outside of programs, or as arguments: with the same nodes.
namespace gs = gshard;
using gs::builder, gs::dtype, gs::symbol;
using tracing::input;

namespace {

static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::cumsum<0, true>(x), gs::sort<1>(x), gs::sort<0, true>(x), gs::top_k<3>(x), gs::top_k<2, 0, false>(x);
    },
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::cumsum(x, 0, true), gs::sort(x, 1), gs::sort(x, 0, true), gs::top_k(x, 3), gs::top_k(x, 2, 0, false);
    }));
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::slice<1, 2, 9, 3>(x), gs::pad<0, 2, 1, 1>(x), gs::reverse<1>(x), gs::roll<1, -3>(x), gs::concat<0>(x, x);
    },
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::slice(x, 1, 2, 9, 3), gs::pad(x, 0, 2, 1, 1), gs::reverse(x, 1), gs::roll(x, 1, -3), gs::concat({x, x}, 0);
    }));
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "AB"), ids = input(b, "A", dtype::i32), at = input(b, "", dtype::i32);
      gs::scatter_add<1, 1>(x, ids, gs::gather<1, 1>(x, ids)), gs::dynamic_update_slice<1>(x, gs::dynamic_slice<1, 2>(x, at), at);
    },
    [](builder& b) {
      const symbol x = input(b, "AB"), ids = input(b, "A", dtype::i32), at = input(b, "", dtype::i32);
      gs::scatter_add(x, ids, gs::gather(x, ids, 1, 1), 1, 1), gs::dynamic_update_slice(x, gs::dynamic_slice(x, 1, at, 2), 1, at);
    }));

}  // namespace
