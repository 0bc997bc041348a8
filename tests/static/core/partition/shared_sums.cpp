// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/partition/shared_sums.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <tuple>

// Plans in which a partial sum has several readers, compared with closed forms.
namespace gs = gshard;
namespace op = gs::op;
using gs::extent, gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"model", 4>>;
constexpr std::int64_t rows = 1024, width = 128;
constexpr std::int64_t all_reduce = 2 * 3 * rows * width / 4 * 4;  // bytes of [rows, width], over four devices

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
  // One sum of activations between two layers, forward or backward, and the loss.
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

/// Attention with latent keys and values (MLA). The gradient of the latent is completed once. The gradient of `down` reads the complete
/// one.
inline constexpr auto latent_attention = [](auto& m, auto x) {
  const auto wq = m.param("wq", "MNK", P<none, "model", none>{}, gs::init::fan_in("M")), down = m.param("down", "MR", gs::init::fan_in("M"));
  const auto uk = m.param("uk", "RNK", P<none, "model", none>{}, gs::init::fan_in("R"));
  const auto uv = m.param("uv", "RNK", P<none, "model", none>{}, gs::init::fan_in("R"));
  const auto wo = m.param("wo", "NKM", P<"model", none, none>{}, gs::init::fan_in("NK")), scale = m.param("scale", "M", gs::init::zeros());
  const auto h = x * scale, q = gs::einsum<"btm,mnk->btnk">(h, wq), c = gs::einsum<"btm,mr->btr">(h, down);
  const auto k = gs::einsum<"btr,rnk->btnk">(c, uk), v = gs::einsum<"btr,rnk->btnk">(c, uv);
  const auto s = gs::softmax(gs::einsum<"btnk,bsnk->bnts">(q, k));
  const auto y = x + gs::einsum<"btnk,nkm->btm">(gs::einsum<"bnts,bsnk->btnk">(s, v), wo);
  const auto loss = gs::mean(y * y);
  const auto w = gs::trainable(m);
  const auto g = gs::gradients(loss, w);
  for (std::size_t i = 0; i < w.size(); ++i) m.update(w[i], w[i] - g[i]);
  return loss;
};
using with_latent = gs::program<latent_attention, mesh, in<"BTM", P<none, none, none>>, extent<'B', 8>, extent<'T', 128>, extent<'M', 512>,
                                extent<'R', 64>, extent<'N', 8>, extent<'K', 64>>;
constexpr gs::dims latent_sizes{{'B', 8}, {'T', 128}, {'M', 512}, {'R', 64}, {'N', 8}, {'K', 64}};
static_assert(with_latent::plan.count(op::all_reduce) == 3 && with_latent::plan.collectives() == 3);
static_assert(with_latent::plan.bytes_received(with_latent::plan.bind(latent_sizes, std::array{4})) == 6'684'672);

// Several partial sums of the same addends: if there are fewer addends, these are completed once.
template <int Which>
inline constexpr auto of_two_addends = [](auto&, auto k, auto l, auto r) {
  const auto p = gs::einsum<"cab->ab">(k), q = gs::einsum<"cab->ab">(l);
  if constexpr (Which == 0) return std::array{p + q, p - q, p + 2.0 * q};
  else if constexpr (Which == 1) return std::array{p + q + r, p + q, p + q + p, q + p + q + r};
  else return std::array{p + q};
};
template <int Which>
constexpr std::int64_t bytes_of_addends() {
  using addend = in<"cab", P<"model", none, none>>;
  using program = gs::program<of_two_addends<Which>, mesh, addend, addend, in<"ab">, extent<'c', 8>, extent<'a', 64>, extent<'b', 64>>;
  return program::plan.bytes_received(program::plan.bind({}, {}));
}
static_assert(bytes_of_addends<0>() == 2 * bytes_of_addends<2>() && bytes_of_addends<1>() == 2 * bytes_of_addends<2>());

}  // namespace
