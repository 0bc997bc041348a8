// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of the paper's programs, counted by the compiler.
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "soundness.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::symbol;

namespace {

// Algorithm 2 of arXiv 2006.16668, word for word.
inline constexpr auto moe_layer = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "EMH", P<"expert", none, none>{}, gs::init::fan_in("M"));
  auto wo = m.param("wo", "EHM", P<"expert", none, none>{}, gs::init::fan_in("H"));
  auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  auto [combine, dispatch, aux, load, overflow, demand] = gs::top2_gating(gates, gs::capacity{2.0});
  auto sent = gs::einsum<"GSEC,GSM->EGCM">(dispatch, x);
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(sent, wi));
  auto out = gs::einsum<"EGCH,EHM->GECM">(h, wo);
  m.loss(aux);
  return gs::einsum<"GSEC,GECM->GSM">(combine, out);
};

// The gradient of the layer, from a gradient dy of its successor: gradients of the parameters and of the layer's input. The auxiliary loss
// is included as <y, dy> + 0.01 aux.
inline constexpr auto moe_backward = [](auto& m, auto x, auto dy) {
  auto y = moe_layer(m, x);
  auto loss = m.objective(gs::sum(y * dy), 0.01);
  gs::list<symbol> wanted = gs::trainable(m);
  wanted.push_back(x);
  const gs::list<symbol> g = gs::gradients(loss, wanted);
  return std::tuple{y, g[0], g[1], g[2], g[3]};
};

/// True if dim d of value v is sharded over exactly these axes, major to minor.
constexpr bool cut_over(const gs::plan_view& p, std::int32_t v, int d,
                        std::initializer_list<std::string_view> axes) {
  const gs::value& t = p.at(v);
  if (t.layout[d].size() != int(axes.size())) return false;
  int i = 0;
  for (std::string_view a : axes)
    if (p.mesh.name(t.layout[d][i++]) != a) return false;
  return true;
}
/// The number of tensors with dims in collectives of a kind. Sums of scalars cost a latency and no bytes.
constexpr int count_on_tensors(const gs::plan_view& p, gs::op_ref kind) {
  int n = 0;
  for (const gs::node& s : p.steps)
    for (int i = 0; i < s.inputs; ++i) n += s.kind == kind && p.at(s.input(i)).rank() > 0;
  return n;
}
constexpr int trainables(const gs::plan_view& p) {
  return int(std::count_if(p.parameters.begin(), p.parameters.end(),
                           [](const gs::parameter& q) { return q.trainable; }));
}
/// Every trained parameter is updated in place.
constexpr bool all_updated_in_place(const gs::plan_view& p) {
  return std::all_of(p.parameters.begin(), p.parameters.end(), [&](const gs::parameter& q) {
    return q.updated >= 0 && p.lifetimes[std::size_t(q.updated)].root == q.value &&
           p.at(q.updated).layout.same_layout(p.at(q.value).layout);
  });
}
/// No tensor is summed twice.
constexpr bool summed_once(const gs::plan_view& p) {
  std::vector<int> sums(p.values.size(), 0);
  for (const gs::node& s : p.steps)
    for (int i = 0; s.kind == op::all_reduce && i < s.inputs; ++i)
      if (sums[std::size_t(s.input(i))]++ > 0) return false;
  return true;
}

// --- one axis: groups and experts over "expert" ---

namespace one_axis {
using mesh = gs::mesh<gs::axis<"expert">>;
using groups = P<"expert", none, none>;

using layer = gs::program<moe_layer, mesh, in<"GSM", groups>>;
static_assert(layer::plan.count(op::all_to_all) == 2);
static_assert(layer::plan.collectives() == 2 && soundness::is_sound(layer::plan));
static_assert(layer::plan.count(op::slice) == 0);
// One-hot einsums became index operations. The gate and the two expert matrices remain.
static_assert(layer::plan.count(op::dispatch) == 1 && layer::plan.count(op::combine) == 1);
static_assert(layer::plan.count(op::one_hot) == 0 && layer::plan.count(op::einsum) == 3);
static_assert(cut_over(layer::plan, layer::plan.outputs[0].value, 0, {"expert"}));

// Each all_to_all moves a shard of [E,G,C,M]: (D-1)/D of E*(G/D)*C*M floats. The paper's buffer arithmetic: 8 MiB per device at D = G = E =
// 128, S = M = 1024, C = 2S/E.
static_assert([] {
  const gs::extents e =
      layer::plan.bind({{'G', 128}, {'S', 1024}, {'M', 1024}, {'E', 128}, {'H', 8192}}, std::array{128});
  const std::int64_t shard = std::int64_t(128) * 1 * 16 * 1024 * 4;
  return shard == 8 << 20 && layer::plan.bytes_received(op::all_to_all, e) == 2 * (shard * 127 / 128) &&
         layer::plan.bytes_received(e) == layer::plan.bytes_received(op::all_to_all, e);
}());

using step = gs::program<moe_backward, mesh, in<"GSM", groups>, in<"GSM", groups>>;
static_assert(step::plan.count(op::all_to_all) == 4);
static_assert(step::plan.count(op::all_gather) == 0 && step::plan.count(op::reduce_scatter) == 0);
// Only the gate is replicated, so only its gradient needs a sum. Experts' gradients are complete on their devices.
static_assert(count_on_tensors(step::plan, op::all_reduce) == 1);
static_assert(step::plan.collectives() == 5 && soundness::is_sound(step::plan));

// The gradient of only the layer's input needs none of the sums.
inline constexpr auto input_gradient = [](auto& m, auto x, auto dy) {
  const std::array wanted{x};
  return gs::gradients(gs::sum(moe_layer(m, x) * dy), wanted)[0];
};
using back = gs::program<input_gradient, mesh, in<"GSM", groups>, in<"GSM", groups>>;
static_assert(back::plan.count(op::all_to_all) == 4 && back::plan.collectives() == 4);
static_assert(cut_over(back::plan, back::plan.outputs[0].value, 0, {"expert"}));
}  // namespace one_axis

// --- data parallelism: batch over "data", weights on every device ---

namespace data_parallel {
inline constexpr auto train = [](auto& m, auto x, auto target, auto rate) {
  auto w1 = m.param("w1", "MH", gs::init::fan_in("M"));
  auto b1 = m.param("b1", "H", gs::init::zeros());
  auto w2 = m.param("w2", "HM", gs::init::fan_in("H"));
  auto gamma = m.param("gamma", "M", gs::init::constant(1)), beta = m.param("beta", "M", gs::init::zeros());
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(x, w1) + b1);
  auto y = gs::layer_norm(x + gs::einsum<"BH,HM->BM">(h, w2), gamma, beta);
  auto error = y - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"data">>;
using batch = P<"data", none>;
using step = gs::program<train, mesh, in<"BM", batch>, in<"BM", batch>, in<"">>;
static_assert(step::plan.count(op::all_gather) == 0);
static_assert(count_on_tensors(step::plan, op::all_reduce) == trainables(step::plan) &&
              trainables(step::plan) == 5);
static_assert(step::plan.count(op::all_reduce) == step::plan.collectives());
static_assert(step::plan.count(op::all_reduce) <= trainables(step::plan) + 1);  // the loss is a scalar
static_assert(summed_once(step::plan) && all_updated_in_place(step::plan) && soundness::is_sound(step::plan));

// The bytes are those of the gradients, twice (n-1)/n of them, for any batch, and of the loss, which is gathered.
constexpr std::int64_t bytes(std::int64_t batch_size) {
  return step::plan.bytes_received(step::plan.bind({{'B', batch_size}, {'M', 2048}, {'H', 4096}}, std::array{8}));
}
static_assert(bytes(64) == bytes(4096));
static_assert(bytes(64) == 2LL * 7 * 4 * (2048 * 4096 + 4096 + 4096 * 2048 + 2048 + 2048) / 8 + 4 * 7);
}  // namespace data_parallel

// --- two axes: groups over data x expert, experts over "expert" ---

namespace two_axes {
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
using groups = P<gs::axes<"data", "expert">, none, none>;

using layer = gs::program<moe_layer, mesh, in<"GSM", groups>>;
static_assert(layer::plan.count(op::all_to_all) == 2 && layer::plan.collectives() == 2 &&
              layer::plan.count(op::slice) == 0);
// Both exchanges stay within a row of the mesh: over "expert", never over "data".
static_assert(std::all_of(layer::plan.steps.begin(), layer::plan.steps.end(), [](const gs::node& s) {
  return s.kind != op::all_to_all || s.attr.axes == 1u << layer::plan.mesh.find("expert");
}));
// Between them groups are sharded over "data", experts over "expert": both axes share the work.
static_assert(std::count_if(layer::plan.steps.begin(), layer::plan.steps.end(), [](const gs::node& s) {
                return s.kind == op::einsum && cut_over(layer::plan, s.input(1), 0, {"expert"}) &&
                       cut_over(layer::plan, s.input(0), 0, {"expert"}) &&
                       cut_over(layer::plan, s.input(0), 1, {"data"});
              }) == 2);
static_assert(cut_over(layer::plan, layer::plan.outputs[0].value, 0, {"data", "expert"}));

using step = gs::program<moe_backward, mesh, in<"GSM", groups>, in<"GSM", groups>>;
static_assert(step::plan.count(op::all_to_all) == 4 && step::plan.count(op::all_gather) == 0);
// wg over both axes at once, wi and wo over "data".
static_assert(count_on_tensors(step::plan, op::all_reduce) == 3 && step::plan.collectives() == 6);
static_assert(summed_once(step::plan) && soundness::is_sound(step::plan));

// Groups only over "data": tokens are replicated along "expert", so there is no exchange. Each device fills the buffers of its own experts,
// and the results are summed.
using copied = gs::program<moe_layer, mesh, in<"GSM", P<"data", none, none>>>;
static_assert(copied::plan.count(op::all_to_all) == 0 && copied::plan.count(op::all_reduce) == 1);
static_assert(copied::plan.collectives() == 1);
}  // namespace two_axes

// --- no axis: a step on one device sends nothing ---

using alone = gs::program<data_parallel::train, gs::mesh<>, in<"BM">, in<"BM">, in<"">>;
static_assert(alone::plan.collectives() == 0 && alone::plan.count(op::slice) == 0 &&
              all_updated_in_place(alone::plan));

}  // namespace
