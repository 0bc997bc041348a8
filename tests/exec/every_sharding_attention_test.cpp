// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention and its gradient, with any layout of its operands, equal those on one device, and its formula.
#include "with_gradients.hpp"

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using gs::einsum, gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::with_gradients;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> attention_sizes{{{'B', 2}, {'Q', 6}, {'K', 5}, {'H', 4}, {'R', 2}, {'D', 3}},
                                  {{'B', 3}, {'Q', 5}, {'K', 6}, {'H', 2}, {'R', 3}, {'D', 2}}};

void put_mask(run_graph::array& mask) {
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 4 == 1 || i < 2 ? 0 : 1;
}

}  // namespace

TEST_CASE("attention") {
  const auto plain = [](const scope&, given x) { return with_gradients(gs::attention(x[0], x[1], x[2]), x, 3); };
  every_sharding(trace({{"BQHD"}, {"BKHD"}, {"BKHD"}, {"BQHD"}}, plain), {.dims = attention_sizes, .tolerance = 1e-12});
  const auto causal = [](const scope&, given x) {
    return with_gradients(gs::attention(x[0], x[1], x[2], {.causal = true, .dropout = 0.25}), x, 3);
  };
  every_sharding(trace({{"QHRD"}, {"KHD"}, {"KHD"}, {"QHRD"}}, causal), {.dims = attention_sizes, .tolerance = 1e-12});
}

TEST_CASE("attention with a mask and a position") {
  const auto program = [](const scope&, given x) {
    return with_gradients(gs::attention(x[0], x[1], x[2], {.mask = x[3], .position = x[4]}), x, 3);
  };
  every_sharding(trace({{"BQHD"}, {"BKHD"}, {"BKHD"}, {"BK"}, {"B", gs::dtype::i32, 'K'}, {"BQHD"}}, program),
                 {.dims = {attention_sizes[0]}, .tolerance = 1e-12, .prepare = [](run_graph::arrays& a) { put_mask(a[3]); }});
}

TEST_CASE("attention over parts of the keys") {
  const auto program = [](const scope&, given x) {
    const gs::attention_part a = gs::partial_attention(x[0], x[1], x[1], {.mask = x[3]}), b = gs::partial_attention(x[0], x[2], x[2]);
    return with_gradients(gs::merge_attention(a, b).y, x, 3);
  };
  every_sharding(trace({{"BQHD"}, {"BKHD"}, {"BKHD"}, {"BK"}, {"BQHD"}}, program),
                 {.dims = {attention_sizes[0]}, .tolerance = 1e-12, .prepare = [](run_graph::arrays& a) { put_mask(a[3]); }});
}

TEST_CASE("attention over parts of the keys: a query that sees no key of any part has the result 0, and changes no gradient") {
  const auto program = [](const scope&, given x) {
    const gs::attention_options masked{.mask = x[2]};
    const gs::attention_part a = gs::partial_attention(x[0], x[1], x[1], masked), b = gs::partial_attention(x[0], x[1], x[1], masked);
    return with_gradients(gs::merge_attention(a, b).y, x, 2);
  };
  const run_graph::traced t = trace({{"BQHD"}, {"BKHD"}, {"BK"}, {"BQHD"}}, program);
  run_graph::arrays in = run_graph::random_sources(t, attention_sizes[0], 5);
  for (double& m : in[2]) m = 0;
  for (const run_graph::array& result : run_graph::run(t, run_graph::serial(t, attention_sizes[0]), in))
    for (const double v : result) CHECK(v == 0);
}

TEST_CASE("attention equals its formula, with the same dropout") {
  for (const double rate : {0.0, 0.4}) {
    const auto formula = [&](const scope& m, given x) {
      const symbol q = gs::cast(gs::iota<"QK">(m, 0), x[0].get().type), k = gs::cast(gs::iota<"QK">(m, 1), x[0].get().type);
      const symbol scores = gs::scale_by<"D">(einsum<"bqhrd,bkhd->bhrqk">(x[0], x[1]), -0.5);
      const symbol later = gs::map<[](auto i, auto j) { return j <= i ? decltype(i)(0) : decltype(i)(-1e9); }>(q, k);
      const symbol hidden = gs::map<[](auto real) { return (real - 1) * 1e9; }>(x[3]);
      const symbol weights = gs::softmax(scores + later + gs::broadcast<"BK,BHRQK->BHRQK">(hidden, scores));
      return with_gradients(einsum<"bhrqk,bkhd->bqhrd">(gs::dropout(weights, rate), x[2]), x, 3);
    };
    const auto fused = [&](const scope&, given x) {
      return with_gradients(gs::attention(x[0], x[1], x[2], {.causal = true, .mask = x[3], .dropout = rate}), x, 3);
    };
    const std::vector<run_graph::input> inputs{{"BQHRD"}, {"BKHD"}, {"BKHD"}, {"BK"}, {"BQHRD"}};
    const run_graph::traced a = trace(inputs, formula), b = trace(inputs, fused);
    for (const gs::dims& d : attention_sizes) {
      run_graph::arrays in = run_graph::random_sources(a, d, 5);
      put_mask(in[3]);
      // Every query sees a key.
      for (std::int64_t row = 0; row < d.find('B'); ++row) in[3][static_cast<std::size_t>(row * d.find('K'))] = 1;
      CHECK(run_graph::distance(run_graph::run(a, run_graph::serial(a, d), in), run_graph::run(b, run_graph::serial(b, d), in)) < 1e-12);
    }
  }
}
