// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/pass/cost/step_time.hpp>
#include <gshard/pass/partition/shared_sums.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <tuple>

// Plans in which a partial sum has several readers, against their closed forms.
namespace gs = gshard;
using gs::extent, gs::in, gs::none, gs::op, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"model", 4>>;
constexpr std::int64_t rows = 1024, width = 128;
constexpr std::int64_t all_reduce = 2 * 3 * rows * width / 4 * 4;  // of [rows, width], over four devices

/// Linear layers, sharded by columns and rows in turn, and the gradients of their weights.
template <int Layers>
inline constexpr auto layers = [](auto& m, auto x) {
  constexpr std::array names{"w0", "w1", "w2", "w3", "w4", "w5"};
  gs::list<gs::symbol> w;
  auto h = x;
  for (int i = 0; i < Layers; ++i) {
    if (i % 2) w.push_back(m.variable(names[std::size_t(i)], "HH", P<"model", none>{}, gs::init::zeros()));
    else w.push_back(m.variable(names[std::size_t(i)], "HH", P<none, "model">{}, gs::init::zeros()));
    h = gs::einsum<"bi,ij->bj">(h, w[std::size_t(i)]);
  }
  const auto g = gs::gradients(gs::sum(h * h), w);
  for (int i = 0; i < Layers; ++i) m.update(w[std::size_t(i)], w[std::size_t(i)] - g[std::size_t(i)]);
  return gs::sum(h);
};
template <int Layers>
using trained = gs::program<layers<Layers>, mesh, in<"BH", P<none, none>>, extent<'B', rows>, extent<'H', width>>;
template <int Layers>
constexpr bool is_closed_form() {
  const auto e = trained<Layers>::plan.bind({{'B', rows}, {'H', width}}, std::array{4});
  // One sum of activations between two layers, forward or backward; and the loss.
  const std::int64_t sums = Layers - 1, small = 1024;
  const double products = double(3 * Layers - 1) * 2 * rows * width * width / 4;
  return trained<Layers>::plan.bytes_received(e) <= sums * all_reduce + small && gs::flops(trained<Layers>::plan, e) == products &&
         trained<Layers>::plan.count(op::all_gather) == 0;
}
static_assert(is_closed_form<3>());
static_assert(is_closed_form<5>());

/// A product and an elementwise verb read one partial sum, in both orders.
template <bool ProductFirst>
inline constexpr auto two_readers = [](auto&, auto x, auto w, auto z) {
  const auto h = gs::einsum<"BM,MT->BT">(x, w);
  const auto product = [&] { return gs::annotate<P<"model", none>>(gs::einsum<"BS,BT->ST">(z, h)); };
  const auto complete = [&] { return gs::annotate<P<none, none>>(gs::relu(h)); };
  if constexpr (ProductFirst) {
    const auto a = product();
    return std::tuple{a, complete()};
  } else {
    const auto b = complete();
    return std::tuple{product(), b};
  }
};
template <bool ProductFirst>
constexpr bool reads_complete_sum() {
  using program = gs::program<two_readers<ProductFirst>, mesh, in<"BM", P<none, "model">>, in<"MT", P<"model", none>>,
                              in<"BS", P<none, "model">>, extent<'B', rows>, extent<'M', width>, extent<'T', width>, extent<'S', width>>;
  const auto e = program::plan.bind({{'B', rows}, {'M', width}, {'T', width}, {'S', width}}, std::array{4});
  return program::plan.bytes_received(e) == all_reduce && program::plan.collectives() == 1;
}
static_assert(reads_complete_sum<true>());
static_assert(reads_complete_sum<false>());

/// A latent that two heads read (MLA): its gradient is completed once, and the gradient of `down` reads the complete one.
inline constexpr auto latent = [](auto& m, auto x) {
  const auto down = m.param("down", "MR", gs::init::zeros());
  const auto k = m.param("k", "RH", P<none, "model">{}, gs::init::zeros()), v = m.param("v", "RH", P<none, "model">{}, gs::init::zeros());
  const auto first = m.param("first", "MM", gs::init::zeros());
  const auto h = gs::relu(gs::einsum<"BM,Mm->Bm">(x, first));
  const auto c = gs::einsum<"BM,MR->BR">(h, down);
  const auto y = gs::einsum<"BR,RH->BH">(c, k) * gs::einsum<"BR,RH->BH">(c, v);
  const auto g = gs::gradients(gs::sum(y), gs::list<gs::symbol>{down, k, v, first});
  return std::tuple{g[0], g[1], g[2], g[3]};
};
using with_latent = gs::program<latent, mesh, in<"BM", P<none, none>>, extent<'B', rows>, extent<'M', 256>, extent<'R', width>, extent<'H', 512>>;
static_assert(with_latent::plan.collectives() == 1 && with_latent::plan.count(op::all_reduce) == 1);

}  // namespace
