// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares the gradient of every operation with central differences along random directions, on one device and on a mesh.
#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace gs = gshard;
using gs::abs, gs::exp, gs::log, gs::max, gs::min, gs::sqrt, gs::tanh;
using gs::einsum, gs::map, gs::sum, gs::symbol;
using run_graph::lay_out, run_graph::array, run_graph::arrays;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;

namespace {

constexpr auto i32 = gs::dtype::i32;
const gs::dims gradient_sizes{{'A', 3}, {'B', 4}, {'C', 5}, {'E', 3}, {'G', 3}, {'M', 2}, {'S', 5}};

/// Values without ties, away from kinks.
arrays unlike_values(const run_graph::traced& t, std::uint32_t seed) {
  arrays sources = run_graph::random_sources(t, gradient_sizes, seed);
  std::mt19937 gen(seed);
  std::uniform_real_distribution<double> uniform(-0.1, 0.1);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (t.inputs[i].type == gs::dtype::f64)
      for (double& v : sources[i]) v += uniform(gen);
  return sources;
}

/// f: inputs -> a scalar.
void check_gradients(const std::vector<run_graph::input>& inputs, const std::function<symbol(given)>& f,
                     gs::trace_options options = {}, const std::function<void(arrays&)>& prepare = {}) {
  const run_graph::traced loss = run_graph::trace(
      inputs, [&](const gs::parameter_scope&, given x) { return symbols{f(x)}; }, options);
  const run_graph::traced gradient = run_graph::trace(
      inputs,
      [&](const gs::parameter_scope&, given x) {
        symbols real;
        for (std::size_t i = 0; i < x.size(); ++i)
          if (inputs[i].type == gs::dtype::f64) real.push_back(x[i]);
        return gs::gradients(f(x), real);
      },
      options);
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    arrays sources = unlike_values(loss, seed);
    if (prepare) prepare(sources);
    arrays direction = sources;
    for (std::size_t i = 0; i < sources.size(); ++i)
      for (double& v : direction[i])
        v = inputs[i].type == gs::dtype::f64 ? std::uniform_real_distribution<double>(-1, 1)(gen) : 0;

    const auto loss_at = [&](double along) {
      arrays moved = sources;
      for (std::size_t i = 0; i < moved.size(); ++i)
        for (std::size_t e = 0; e < moved[i].size(); ++e) moved[i][e] += along * direction[i][e];
      return run_graph::run(loss, run_graph::serial(loss, gradient_sizes), moved)[0][0];
    };
    const double h = 1e-5, expected = (loss_at(h) - loss_at(-h)) / (2 * h);

    for (const std::vector<int>& mesh : {std::vector{1}, std::vector{2, 3}}) {
      run_graph::setting s = run_graph::serial(gradient, gradient_sizes);
      s.mesh = mesh;
      for (gs::sharding& l : s.layouts) {
        const auto choices = run_graph::all_layouts(l.rank, int(mesh.size()));
        l = choices[gen() % choices.size()];
      }
      INFO(run_graph::text_of(s));
      const arrays g = run_graph::run(gradient, s, sources);
      double found = 0;
      for (std::size_t i = 0, k = 0; i < sources.size(); ++i) {
        if (inputs[i].type != gs::dtype::f64) continue;
        for (std::size_t e = 0; e < g[k].size(); ++e) found += g[k][e] * direction[i][e];
        ++k;
      }
      CHECK(std::abs(found - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
    }
  }
}

/// A scalar whose gradient differs at every element.
symbol weigh(symbol x, symbol weights) {
  return sum(map<[](auto v, auto w) { return v * w * v; }>(x, weights));
}

}  // namespace

TEST_CASE("gradients: einsum") {
  check_gradients({{"AB"}, {"BC"}, {"AC"}},
                  [](given x) { return weigh(einsum<"ab,bc->ac">(x[0], x[1]), x[2]); });
  check_gradients({{"ABC"}, {"ACE"}, {"BEA"}},
                  [](given x) { return weigh(einsum<"abc,ace->bea">(x[0], x[1]), x[2]); });
  check_gradients({{"AB"}, {"CE"}, {"CB"}},
                  [](given x) { return weigh(einsum<"ab,ce->cb">(x[0], x[1]), x[2]); });
  check_gradients({{"AB"}, {""}, {"BA"}}, [](given x) { return weigh(einsum<"ab,->ba">(x[0], x[1]), x[2]); });
  check_gradients({{"ABC"}, {"BC"}, {"A"}},
                  [](given x) { return weigh(einsum<"abc,bc->a">(x[0], x[1]), x[2]); });
  check_gradients({{"AB"}, {"AA"}}, [](given x) { return weigh(einsum<"ab,cb->ac">(x[0], x[0]), x[1]); });
}

TEST_CASE("gradients: sums, means, transposition") {
  check_gradients({{"ABC"}, {"CA"}}, [](given x) { return weigh(einsum<"abc->ca">(x[0]), x[1]); });
  check_gradients({{"ABC"}, {"CAB"}}, [](given x) { return weigh(einsum<"abc->cab">(x[0]), x[1]); });
  check_gradients({{"ABC"}, {"B"}}, [](given x) { return weigh(gs::mean<"ABC->B">(x[0]), x[1]); });
  check_gradients({{"ABC"}}, [](given x) { return gs::mean(x[0] * x[0]) + sum(x[0]); });
}

TEST_CASE("gradients: maps") {
  constexpr auto f = [](auto a, auto b) {
    return a * exp(b) / (2 + a * a) + tanh(a) * sqrt(b * b + 1) - log(abs(b) + 1);
  };
  check_gradients({{"AB"}, {"AB"}, {"AB"}}, [&](given x) { return weigh(map<f>(x[0], x[1]), x[2]); });
  check_gradients({{"ABC"}, {"AC"}, {"ABC"}}, [&](given x) { return weigh(map<f>(x[0], x[1]), x[2]); });
  check_gradients({{"C"}, {"ABC"}, {"ABC"}}, [&](given x) { return weigh(map<f>(x[0], x[1]), x[2]); });
  check_gradients({{""}, {"AB"}, {"AB"}}, [&](given x) { return weigh(map<f>(x[0], x[1]), x[2]); });
  constexpr auto g = [](auto a, auto b) { return gs::sin(a) * gs::cos(b) + gs::erf(a * b) + gs::pow(abs(a) + 1, b) + gs::pow(b, 3); };
  check_gradients({{"AB"}, {"B"}, {"AB"}}, [&](given x) { return weigh(map<g>(x[0], x[1]), x[2]); });
  constexpr auto five = [](auto a, auto b, auto c, auto d, auto e) { return a * b - c * d * e + a * e; };
  check_gradients({{"AB"}, {"B"}, {"AB"}, {""}, {"A"}},
                  [&](given x) { return weigh(map<five>(x[0], x[1], x[2], x[3], x[4]), x[2]); });
  check_gradients({{"AB"}, {"AB"}}, [](given x) {
    return weigh(gs::relu(x[0]), x[1]) +
           sum(map<[](auto a, auto b) { return max(a, b) * min(a, b); }>(x[0], x[1]));
  });
}

TEST_CASE("gradients: sums, differences, products, quotients, multiples") {
  check_gradients({{"AB"}, {"B"}, {"AB"}},
                  [](given x) { return weigh(x[0] + x[1] - 0.5 * (x[1] - x[0]), x[2]); });
  check_gradients({{"AB"}, {"AB"}, {"AB"}},
                  [](given x) { return weigh(x[0] * x[1] / (x[1] * x[1] + 3.0 * x[0] * x[0]), x[2]); });
  check_gradients({{"AB"}, {"AB"}}, [](given x) { return weigh(gs::scale_by<"AB">(x[0], -0.5), x[1]); });
  check_gradients({{"AB"}, {"AB"}}, [](given x) { return weigh(2 / (x[0] * x[0] + 1.5) - (1 - x[0]) / 3 - -x[0], x[1]); });
}

TEST_CASE("gradients: reduce_max") {
  check_gradients({{"ABC"}, {"CA"}}, [](given x) { return weigh(gs::reduce_max<"abc->ca">(x[0]), x[1]); });
  check_gradients({{"AB"}}, [](given x) { return gs::reduce_max<"ab->">(x[0]); });
}

TEST_CASE("gradients: smallest, products, logsumexp") {
  check_gradients({{"ABC"}, {"CA"}}, [](given x) { return weigh(gs::reduce_min<"abc->ca">(x[0]), x[1]); });
  check_gradients({{"AB"}, {"A"}}, [](given x) { return weigh(gs::reduce_prod<"ab->a">(x[0]), x[1]); });
  check_gradients({{"AB"}, {"B"}}, [](given x) { return weigh(gs::logsumexp<"ab->b">(x[0]), x[1]); });
  // Not weigh(): its gradient vanishes where the product does.
  check_gradients({{"AB"}, {"B"}}, [](given x) { return sum(gs::reduce_prod<"ab->b">(x[0]) * x[1]); }, {}, [](arrays& sources) {
    sources[0][0] = sources[0][1] = 0;  // one zero in a product of three
    sources[0][4 + 1] = 0;              // two
  });
}

TEST_CASE("gradients: reductions of diagonals") {
  check_gradients({{"AAB"}, {"AB"}}, [](given x) { return weigh(gs::reduce_prod<"aab->ab">(x[0]), x[1]); });
  check_gradients({{"AAB"}, {"B"}}, [](given x) { return weigh(gs::reduce_prod<"aab->b">(x[0]), x[1]); });
  check_gradients({{"AA"}}, [](given x) { return gs::reduce_max<"aa->">(x[0]) + gs::reduce_min<"aa->">(x[0]); });
  check_gradients({{"AAB"}, {"B"}}, [](given x) { return weigh(gs::logsumexp<"aab->b">(x[0]), x[1]); }, {}, [](arrays& sources) {
    sources[0][4] = 1000;  // off the diagonal
  });
}

TEST_CASE("gradients: broadcasts") {
  check_gradients({{"A"}, {"AA"}}, [](given x) { return weigh(gs::broadcast<"q,qk->qk">(x[0], x[1]), x[1]); });
  check_gradients({{"A"}, {"AA"}}, [](given x) { return weigh(lay_out(gs::broadcast<"k,qk->qk">(x[0], x[1])), x[1]); });
  check_gradients({{"AB"}, {"CBA"}},
                  [](given x) { return weigh(lay_out(gs::broadcast<"ab,cba->bca">(x[0], x[1])), einsum<"cba->bca">(x[1])); });
  check_gradients({{"AB"}, {"BA"}}, [](given x) { return weigh(lay_out(gs::broadcast<"ab->ba">(x[0])), x[1]); });
  check_gradients({{"AA"}}, [](given x) {
    const symbol top = gs::logsumexp<"qk->q">(x[0]);
    return sum(map<[](auto v, auto t, auto u) { return v * exp(v - t) * u; }>(x[0], gs::broadcast<"q,qk->qk">(top, x[0]),
                                                                            gs::broadcast<"k,qk->qk">(top, x[0])));
  });
}

TEST_CASE("gradients: diagonals, einsums of many operands") {
  check_gradients({{"AAB"}, {"AB"}}, [](given x) { return weigh(einsum<"aab->ab">(x[0]), x[1]); });
  check_gradients({{"AA"}, {"A"}, {"A"}}, [](given x) { return weigh(einsum<"aa,a->a">(x[0], x[1]), x[2]); });
  check_gradients({{"AB"}, {"BC"}, {"CA"}, {"B"}},
                  [](given x) { return einsum<"ab,bc,ca,b->">(x[0], x[1], x[2], x[3]); });
}

TEST_CASE("gradients: windows") {
  check_gradients({{"BA"}}, [](given x) {
    const symbol y = gs::concat({gs::slice(x[0], 0, 1, 4, 2), gs::pad(x[0], 0, 1, 0, 1), gs::reverse(x[0], 0), gs::roll(x[0], 0, 3)}, 0);
    return sum(y * y);
  });
  check_gradients({{"GSA"}, {"BAC"}}, [](given x) {
    const symbol y = gs::conv<"BXI,xIO->BXO">(x[0], x[1], {{.stride = 2, .low = 2, .high = 1, .step = 1, .dilation = 2}});
    return sum(y * y);
  });
  check_gradients({{"SB"}}, [](given x) {
    const symbol y = gs::max_pool(x[0], {{0, 3, {.stride = 2, .low = 1}}, {1, 2, {}}}), z = gs::mean_pool(x[0], {{0, 2, {}}});
    return sum(y * y) + sum(z * z);
  });
}

TEST_CASE("gradients: along a dim") {
  check_gradients({{"AB"}}, [](given x) {
    const symbol y = gs::cumsum(x[0]), z = gs::cumsum(x[0], 0, true, true);
    return sum(y * y) + sum(z * z);
  });
  check_gradients({{"AB"}, {"AB"}}, [](given x) { return weigh(gs::sort(x[0]).values, x[1]); });
  check_gradients({{"AB"}}, [](given x) {
    const symbol best = gs::top_k(x[0], 2, 0).values, least = gs::top_k(x[0], 3, 1, false).values;
    return sum(best * best) + sum(least * least);
  });
  check_gradients({{"CAB"}, {"G", i32, 'A'}, {"CGB"}},
                  [](given x) { return weigh(gs::gather(x[0], x[1], 1), x[2]); });
  check_gradients({{"CAB"}, {"G", i32, 'A'}, {"CGB"}}, [](given x) {
    const symbol y = gs::scatter_add(x[0], x[1], x[2], 1);
    return sum(y * y);
  });
}

TEST_CASE("equal maxima share the gradient") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, given x) {
    return gs::gradients(gs::sum(gs::reduce_max<"ab->a">(x[0])), std::array{x[0]});
  });
  const arrays d = run_graph::run(t, run_graph::serial(t, {{'A', 2}, {'B', 4}}), {{1, 5, 5, 0, 3, 3, 3, 3}});
  CHECK(d[0] == run_graph::array{0, 0.5, 0.5, 0, 0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("gradients: attention") {
  check_gradients({{"BSM"}, {"CSM"}, {"CSM"}, {"BSM"}}, [](given x) {
    return weigh(gs::attention(x[0], x[1], x[2], {.causal = true}), x[3]);
  });
  check_gradients({{"ABSM"}, {"ACSM"}, {"ACSM"}, {"ABSM"}}, [](given x) {
    const gs::attention_part a = gs::partial_attention(x[0], x[1], x[2]), b = gs::partial_attention(x[0], x[2], x[1], {.dropout = 0.2});
    const gs::attention_part both = gs::merge_attention(a, b);
    return weigh(both.y, x[3]) + sum(both.log_sum * both.log_sum);
  });
}

TEST_CASE("gradients: rows") {
  check_gradients({{"ABC"}, {"ABC"}}, [](given x) { return weigh(gs::softmax(x[0]), x[1]); });
  check_gradients({{"ABC"}, {"C"}, {"C"}, {"ABC"}},
                  [](given x) { return weigh(gs::layer_norm(x[0], x[1], x[2]), x[3]); });
  for (const double smoothing : {0.0, 0.1})
    check_gradients({{"ABC"}, {"AB", i32, 'C', -1}, {"AB"}},
                    [&](given x) { return weigh(gs::cross_entropy(x[0], x[1], smoothing), x[2]); });
}

TEST_CASE("gradients: gather") {
  check_gradients({{"CM"}, {"AB", i32, 'C'}, {"ABM"}},
                  [](given x) { return weigh(gs::gather(x[0], x[1]), x[2]); });
}

TEST_CASE("gradients: batched gather, dynamic slices") {
  check_gradients({{"AMC"}, {"AG", i32, 'C'}, {"AMG"}}, [](given x) { return weigh(gs::gather(x[0], x[1], 2, 1), x[2]); });
  check_gradients({{"AMC"}, {"AG", i32, 'C'}, {"AMG"}}, [](given x) {
    const symbol y = gs::scatter_add(x[0], x[1], x[2], 2, 1);
    return sum(y * y);
  });
  check_gradients({{"CM"}, {"", i32, 'C'}}, [](given x) {
    const symbol y = gs::dynamic_slice(x[0], 0, x[1], 2);
    return sum(y * y);
  });
  check_gradients({{"CM"}, {"AM"}, {"", i32, 'C'}, {"CM"}},
                  [](given x) { return weigh(gs::dynamic_update_slice(x[0], x[1], 0, x[2]), x[3]); });
}

TEST_CASE("gradients: convolutions whose operands have indices that are summed alone") {
  const auto square = [](symbol y) { return sum(y * y); };
  check_gradients({{"BSA"}, {"MAE"}}, [&](given x) { return square(gs::conv<"BXI,xIO->BX">(x[0], x[1])); });
  check_gradients({{"BSA"}, {"MEG"}}, [&](given x) { return square(gs::conv<"BXI,xOP->XO">(x[0], x[1])); });
}

TEST_CASE("gradients: reshape and annotate") {
  check_gradients({{"ABC"}, {"ABC"}}, [](given x) {
    return weigh(gs::split_dim<1>(lay_out(gs::merge_dims<1>(lay_out(x[0])) * gs::merge_dims<1>(x[1]))), x[1]);
  });
}

TEST_CASE("gradients: dropout") {
  check_gradients({{"ABC"}, {"ABC"}}, [](given x) { return weigh(gs::dropout(x[0], 0.4), x[1]); });
}

TEST_CASE("gradients: gating, dispatch and combine") {
  const auto mask = [](arrays& sources) {
    for (std::size_t i = 0; i < sources[1].size(); ++i) sources[1][i] = i % 4 == 1 ? 0 : 1;
  };
  for (const gs::choice& choice : {gs::choice::top_k, gs::choice::random_second()})
    for (const bool sparse : {true, false}) {
      const auto layer = [&](given x) {
        // The mask is not differentiable: a comparison has slope 0.
        const symbol real = map<[](auto v) { return 0.5 < v ? decltype(v)(1) : decltype(v)(0); }>(x[1]);
        const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), real, {.k = 2, .slots = {1.5}, .choice = choice});
        const symbol in = einsum<"GSEC,GSM->EGCM">(r.dispatch, x[2]);
        const symbol y = einsum<"GSEC,EGCM->GSM">(r.combine, map<[](auto v) { return v * v + v; }>(in));
        return weigh(y, x[3]) + 3.0 * r.aux;
      };
      check_gradients({{"GSE"}, {"GS"}, {"GSM"}, {"GSM"}}, layer, {.sparse_one_hot = sparse}, mask);
    }
}

TEST_CASE("gradients: gating, dispatch and combine of three experts per token") {
  const auto layer = [](given x) {
    const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), {.k = 3, .slots = gs::capacity{2.0}});
    const symbol in = einsum<"GSEC,GSM->EGCM">(r.dispatch, x[1]);
    return weigh(einsum<"GSEC,EGCM->GSM">(r.combine, in * in), x[2]) + 3.0 * r.aux;
  };
  check_gradients({{"GSE"}, {"GSM"}, {"GSM"}}, layer);
}

TEST_CASE("gradients: gating by scores, and expert choice") {
  for (const gs::gate_norm norm : {gs::gate_norm::kept, gs::gate_norm::off})
    for (const bool by_experts : {false, true}) {
      const auto layer = [=](given x) {
        const symbol gates = map<[](auto v) { return 1 / (1 + exp(-v)); }>(x[0]);
        const symbol scores = gs::stop_gradient(gates + x[3]);
        const gs::routing_options of_tokens{.k = 2, .slots = {1.5}, .norm = norm, .scale = 2.5, .scores = scores};
        const gs::routing_options of_experts{.slots = {1.5}, .choice = gs::choice::by_experts, .norm = norm, .scores = scores};
        const gs::gating_result r = gs::top_k_gating(gates, by_experts ? of_experts : of_tokens);
        const symbol in = einsum<"GSEC,GSM->EGCM">(r.dispatch, x[1]);
        return weigh(einsum<"GSEC,EGCM->GSM">(r.combine, in * in), x[2]) + 3.0 * r.aux;
      };
      check_gradients({{"GSE"}, {"GSM"}, {"GSM"}, {"E"}}, layer);
    }
}

TEST_CASE("gradients: expert groups") {
  for (const double rows : {0.0, 1.2}) {
    const auto layer = [rows](given x) {
      const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), {.k = 3, .slots = gs::capacity{2.0}});
      const gs::expert_group_routing sent = gs::send_to_expert_groups(r, x[1], 2, gs::capacity{rows});
      const symbol in = gs::dispatch_in_groups(sent);
      return weigh(gs::combine_from_groups(sent, in * in), x[2]) + 3.0 * r.aux;
    };
    check_gradients({{"GSE"}, {"GSM"}, {"GSM"}}, layer);
  }
}

TEST_CASE("gradients: grouped products, also with transposed matrices, and the gradients of matrices") {
  const auto layer = [](given x) {
    const gs::gating_result gating = gs::top_k_gating(gs::softmax(x[0]), {.k = 2, .slots = gs::capacity::unlimited()});
    const gs::expert_row_routing r = gs::send_rows(gating, x[1], 2);
    const int m = r.rows.get().dims[3];
    const gs::dim_list of_matrices = gs::detail::route::dims({r.group_dim, r.expert_dim, m, m});
    const symbol w = gs::detail::emit_grouped_weight_grad(r.rows, r.rows * r.rows, r.count, of_matrices, false);
    const symbol y = gs::grouped_product(r, r.rows, w), z = gs::detail::emit_grouped_product(r.rows, w, r.count, true, false);
    return weigh(gs::combine_rows(r, y * z), x[2]);
  };
  check_gradients({{"GSE"}, {"GSM"}, {"GSM"}}, layer);
}

TEST_CASE("gradients: one-hot tensors in other uses than routing") {
  check_gradients({{"GSE"}, {"GE"}}, [](given x) {
    const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), {.k = 2});
    return weigh(sum<"GSEC->GE">(r.combine * r.combine), x[1]);
  });
}

TEST_CASE("gradients: tensors with several uses, and none") {
  check_gradients({{"AB"}, {"BC"}, {"C"}}, [](given x) {
    const symbol y = einsum<"ab,bc->ac">(x[0], x[1]), z = y + gs::softmax(y) * y;
    return sum(z * z) + sum(einsum<"ab,bc->ac">(x[0] * x[0], x[1]));
  });
}
