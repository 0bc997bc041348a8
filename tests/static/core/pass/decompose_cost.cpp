// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::extent, gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;
using cut = P<none, "x">;
using whole = P<none, none>;

template <class To>
inline constexpr auto softmax = [](auto&, auto x) { return gs::annotate<To>(gs::softmax(x)); };
template <class To>
inline constexpr auto best = [](auto&, auto x) { return gs::annotate<To>(gs::top_k(x, 2).values); };
template <class To>
inline constexpr auto running = [](auto&, auto x) { return gs::annotate<To>(gs::cumsum(x)); };
inline constexpr auto place_of_best = [](auto&, auto x) { return gs::argmax<"ab->a">(x); };

template <auto Model, std::int64_t A, std::int64_t B>
using rows = gs::program<Model, mesh, in<"AB", cut>, extent<'A', A>, extent<'B', B>>;

/// True if a single collective gathers the operand of a kernel over whole lines.
template <class Program>
constexpr bool is_gathered(gs::op_ref kernel) {
  return soundness::is_sound(Program::plan) && Program::plan.collectives() == 1 && Program::plan.count(kernel) == 1;
}

// Small tensors are gathered, and a wanted layout needs only a slice. For large tensors, the results of blocks are combined.
static_assert(is_gathered<rows<softmax<whole>, 8, 16>>(op::softmax));
static_assert(is_gathered<rows<softmax<cut>, 8, 16>>(op::softmax));
static_assert(rows<softmax<cut>, 4096, 4096>::plan.count(op::softmax) == 0);
static_assert(is_gathered<rows<running<whole>, 8, 16>>(op::cumsum));
static_assert(rows<running<cut>, 4096, 4096>::plan.count(op::block_sum) == 1);
static_assert(is_gathered<rows<best<whole>, 8, 8>>(op::top_k));
static_assert(rows<best<whole>, 64, 4096>::plan.count(op::top_k) == 2);
static_assert(is_gathered<rows<place_of_best, 8, 4>>(op::argmax));
static_assert(rows<place_of_best, 64, 65536>::plan.count(op::all_reduce) == 2);
// For few and short lines, the best of every block is gathered with its index, unless nothing may be gathered implicitly.
static_assert(rows<place_of_best, 8, 3000>::plan.count(op::top_k) == 2 && rows<place_of_best, 8, 3000>::plan.collectives() == 1);
using visible_place = gs::program<place_of_best, mesh, in<"AB", cut>, extent<'A', 8>, extent<'B', 3000>, gs::visible>;
static_assert(visible_place::plan.count(op::all_reduce) == 2 && visible_place::plan.count(op::top_k) == 0);
template <std::int64_t A, std::int64_t B>
using loss = gs::program<[](auto&, auto x, auto labels) { return gs::cross_entropy(x, labels); }, mesh, in<"AB", cut>,
                         in<"A", void, std::int32_t>, extent<'A', A>, extent<'B', B>>;
static_assert(is_gathered<loss<8, 16>>(op::cross_entropy));
static_assert(loss<4096, 4096>::plan.count(op::all_reduce) == 2 && loss<4096, 4096>::plan.collectives() == 2);

// Operations of unknown extents are decomposed.
static_assert(gs::program<softmax<whole>, mesh, in<"AB", cut>, extent<'A', 8>>::plan.count(op::softmax) == 0);
static_assert(
    gs::program<place_of_best, gs::mesh<gs::axis<"x">>, in<"AB", cut>, extent<'A', 8>, extent<'B', 16>>::plan.count(op::all_reduce) == 2);

}  // namespace
