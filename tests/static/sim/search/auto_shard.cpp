// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Searches by the compiler. More of them, with options at run time: tests/sim/search/auto_shard_test.cpp.
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/sim/search/auto_shard.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::extent, gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;

/// The dim of an input (by number) or a parameter (by name) that axis 0 shards; -1: none.
template <class Program>
constexpr int cut(int input) {
  return Program::plan.at(Program::plan.inputs[std::size_t(input)].value).layout.dim_of(0);
}
template <class Program>
constexpr int cut(std::string_view parameter) {
  return Program::plan.at(Program::plan.find(parameter)->value).layout.dim_of(0);
}

inline constexpr auto mlp = [](auto& m, auto x) {
  auto wi = m.param("wi", "MH", gs::init::fan_in("M")), wo = m.param("wo", "HM", gs::init::fan_in("H"));
  return gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, wi)), wo);
};

// Columns and rows: few rows, large weights; and weights that do not fit on one device.
template <class... Options>
using large = gs::auto_shard<mlp, mesh, in<"BM">, extent<'B', 64>, extent<'M', 4096>, extent<'H', 16384>, Options...>;
using megatron = large<gs::memory_limit<200 << 20>>;
static_assert(cut<megatron>("wi") == 1 && cut<megatron>("wo") == 0);
static_assert(megatron::plan.count(op::all_reduce) == 1 && megatron::plan.collectives() == 1);
static_assert(megatron::choice.price.bytes() <= 200 << 20 && megatron::choice.memory_limit == 200 << 20);

// Propagation would give w the layout of x, so that y moves. If nothing may move implicitly, w is replicated.
inline constexpr auto two_uses = [](auto& m, auto x, auto y) {
  auto w = m.param("w", "BM", gs::init::zeros());
  return std::tuple{x * w, y * w};
};
using unmoved =
    gs::auto_shard<two_uses, mesh, in<"BM", P<"x", none>>, in<"BM", P<none, "x">>, extent<'B', 64>, extent<'M', 64>, gs::strict>;
static_assert(cut<unmoved>("w") == -1 && unmoved::plan.collectives() == 0 && unmoved::choice.unsearched.seconds() == 0);

// A search with at most two plans does not try all candidates.
using hurried = gs::auto_shard<two_uses, mesh, in<"BM", P<"x", none>>, in<"BM", P<none, "x">>, extent<'B', 64>, extent<'M', 64>, gs::strict,
                               gs::evaluations<2>>;
static_assert(!hurried::choice.exact && hurried::choice.evaluations <= 2);

// The table of reasons: a row for every input, then one for every parameter.
static_assert(megatron::choice.tensors.size() == 3);
static_assert(megatron::choice.tensors[0].name.view() == "BM" && !megatron::choice.tensors[0].is_parameter);
static_assert([] {
  for (const gs::layout_choice& t : megatron::choice.tensors)
    if (t.candidates != 3 || t.next.same_layout(t.layout) || t.next_seconds < megatron::choice.price.seconds()) return false;
  return true;
}());

// Annotations are kept.
inline constexpr auto annotated = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::fan_in("M")));
};
using kept = gs::auto_shard<annotated, mesh, in<"BM">, extent<'B', 4096>, extent<'M', 64>, extent<'H', 64>>;
static_assert(cut<kept>("w") == 0 && kept::choice.tensors[1].candidates == 1);

// It can be used like any program.
static_assert(std::tuple_size_v<unmoved::inputs> == 2 && unmoved::choice.exact);

}  // namespace
