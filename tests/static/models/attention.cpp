// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of attention and its gradient in a plan grows linearly with the length of the sequence.
#include <gshard/core/cost/step_time.hpp>
#include <gshard/models/attention.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

/// The gradients of only attention, with all of its options.
inline constexpr auto slopes = [](auto&, auto q, auto k, auto v, auto real) {
  const auto y = gs::attention(q, k, v, {.causal = true, .mask = real, .dropout = 0.1});
  const auto g = gs::gradients(gs::sum(y * y), gs::list<gs::symbol>{q, k, v});
  return std::tuple{g[0], g[1], g[2]};
};
using heads = in<"BKHD", P<"data", none, "model", none>>;
constexpr gs::plan_view alone =
    gs::program<slopes, mesh, in<"BQHRD", P<"data", none, "model", none, none>>, heads, heads, in<"BK", P<"data", none>>>::plan;

/// A training step of the layer.
inline constexpr auto train = [](auto& m, auto query, auto memory, auto real, auto rate) {
  const auto y = gs::nn::attention(m, query, memory, {.causal = true, .grouped = true, .rotary_base = 1e4, .mask = real, .dropout = 0.1});
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
constexpr gs::plan_view layer = gs::program<train, mesh, in<"GBQM", P<"data", none, none, none>>, in<"GBKM", P<"data", none, none, none>>,
                                            in<"GBK", P<"data", none, none>>, in<"">>::plan;

/// The same for attention with a bias, which has all scores in memory.
inline constexpr auto with_bias = [](auto& m, auto query, auto memory, auto bias, auto rate) {
  const auto y = gs::nn::attention(m, query, memory, bias, 0.1);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
constexpr gs::plan_view plain =
    gs::program<with_bias, mesh, in<"GBQM", P<"data", none, none, none>>, in<"GBKM", P<"data", none, none, none>>,
                in<"GBK", P<"data", none, none>>, in<"">>::plan;

/// The number of tensors of a plan with both Q and K.
constexpr int pairs(const gs::plan_view& plan) {
  int n = 0;
  for (const gs::value& v : plan.values) {
    bool q = false, k = false;
    for (int d = 0; d < v.rank(); ++d) {
      const gs::dim& of = plan.dims[std::size_t(v.dims[d])];
      q = q || (of.what == gs::dim::kind::bound && of.letter == 'Q');
      k = k || (of.what == gs::dim::kind::bound && of.letter == 'K');
    }
    n += q && k;
  }
  return n;
}
static_assert(pairs(alone) == 0 && pairs(layer) == 0);
static_assert(pairs(plain) > 0);

/// The bytes of everything except parameters at the peak, for a sequence of this length.
constexpr double peak(const gs::plan_view& plan, std::int64_t length) {
  const gs::dims sizes{{'G', 2}, {'B', 2}, {'Q', length}, {'K', length}, {'M', 32}, {'H', 4}, {'R', 2}, {'D', 8}};
  const gs::step_price p = gs::price(plan, plan.bind(sizes, std::array{2, 2}), {});
  return double(p.inputs + p.peak);
}
/// The growth of the peak each time that the length doubles, from 1,024 to 8,192.
constexpr bool grows(const gs::plan_view& plan, double least, double most) {
  for (const std::int64_t length : {1024, 2048, 4096})
    if (const double by = peak(plan, 2 * length) / peak(plan, length); !(by >= least && by <= most)) return false;
  return true;
}
static_assert(grows(alone, 2, 2) && grows(layer, 1.99, 2));
static_assert(grows(plain, 3.9, 4));

}  // namespace
