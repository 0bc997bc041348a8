// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NaN and infinities propagate in the same way on every mesh: results and gradients of every operation have them in the same elements as on
// one device.
#include "with_gradients.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/slice.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include <random>

namespace gs = gshard;
using gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out, run_graph::with_gradients;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> not_finite_sizes{{{'A', 6}, {'B', 12}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}};

/// Overwrites some elements of the first `count` sources with NaN, and maybe with infinities.
auto spoil(std::size_t count, std::uint32_t seed, bool infinities) {
  return [=](run_graph::arrays& sources) {
    std::mt19937 gen(seed);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < count; ++s)
      for (std::size_t i = 0; i < sources[s].size() && i < 2; ++i) {
        const std::uint32_t which = gen() % 4;
        double& v = sources[s][gen() % sources[s].size()];
        if (infinities) v = which == 0 ? std::nan("") : which == 1 ? -infinity : infinity;
        else if (which > 0) v = std::nan("");
      }
  };
}

/// Checks a program whose first `count` inputs contain NaN and infinities.
void check(const std::vector<run_graph::input>& inputs, std::size_t count, const run_graph::model& f, bool infinities = true) {
  const run_graph::traced t = trace(inputs, f);
  for (std::uint32_t seed = 0; seed < (infinities ? 3 : 2); ++seed) {
    CAPTURE(seed);
    // No infinities with partial sums: a product with an infinity, distributed over the addends, may be NaN.
    every_sharding(t, {.dims = not_finite_sizes,
                       .tolerance = 1e-12,
                       .pending_sources = seed <= 1,
                       .most = 24,
                       .prepare = spoil(count, seed, seed > 1)});
  }
}

}  // namespace

TEST_CASE("not finite: functions of elements") {
  check({{"AB"}, {"B"}, {"AB"}}, 2, [](const scope&, given x) {
    const symbol larger = gs::map<[](auto a, auto b) { return gs::max(a, b) * gs::min(a, b) + gs::abs(a); }>(x[0], x[1]);
    return with_gradients(larger + gs::relu(x[0]) + x[0] * x[1] / x[1] + gs::select(gs::less(x[0], x[1]), x[0], x[1]), x, 2);
  });
}

TEST_CASE("not finite: sums of products") {
  check({{"AB"}, {"BC"}, {"AC"}}, 2,
        [](const scope&, given x) { return with_gradients(gs::einsum<"ab,bc->ac">(x[0], gs::relu(x[1])), x, 2); });
}

TEST_CASE("not finite: reductions") {
  check({{"ABC"}, {"AC"}}, 1, [](const scope&, given x) {
    symbols results;
    for (const symbol y : {gs::reduce_max<"abc->ac">(x[0]), gs::reduce_min<"abc->ac">(x[0]), gs::reduce_prod<"abc->ac">(x[0]),
                           gs::logsumexp<"abc->ac">(x[0])})
      for (const symbol r : with_gradients(y, x, 1)) results.push_back(r);
    results.push_back(gs::argmax<"abc->ac">(x[0]));
    results.push_back(gs::argmin<"abc->ac">(x[0]));
    return results;
  });
}

TEST_CASE("not finite: rows") {
  check({{"ABC"}, {"ABC"}}, 1, [](const scope&, given x) { return with_gradients(gs::softmax(x[0]), x, 1); });
  // No infinities: they may be multiplied by a difference that is 0 in one order of summation and rounded in another.
  check({{"ABC"}, {"C"}, {"C"}, {"ABC"}}, 3,
        [](const scope&, given x) { return with_gradients(gs::layer_norm(x[0], x[1], x[2]), x, 3); }, false);
  for (const double smoothing : {0.0, 0.1})
    check({{"AC"}, {"A", gs::dtype::i32, 'C', -1}, {"A"}}, 1,
          [=](const scope&, given x) { return with_gradients(gs::cross_entropy(x[0], x[1], smoothing), x, 1); });
}

TEST_CASE("not finite: order and running sums") {
  check({{"AB"}, {"AB"}}, 1, [](const scope&, given x) {
    const gs::sorted up = gs::sort(x[0]), best = gs::top_k(x[0], 2), least = gs::top_k(x[0], 2, 0, false);
    symbols results = with_gradients(up.values, x, 1);
    for (const symbol s : {up.ids, gs::sort(x[0], 0, true).ids, best.values, best.ids, least.values, least.ids, gs::cumsum(x[0], 0),
                           gs::cumsum(x[0], 1, true, true)})
      results.push_back(s);
    for (const symbol g : gs::gradients(gs::sum(best.values) + gs::sum(least.values), x.first(1))) results.push_back(lay_out(g));
    return results;
  });
}

TEST_CASE("not finite: rows by index, dropout") {
  check({{"AC"}, {"B", gs::dtype::i32, 'A'}, {"BC"}}, 1,
        [](const scope&, given x) { return with_gradients(gs::dropout(gs::gather(x[0], x[1]), 0.5), x, 1); });
}

TEST_CASE("not finite: windows") {
  check({{"AB"}}, 1, [](const scope&, given x) {
    symbols results;
    const gs::conv_window padded{.low = 1, .high = 1};
    for (const symbol y : {gs::max_pool(x[0], {{1, 3, padded}}), gs::min_pool(x[0], {{0, 2}}), gs::mean_pool(x[0], {{1, 3, padded}}),
                           gs::concat({gs::slice(x[0], 0, 1, 4), gs::pad(x[0], 0, 1, 1)}, 0)}) {
      results.push_back(lay_out(y));
      for (const symbol g : gs::gradients(gs::sum(y * y), x.first(1))) results.push_back(lay_out(g));
    }
    return results;
  });
  // No infinities: a device without the element multiplies by 0.
  check({{"BAC"}, {"CCA"}}, 2,
        [](const scope&, given x) {
          const symbol y = gs::conv<"BXI,xIO->BXO">(x[0], x[1], {{.low = 1, .high = 1}});
          symbols results{lay_out(y)};
          for (const symbol& g : gs::gradients(gs::sum(y * y), x.first(2))) results.push_back(lay_out(g));
          return results;
        },
        false);
}

TEST_CASE("not finite: routing") {
  check({{"ABC"}, {"ABB"}, {"ABB"}}, 2, [](const scope&, given x) {
    const gs::gating_result r = gs::top2_gating(gs::softmax(x[0]), gs::capacity{1.0});
    const symbol in = lay_out(gs::einsum<"GSEC,GSM->EGCM">(r.dispatch, x[1]));
    const symbol y = gs::einsum<"GSEC,EGCM->GSM">(r.combine, in * in);
    symbols results{y, r.load, r.overflow};
    for (const symbol& g : gs::gradients(gs::sum(y * x[2]) + r.aux, std::array{x[1], x[0]})) results.push_back(lay_out(g));
    return results;
  });
}

TEST_CASE("not finite: updates") {
  check({{"AB"}, {""}}, 1, [](const scope& m, given x) {
    const symbol p = m.param("p", "AB", gs::init::zeros());
    constexpr gs::adam adam{.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-2, .weight_decay = 0.25, .if_not_finite = gs::not_finite::ignore};
    adam.update(m, p, gs::relu(x[0]), x[1]);
    return symbols{};
  });
  check({{"AB"}, {""}}, 1, [](const scope& m, given x) {
    const symbol p = m.param("p", "AB", gs::init::zeros());
    gs::adafactor{.if_not_finite = gs::not_finite::ignore}.minimize(m, gs::sum(p * p * x[0]), x[1]);
    return symbols{};
  });
}

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// The results for x [A,B] with these numbers, on one device.
run_graph::arrays results_of(const run_graph::array& x, std::int64_t columns, const std::function<symbols(symbol)>& f) {
  const run_graph::traced t = trace({{"AB"}}, [&](const scope&, given in) { return f(in[0]); });
  return run_graph::run(t, run_graph::serial(t, {{'A', std::int64_t(x.size()) / columns}, {'B', columns}}), {x});
}
bool are_same(const run_graph::array& found, const run_graph::array& expected) {
  return found.size() == expected.size() && run_graph::distance({found}, {expected}) < 1e-12;
}

}  // namespace

TEST_CASE("not finite: logsumexp and its gradient") {
  const run_graph::array x{1, infinity, 2, -infinity, -infinity, -infinity, quiet_nan, infinity, 1, 0, -infinity, 0, 900, -900, 900};
  const auto found = results_of(x, 3, [](symbol v) {
    const symbol y = gs::logsumexp<"ab->a">(v);
    return symbols{y, gs::gradients(gs::sum(y), std::array{v})[0]};
  });
  CHECK(are_same(found[0], {infinity, -infinity, quiet_nan, std::log(2.0), 900 + std::log(2.0)}));
  CHECK(are_same(found[1], {0, quiet_nan, 0, quiet_nan, quiet_nan, quiet_nan, quiet_nan, quiet_nan, quiet_nan, 0.5, 0, 0.5, 0.5, 0, 0.5}));
}

TEST_CASE("not finite: gradients of extrema and products") {
  const run_graph::array x{1, quiet_nan, 2, infinity, 3, 4, 0, quiet_nan, 5, 0, 0, quiet_nan, 0, 0, 2};
  const auto found = results_of(x, 3, [](symbol v) {
    const symbol y = gs::reduce_max<"ab->a">(v), z = gs::reduce_prod<"ab->a">(v);
    return symbols{y, z, gs::gradients(gs::sum(y), std::array{v})[0], gs::gradients(gs::sum(z), std::array{v})[0]};
  });
  CHECK(are_same(found[0], {quiet_nan, infinity, quiet_nan, quiet_nan, 2}));
  CHECK(are_same(found[1], {quiet_nan, infinity, quiet_nan, quiet_nan, 0}));
  CHECK(are_same(found[2],
                 {quiet_nan, quiet_nan, quiet_nan, 1, 0, 0, quiet_nan, quiet_nan, quiet_nan, quiet_nan, quiet_nan, quiet_nan, 0, 0, 1}));
  for (std::size_t i = 0; i < 3; ++i) CHECK((std::isnan(found[3][i]) && std::isnan(found[3][6 + i]) && std::isnan(found[3][9 + i])));
  CHECK(are_same({found[3].begin() + 12, found[3].end()}, {0, 0, 0}));
}

TEST_CASE("not finite: casts to integers") {
  const auto found = results_of({quiet_nan, infinity, -infinity, 3e9, -3e9, 2147483647.0, -2147483648.0, -1.9}, 1,
                                [](symbol v) { return symbols{gs::cast<std::int32_t>(v), gs::cast<std::int32_t>(gs::cast<float>(v))}; });
  constexpr double most = 2147483647, least = -2147483648.0;
  CHECK(found[0] == run_graph::array{least, most, least, most, least, most, least, -1});
  CHECK(found[1] == found[0]);
}

TEST_CASE("not finite: a loop whose condition is NaN is told, and does not go on for ever") {
  const auto turns = [](symbol v) {
    return symbols{gs::while_loop([](symbol s) { return gs::relu(gs::sum(s)); }, [](symbol s) { return s - 1.0; }, v)};
  };
  CHECK(results_of({2}, 1, turns)[0] == run_graph::array{0});
  CHECK_THROWS_WITH_AS(results_of({quiet_nan}, 1, turns), "while_loop: the condition is not a number", gs::error);
}
