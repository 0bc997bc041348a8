// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data, expert and tensor parallelism together, with weights sharded over the data axis as well: FSDP, by annotations alone.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;

using mesh = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert", 2>, gs::axis<"tensor", 2>>;

// A dense feed-forward layer, then experts. F is sharded over "tensor". Fsdp: the M of every weight is also sharded over "data".
template <bool Fsdp>
inline constexpr auto train = [](auto& m, auto x, auto target, auto rate) {
  const auto weight = [&](const char* name, const char* by_data, const char* whole) {
    return m.param(name, Fsdp ? by_data : whole, gs::init::fan_in("M"));
  };
  auto wi = weight("wi", "M@data,F@tensor", "M,F@tensor");
  auto wo = weight("wo", "F@tensor,M@data", "F@tensor,M");
  auto y = x + gs::einsum<"GSF,FM->GSM">(gs::relu(gs::einsum<"GSM,MF->GSF">(x, wi)), wo);

  auto experts_in = weight("experts/wi", "E@expert,M@data,F@tensor", "E@expert,M,F@tensor");
  auto experts_out = weight("experts/wo", "E@expert,F@tensor,M@data", "E@expert,F@tensor,M");
  auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(y, m.param("wg", "ME", gs::init::fan_in("M"))));
  auto route = gs::top_k_gating(gates, {.k = 2, .slots = {2}});
  auto in = gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, y);
  auto out = gs::einsum<"EGCF,EFM->GECM">(gs::relu(gs::einsum<"EGCM,EMF->EGCF">(in, experts_in)), experts_out);
  auto error = y + gs::einsum<"GSEC,GECM->GSM">(route.combine, out) - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using tokens = gs::in<"G@data@expert,S,M">;
template <bool Fsdp>
using step = gs::program<train<Fsdp>, mesh, tokens, tokens, gs::in<"">, gs::extent<'G', 8>, gs::extent<'S', 256>, gs::extent<'M', 128>,
                         gs::extent<'F', 512>, gs::extent<'E', 8>, gs::combine_up_to<0>>;

// All collectives of a step without FSDP. Nothing is gathered.
constexpr auto& fsdp = step<true>::plan;
constexpr auto& replicated = step<false>::plan;
static_assert(replicated.count(op::all_gather) == 0 && replicated.count(op::reduce_scatter) == 2);
static_assert(replicated.count(op::all_reduce) == 7 && replicated.collectives() == 13);
// FSDP adds two collectives for each of the four weights: an all_gather where it is used, and a reduce_scatter of its gradient.
// combine_up_to<0> keeps small collectives apart.
static_assert(fsdp.count(op::all_gather) == replicated.count(op::all_gather) + 4);
static_assert(fsdp.count(op::reduce_scatter) == replicated.count(op::reduce_scatter) + 4);
static_assert(fsdp.count(op::all_reduce) == 5 && fsdp.collectives() == 19);
// Tokens go to the experts and return as before.
static_assert(fsdp.count(op::all_to_all) == 4 && replicated.count(op::all_to_all) == 4);

/// The losses of some steps. Prints the bytes of weights and optimizer state on a device.
template <bool Fsdp>
std::vector<float> losses(const std::vector<float>& x, const std::vector<float>& target) {
  const auto on = gs::simulate<mesh>({2, 2, 2});
  gs::executable<step<Fsdp>> run(on, {{'G', 8}, {'S', 256}, {'M', 128}, {'F', 512}, {'E', 8}}, gs::parameter_store(on, 3));
  std::vector<float> found;
  for (int i = 0; i < 10; ++i) found.push_back(run(x, target, std::vector{3e-3f}).item());
  const auto price = gs::price(step<Fsdp>::plan, run.executor().sizes(), gs::machine{});
  std::printf("%s: weights and their state on a device: %lld KiB\n", Fsdp ? "FSDP" : "replicated over data",
              static_cast<long long>(price.parameters / 1024));
  return found;
}

int main() {
  std::vector<float> x(8 * 256 * 128), target(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.37f * float(i));
    target[i] = std::cos(0.11f * float(i)) * x[i];
  }
  const std::vector<float> a = losses<false>(x, target), b = losses<true>(x, target);
  // Sums are rounded in another order, so a token near the border between two experts may choose the other one.
  bool agree = a.front() == b.front();
  for (std::size_t i = 0; i < a.size(); ++i) agree = agree && std::abs(a[i] - b[i]) < 0.01f * a[i];
  std::printf("the losses agree: %s\n", agree ? "yes" : "no");
  return agree ? 0 : 1;
}
