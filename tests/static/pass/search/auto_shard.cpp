// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/grad/differentiate.hpp>
#include <gshard/pass/search/auto_shard.hpp>
#include <gshard/trace/convolution.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>

namespace gs = gshard;
using gs::extent, gs::in, gs::none, gs::op, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;

/// The dim that axis 0 cuts of an input (by number) or a parameter (by name); -1: none.
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

// Data parallelism: many rows, small weights.
inline constexpr auto mlp_gradients = [](auto& m, auto x, auto target) {
  auto error = mlp(m, x) - target;
  auto g = gs::gradients(gs::sum(error * error), gs::trainable(m));
  return std::tuple{g[0], g[1]};
};
using data = gs::auto_shard<mlp_gradients, mesh, in<"BM">, in<"BM">, extent<'B', 4096>, extent<'M', 512>, extent<'H', 2048>>;
static_assert(cut<data>(0) == 0 && cut<data>(1) == 0 && cut<data>("wi") == -1 && cut<data>("wo") == -1);
static_assert(data::plan.count(op::all_reduce) == 2 && data::plan.collectives() == 2);
static_assert(data::choice.exact && data::choice.evaluations == 81);

// Columns and rows: few rows, large weights; and what does not fit on one device.
template <class... Options>
using large = gs::auto_shard<mlp, mesh, in<"BM">, extent<'B', 64>, extent<'M', 4096>, extent<'H', 16384>, Options...>;
using megatron = large<gs::memory_limit<200 << 20>>;
static_assert(cut<megatron>("wi") == 1 && cut<megatron>("wo") == 0);
static_assert(megatron::plan.count(op::all_reduce) == 1 && megatron::plan.collectives() == 1);
static_assert(megatron::choice.price.bytes() <= 200 << 20 && megatron::choice.memory_limit == 200 << 20);

// Propagation would give w the layout of x, so that y moves; where nothing may move implicitly, w is whole.
inline constexpr auto two_uses = [](auto& m, auto x, auto y) {
  auto w = m.param("w", "BM", gs::init::zeros());
  return std::tuple{x * w, y * w};
};
using unmoved =
    gs::auto_shard<two_uses, mesh, in<"BM", P<"x", none>>, in<"BM", P<none, "x">>, extent<'B', 64>, extent<'M', 64>, gs::strict>;
static_assert(cut<unmoved>("w") == -1 && unmoved::plan.collectives() == 0 && unmoved::choice.unsearched.seconds() == 0);

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

// A mixture of experts; not all can be tried.
inline constexpr auto moe = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "EMH", gs::init::fan_in("M")), wo = m.param("wo", "EHM", gs::init::fan_in("H"));
  auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  auto [combine, dispatch, aux, load, overflow, demand] = gs::top2_gating(gates, gs::capacity{2.0});
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(dispatch, x), wi));
  return gs::einsum<"GSEC,GECM->GSM">(combine, gs::einsum<"EGCH,EHM->GECM">(h, wo));
};
using experts = gs::auto_shard<moe, mesh, in<"GSM">, extent<'G', 16>, extent<'S', 256>, extent<'M', 512>, extent<'H', 2048>,
                               extent<'E', 16>, gs::memory_limit<150 << 20>, gs::evaluations<100>>;
static_assert(cut<experts>(0) == 0 && cut<experts>("wi") == 0 && cut<experts>("wo") == 0);
static_assert(experts::plan.count(op::all_to_all) == 2 && experts::plan.collectives() == 2);
static_assert(!experts::choice.exact && experts::choice.evaluations <= 100);

// One large image is sharded into strips, which exchange their borders.
inline constexpr auto convolution = [](auto& m, auto image) {
  auto w = m.param("w", "xyIO", gs::init::fan_in("xyI"));
  return gs::conv<"BIXY,xyIO->BOXY">(image, w, {{.low = 1, .high = 1}});
};
using strips = gs::auto_shard<convolution, mesh, in<"BIXY">, extent<'B', 1>, extent<'I', 32>, extent<'O', 32>, extent<'X', 512>,
                              extent<'Y', 512>, extent<'x', 3>, extent<'y', 3>>;
static_assert(cut<strips>(0) == 2 && cut<strips>("w") == -1);
static_assert(strips::plan.count(op::collective_permute) == 1 && strips::plan.collectives() == 1);

// It is a program like others.
static_assert(std::tuple_size_v<experts::inputs> == 1);

}  // namespace
