// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mixtures of experts with routing composed of small operations: the planner finds the two exchanges without annotating the result.
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "soundness.hpp"

#include <array>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::init, gs::none, gs::P;

namespace {

// Each token goes to its K best experts. The first choices of all tokens of a group take their slots before the second ones.
template <int K>
inline constexpr auto top_k_moe = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", init::fan_in("M"));
  auto wi = m.param("wi", "EMH", P<"expert", none, none>{}, init::fan_in("M"));
  auto wo = m.param("wo", "EHM", P<"expert", none, none>{}, init::fan_in("H"));
  auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  auto top = gs::top_k(gates, K);
  auto experts = gs::cast<float>(gs::iota<"E">(m)), places = gs::cast<float>(gs::iota<"C">(m));
  auto chosen = gs::equal(gs::einsum<"GSK,E->GKSE">(gs::cast<float>(top.ids), 0.0 * experts + 1.0), experts);
  auto choices = gs::merge_dims<1>(chosen);
  auto place = gs::einsum<"GPE,GPE->GP">(gs::cumsum(choices, 1, true), choices);
  auto slot = gs::split_dim<1>(gs::equal(gs::einsum<"GP,C->GPC">(place, 0.0 * places + 1.0), places));
  auto combine = gs::einsum<"GKSE,GKSC,GSK->GSEC">(chosen, slot, top.values);
  auto dispatch = gs::einsum<"GKSE,GKSC->GSEC">(chosen, slot);
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(dispatch, x), wi));
  return gs::einsum<"GSEC,GECM->GSM">(combine, gs::einsum<"EGCH,EHM->GECM">(h, wo));
};
template <int K>
inline constexpr auto annotated = [](auto& m, auto x) { return gs::annotate<P<"expert", none, none>>(top_k_moe<K>(m, x)); };
template <int K>
inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  auto error = top_k_moe<K>(m, x) - x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};

template <int E, int C, class... In>
struct sized {
  template <auto Model, class Mesh>
  using program = gs::program<Model, Mesh, In..., gs::extent<'G', 16>, gs::extent<'S', 1024>, gs::extent<'M', 1024>, gs::extent<'E', E>,
                              gs::extent<'C', C>, gs::extent<'H', 4096>>;
};
template <int Devices>
using line = gs::mesh<gs::axis<"expert", Devices>>;
using grid = gs::mesh<gs::axis<"data", 4>, gs::axis<"expert", 2>>;
using by_expert = gs::in<"GSM", P<"expert", none, none>>;
using by_both = gs::in<"GSM", P<gs::axes<"data", "expert">, none, none>>;

template <class Program>
constexpr std::int64_t received() {
  std::array<int, 2> axes{};
  for (int a = 0; a < Program::mesh::shape.rank(); ++a) axes[std::size_t(a)] = Program::mesh::shape.static_extent(a);
  const gs::plan_view& p = Program::plan;
  gs::dims sizes;
  for (const gs::dim& d : p.dims)
    if (d.what == gs::dim::kind::bound) sizes.set(d.letter, d.number);
  return p.bytes_received(p.bind(sizes, {axes.data(), std::size_t(p.mesh.rank())}));
}
/// The bytes to exchange the experts' inputs and results, minus the local ones.
constexpr std::int64_t two_exchanges(std::int64_t devices, std::int64_t exchanged, std::int64_t experts, std::int64_t capacity) {
  const std::int64_t shard = experts * 16 * capacity * 1024 * 4 / devices;
  return 2 * (shard - shard / exchanged);
}
template <class Program>
constexpr bool exchanges(std::int64_t bytes) {
  return Program::plan.count(op::all_to_all) == 2 && Program::plan.collectives() == 2 && received<Program>() == bytes &&
         soundness::is_sound(Program::plan);
}
template <int K, class Mesh, int E, int C, class In = by_expert>
using layer = typename sized<E, C, In>::template program<top_k_moe<K>, Mesh>;

static_assert(exchanges<layer<1, line<8>, 64, 64>>(two_exchanges(8, 8, 64, 64)));
static_assert(exchanges<layer<2, line<8>, 64, 64>>(two_exchanges(8, 8, 64, 64)));
static_assert(exchanges<layer<4, line<8>, 64, 64>>(two_exchanges(8, 8, 64, 64)));
static_assert(exchanges<layer<8, line<8>, 64, 64>>(two_exchanges(8, 8, 64, 64)));
static_assert(exchanges<layer<1, line<4>, 16, 128>>(two_exchanges(4, 4, 16, 128)));
static_assert(exchanges<layer<2, line<16>, 128, 32>>(two_exchanges(16, 16, 128, 32)));
static_assert(exchanges<layer<4, grid, 64, 16, by_both>>(two_exchanges(8, 2, 64, 16)));
// The same plan as with the result annotated.
static_assert(received<layer<1, line<8>, 64, 64>>() == received<sized<64, 64, by_expert>::program<annotated<1>, line<8>>>());
// With many more slots than tokens, the results of the experts are larger than the sums of their tokens, so the sums are completed instead.
static_assert(received<layer<1, line<4>, 64, 256>>() < two_exchanges(4, 4, 64, 256));
// A training step: two exchanges forward and one backward, because the gradient of the tokens is not needed, and the sums of gradients.
using step = sized<64, 64, by_expert, gs::in<"">>::program<training_step<1>, line<8>>;
static_assert(step::plan.count(op::all_to_all) == 3 && step::plan.count(op::all_gather) == 0 && soundness::is_sound(step::plan));

}  // namespace
