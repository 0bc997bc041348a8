// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local arithmetic on one thread. GFLOP/s count 2 operations per product; GB/s count every array once per
// read or write.
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/kernel/move/fill.hpp>
#include <gshard/moe/routing/routing_kernel.hpp>
#include <gshard/ops/attention/attention_kernel.hpp>
#include <gshard/ops/random/dropout_kernel.hpp>
#include <gshard/ops/rows/cross_entropy_kernel.hpp>
#include <gshard/ops/rows/layer_norm_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>
#include <gshard/train/adam_kernel.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace {

namespace ks = gshard::kernel;

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  ks::fill_normal(v.data(), ks::whole(1, {n}), 1.0, {1, 2, 3});
  return v;
}

void count_bytes(benchmark::State& state, double bytes) {
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * bytes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
void count_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(1e-9 * flops * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

using extents = std::map<char, std::int64_t>;

ks::operand_dims operand(const std::string& letters, const extents& sizes) {
  ks::operand_dims dims;
  dims.rank = static_cast<int>(letters.size());
  for (std::size_t d = 0; d < letters.size(); ++d) {
    dims.factor[d] = static_cast<int>(std::distance(sizes.begin(), sizes.find(letters[d])));
    dims.extent[d] = sizes.at(letters[d]);
  }
  return dims;
}

void contraction(benchmark::State& state, const std::string& a, const std::string& b, const std::string& out,
                 const extents& all) {
  extents sizes;
  double flops = 2;
  for (const auto& [letter, extent] : all)
    if ((a + b).find(letter) != std::string::npos) {
      sizes[letter] = extent;
      flops *= static_cast<double>(extent);
    }
  const ks::operand_dims da = operand(a, sizes), db = operand(b, sizes), dout = operand(out, sizes);
  const auto x = numbers(ks::element_count(da.rank, da.extent)),
             y = numbers(ks::element_count(db.rank, db.extent));
  auto z = numbers(ks::element_count(dout.rank, dout.extent));
  const ks::contraction<float> c(da, db, dout);
  for (auto _ : state) {
    c.run(x.data(), y.data(), z.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, flops);
}

void one_operand(benchmark::State& state, const std::string& a, const std::string& out, const extents& all) {
  extents sizes;
  for (const auto& [letter, extent] : all)
    if (a.find(letter) != std::string::npos) sizes[letter] = extent;
  const ks::operand_dims da = operand(a, sizes), dout = operand(out, sizes);
  const auto x = numbers(ks::element_count(da.rank, da.extent));
  auto z = numbers(ks::element_count(dout.rank, dout.extent));
  const ks::contraction<float> c(da, dout);
  for (auto _ : state) {
    c.run(x.data(), z.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, 4.0 * static_cast<double>(x.size() + z.size()));
}

constexpr std::int64_t large = 1 << 24;  // 64 MiB of float

void softmax(benchmark::State& state) {
  const std::int64_t cols = state.range(0), rows = large / cols;
  const auto x = numbers(rows * cols);
  auto y = x;
  for (auto _ : state) ks::softmax(x.data(), y.data(), rows, cols);
  count_bytes(state, 8.0 * static_cast<double>(rows * cols));
}
void softmax_grad(benchmark::State& state) {
  const std::int64_t cols = state.range(0), rows = large / cols;
  const auto y = numbers(rows * cols), dy = y;
  auto dx = y;
  for (auto _ : state) ks::softmax_grad(y.data(), dy.data(), dx.data(), rows, cols);
  count_bytes(state, 12.0 * static_cast<double>(rows * cols));
}
void layer_norm(benchmark::State& state) {
  const std::int64_t cols = state.range(0), rows = large / cols;
  const auto x = numbers(rows * cols), gamma = numbers(cols), beta = numbers(cols);
  auto y = x;
  for (auto _ : state) ks::layer_norm(x.data(), gamma.data(), beta.data(), y.data(), rows, cols, 1e-5F);
  count_bytes(state, 8.0 * static_cast<double>(rows * cols));
}
void layer_norm_grad(benchmark::State& state) {
  const std::int64_t cols = state.range(0), rows = large / cols;
  const auto x = numbers(rows * cols), dy = x, gamma = numbers(cols);
  auto dx = x, dgamma = gamma, dbeta = gamma;
  for (auto _ : state)
    ks::layer_norm_grad(x.data(), gamma.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(), rows, cols,
                        1e-5F);
  count_bytes(state, 12.0 * static_cast<double>(rows * cols));
}
void cross_entropy(benchmark::State& state) {
  const std::int64_t cols = state.range(0), rows = large / cols;
  const auto x = numbers(rows * cols);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), 3);
  std::vector<float> loss(labels.size());
  for (auto _ : state) ks::cross_entropy(x.data(), labels.data(), loss.data(), rows, cols, 0.1F);
  count_bytes(state, 4.0 * static_cast<double>(rows * cols));
}
void adam(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  auto p = numbers(n), g = p, m = p, v = std::vector<float>(p.size(), 1e-3F);
  std::int64_t step = 0;
  for (auto _ : state)
    ks::adam(p.data(), g.data(), m.data(), v.data(), n, 1e-3, 0.9, 0.98, 1e-9, 0.01, ++step);
  count_bytes(state, 28.0 * static_cast<double>(n));
}
void dropout(benchmark::State& state) {
  const auto x = numbers(large);
  auto y = x;
  for (auto _ : state) ks::dropout(x.data(), y.data(), ks::whole(1, {large}), 0.1, {1, 2, 3});
  count_bytes(state, 8.0 * static_cast<double>(large));
}
void copy(benchmark::State& state) {
  const auto x = numbers(large);
  auto y = x;
  for (auto _ : state) {
    std::copy(x.begin(), x.end(), y.begin());
    benchmark::ClobberMemory();
  }
  count_bytes(state, 8.0 * static_cast<double>(large));
}

/// Routing of 2048 tokens in one group to `choices` experts each. Arguments: experts, model.
struct routing {
  ks::gating_sizes n;
  std::int64_t model;
  std::vector<float> gates, x, buffers;
  std::vector<std::int32_t> slot;
  std::vector<float> weight;

  explicit routing(const benchmark::State& state, std::int64_t choices = 2)
      : n{1, 2048, state.range(0), choices * 2048 / state.range(0), choices},
        model(state.range(1)),
        gates(numbers(n.tokens * n.experts)),
        x(numbers(n.tokens * model)),
        buffers(numbers(n.experts * n.capacity * model)),
        slot(static_cast<std::size_t>(n.tokens * choices)),
        weight(slot.size()) {
    ks::softmax(gates.data(), gates.data(), n.tokens, n.experts);
    route();
  }
  void route() {
    float aux, overflow;
    ks::top_k_gating<float>(gates.data(), nullptr, slot.data(), weight.data(), &aux, nullptr, &overflow, nullptr, n,
                           n.choices == 2, {1, 2, 3}, 0);  // the second of two experts is drawn
  }
  double kept_bytes() const { return 4.0 * static_cast<double>(n.experts * n.capacity * model); }
};

void count_tokens(benchmark::State& state) {
  state.counters["ns/token"] = benchmark::Counter(static_cast<double>(state.iterations()) * 2048e-9,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
void top2_gating(benchmark::State& state) {
  routing r(state);
  for (auto _ : state) r.route();
  count_tokens(state);
}
void top_8_gating(benchmark::State& state) {
  routing r(state, 8);
  for (auto _ : state) r.route();
  count_tokens(state);
}
/// The same gating by std::partial_sort of the experts of each token.
void top_8_gating_by_sort(benchmark::State& state) {
  const routing r(state, 8);
  const std::int64_t choices = r.n.choices, experts = r.n.experts;
  std::vector<std::int32_t> order(static_cast<std::size_t>(experts)), slot(r.slot.size()), chosen(slot.size());
  std::vector<float> weight(slot.size()), sums(order.size());
  std::vector<std::int64_t> used(order.size());
  float aux = 0;
  for (auto _ : state) {
    std::fill(used.begin(), used.end(), 0);
    std::fill(sums.begin(), sums.end(), 0.0F);
    const auto take = [&](std::int64_t at) {
      const std::int32_t e = chosen[static_cast<std::size_t>(at)];
      const std::int64_t c = used[static_cast<std::size_t>(e)]++;
      slot[static_cast<std::size_t>(at)] = c < r.n.capacity ? static_cast<std::int32_t>(e * r.n.capacity + c) : -1;
      if (c >= r.n.capacity) weight[static_cast<std::size_t>(at)] = 0;
    };
    for (std::int64_t s = 0; s < r.n.tokens; ++s) {
      const float* const gates = r.gates.data() + s * experts;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + choices, order.end(),
                        [=](std::int32_t a, std::int32_t b) { return gates[a] != gates[b] ? gates[a] > gates[b] : a < b; });
      float sum = 0;
      for (std::int64_t k = 0; k < choices; ++k) sum += gates[order[static_cast<std::size_t>(k)]];
      for (std::int64_t k = 0; k < choices; ++k) {
        const std::int32_t e = order[static_cast<std::size_t>(k)];
        chosen[static_cast<std::size_t>(s * choices + k)] = e;
        weight[static_cast<std::size_t>(s * choices + k)] = gates[e] / sum;
      }
      for (std::size_t e = 0; e < sums.size(); ++e) sums[e] += gates[e];
      take(s * choices);
    }
    const auto tokens = static_cast<float>(r.n.tokens);
    aux = 0;
    for (std::size_t e = 0; e < sums.size(); ++e) aux += static_cast<float>(used[e]) / tokens * (sums[e] / tokens);
    benchmark::DoNotOptimize(aux /= static_cast<float>(experts));
    for (std::int64_t k = 1; k < choices; ++k)
      for (std::int64_t s = 0; s < r.n.tokens; ++s) take(s * choices + k);
    benchmark::ClobberMemory();
  }
  if (slot != r.slot) state.SkipWithError("the slots differ from those of gshard");
  count_tokens(state);
}
void dispatch(benchmark::State& state) {
  routing r(state);
  const ks::expert_buffers<float> b{r.buffers.data(), r.n.capacity * r.model, 0, r.model, 0, r.n.experts,
                                    r.model};
  for (auto _ : state) ks::dispatch<float>(r.slot.data(), nullptr, r.x.data(), b, r.n);
  count_bytes(state, 2 * r.kept_bytes());
}
void combine(benchmark::State& state) {
  routing r(state);
  const ks::expert_buffers<const float> b{
      r.buffers.data(), r.n.capacity * r.model, 0, r.model, 0, r.n.experts, r.model};
  for (auto _ : state) ks::combine(r.slot.data(), r.weight.data(), b, r.x.data(), r.n);
  count_bytes(state, r.kept_bytes() + 4.0 * static_cast<double>(r.x.size()));
}

/// Self-attention of 8 heads of 64, in blocks.
void attention(benchmark::State& state, bool causal, bool gradient) {
  const ks::attention_sizes s{1, state.range(0), state.range(0), 8, 1, 64, 0, causal};
  const auto q = numbers(s.queries * s.heads * s.depth), k = q, v = q, dy = q;
  auto y = q, dq = q, dk = q, dv = q;
  std::vector<float> log_sum(static_cast<std::size_t>(s.queries * s.heads)), delta = log_sum;
  ks::attention(q.data(), k.data(), v.data(), nullptr, y.data(), log_sum.data(), s);
  for (auto _ : state) {
    if (gradient)
      ks::attention_grad(q.data(), k.data(), v.data(), log_sum.data(), delta.data(), dy.data(), nullptr, dq.data(), dk.data(), dv.data(), s);
    else ks::attention(q.data(), k.data(), v.data(), nullptr, y.data(), log_sum.data(), s);
    benchmark::ClobberMemory();
  }
  const double products = static_cast<double>(s.heads * s.depth * s.queries * s.keys) / (causal ? 2 : 1);
  count_flops(state, (gradient ? 10 : 4) * products);
}
/// The same attention by two products and a softmax, with all scores in memory.
void attention_of_scores(benchmark::State& state) {
  const extents sizes{{'D', 64}, {'H', 8}, {'K', state.range(0)}, {'Q', state.range(0)}};
  const ks::operand_dims q = operand("QHD", sizes), k = operand("KHD", sizes), w = operand("HQK", sizes);
  const auto x = numbers(ks::element_count(q.rank, q.extent));
  auto scores = numbers(ks::element_count(w.rank, w.extent)), y = x;
  const ks::contraction<float> score(q, k, w), weigh(w, k, q);
  const std::int64_t rows = 8 * state.range(0), cols = state.range(0);
  for (auto _ : state) {
    score.run(x.data(), x.data(), scores.data());
    ks::softmax(scores.data(), scores.data(), rows, cols);
    weigh.run(scores.data(), x.data(), y.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, 4.0 * 8 * 64 * static_cast<double>(cols * cols));
}
BENCHMARK_CAPTURE(attention, all, false, false)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(attention, causal, true, false)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(attention, gradient, false, true)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(attention_of_scores)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(softmax)->Arg(8)->Arg(12)->Arg(16)->Arg(32)->Arg(512);
BENCHMARK(softmax_grad)->Arg(8)->Arg(32)->Arg(512);
BENCHMARK(layer_norm)->Arg(128)->Arg(512);
BENCHMARK(layer_norm_grad)->Arg(128)->Arg(512);
BENCHMARK(cross_entropy)->Arg(8192);
BENCHMARK(adam)->Arg(1 << 14)->Arg(large);
BENCHMARK(dropout);
BENCHMARK(copy);
BENCHMARK(top2_gating)->Args({8, 512})->Args({16, 128})->Args({512, 128});
BENCHMARK(top_8_gating)->Args({64, 128})->Args({256, 128});
BENCHMARK(top_8_gating_by_sort)->Args({64, 128})->Args({256, 128});
BENCHMARK(dispatch)->Args({8, 512})->Args({16, 128});
BENCHMARK(combine)->Args({8, 512})->Args({16, 128});

void register_contractions() {
  struct model {
    const char* name;
    extents sizes;
  };
  // The extents of the measured baselines, MoE layers and a Transformer step: 8 groups of 256 tokens, 32 sequences of 32.
  const model models[] = {
      {"M512", {{'G', 8}, {'S', 256}, {'M', 512}, {'E', 8}, {'C', 64}, {'H', 2048}}},
      {"M128", {{'G', 8}, {'S', 256}, {'M', 128}, {'E', 16}, {'C', 32}, {'H', 512}}},
  };
  const model transformers[] = {
      {"T32",
       {{'G', 4}, {'B', 8}, {'T', 32}, {'Q', 32}, {'K', 32}, {'H', 8}, {'D', 32}, {'M', 256}, {'V', 8192}}},
      {"T12",
       {{'G', 4}, {'B', 16}, {'T', 12}, {'Q', 12}, {'K', 12}, {'H', 4}, {'D', 32}, {'M', 128}, {'V', 1024}}},
  };
  const std::vector<std::vector<std::string>> moe{
      {"GSM", "ME", "GSE"},    {"EGCM", "EMH", "EGCH"}, {"EGCH", "EHM", "EGCM"}, {"EGCM", "EGCH", "EMH"},
      {"EGCH", "EMH", "EGCM"}, {"GECM", "EMH", "GECH"}, {"GSM", "GSE", "ME"},    {"GSE", "ME", "GSM"}};
  const std::vector<std::vector<std::string>> attention{
      {"GBTM", "MHD", "GBTHD"},    {"GBQHD", "GBKHD", "GBHQK"}, {"GBHQK", "GBKHD", "GBQHD"},
      {"GBHQK", "GBQHD", "GBKHD"}, {"GBTHD", "HDM", "GBTM"},    {"GBTHD", "MHD", "GBTM"},
      {"GBTM", "GBTHD", "MHD"},    {"GBTM", "VM", "GBTV"},      {"GBTV", "VM", "GBTM"},
      {"GBTM", "GBTV", "MV"},      {"GBTV", "GBTM", "VM"},      {"GBTM", "GBTM", "GBT"},
      {"GBTM", "M", "GBTM"}};
  const auto add = [](const auto& equations, const auto& in) {
    for (const auto& m : in)
      for (const auto& e : equations)
        benchmark::RegisterBenchmark(
            (e[0] + "," + e[1] + "->" + e[2] + "/" + m.name).c_str(),
            [e, m](benchmark::State& s) { contraction(s, e[0], e[1], e[2], m.sizes); });
  };
  add(moe, models);
  add(attention, transformers);
  const extents square{{'M', 2048}, {'N', 2048}, {'H', 8}};
  for (const auto& [a, out] :
       {std::pair{"MN", "NM"}, {"MNH", "NMH"}, {"MN", "N"}, {"MN", "M"}, {"MNH", "MN"}})
    benchmark::RegisterBenchmark((std::string(a) + "->" + out).c_str(),
                                 [=, from = std::string(a), to = std::string(out)](benchmark::State& s) {
                                   one_operand(s, from, to, square);
                                 });
}

}  // namespace

int main(int argc, char** argv) {
  register_contractions();
  benchmark::AddCustomContext("names", "softmax/32: rows of 32; attention/causal/2048: that length; adam/16384: so many numbers; combine/8/512: 8 experts, model of 512; top_8_gating/64/128: of 64 experts; "
                                       "GSM,ME->GSE/M512: an einsum in the MoE layer with M = 512; .../T32: in a Transformer of 32 words "
                                       "a sentence; MN->NM: a transposition; MN->N: a sum");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
