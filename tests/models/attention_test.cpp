// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/attention.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

namespace {

inline constexpr auto attend = [](auto& m, auto query, auto memory, auto bias) {
  return gs::nn::attention(m.scope("a"), query, memory, bias);
};
// Groups are sharded over one axis, or the memory's batch over the other one. Heads are not sharded. One program for each kind of bias.
using by_padding = gs::program<attend, mesh, in<"GBQM", P<"data", none, none, none>, double>,
                               in<"GBKM", P<"data", none, none, none>, double>,
                               in<"GBK", P<"data", none, none>, double>, gs::element<double>>;
using by_position = gs::program<attend, mesh, in<"GBQM", P<"data", none, none, none>, double>,
                                in<"GBKM", P<none, "model", none, none>, double>, in<"QK", void, double>,
                                gs::element<double>>;

constexpr std::size_t G = 2, B = 3, Q = 4, K = 5, M = 6, H = 2, D = 3;
const gs::dims extents{{'G', G}, {'B', B}, {'Q', Q}, {'K', K}, {'M', M}, {'H', H}, {'D', D}};

std::vector<double> numbers(std::size_t n, double phase) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(phase + 1.7 * double(i));
  return v;
}
const double* parameter(const gs::parameter_store& store, std::string_view name) {
  return store.find(name)->value.as<double>(0);
}

/// bias(g, b, q, k)
template <class Bias>
std::vector<double> naive(const gs::parameter_store& store, const std::vector<double>& x,
                          const std::vector<double>& memory, Bias bias) {
  const double *wq = parameter(store, "a.wq"), *wk = parameter(store, "a.wk"), *wv = parameter(store, "a.wv"),
               *wo = parameter(store, "a.wo");
  const auto project = [](const double* row, const double* w, std::size_t h, std::size_t d) {
    double sum = 0;
    for (std::size_t m = 0; m < M; ++m) sum += row[m] * w[(m * H + h) * D + d];
    return sum;
  };
  std::vector<double> y(G * B * Q * M, 0.0);
  for (std::size_t g = 0; g < G; ++g)
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t h = 0; h < H; ++h)
        for (std::size_t q = 0; q < Q; ++q) {
          const double* row = &x[((g * B + b) * Q + q) * M];
          std::vector<double> weight(K);
          double total = 0;
          for (std::size_t k = 0; k < K; ++k) {
            double score = 0;
            for (std::size_t d = 0; d < D; ++d)
              score += project(row, wq, h, d) * project(&memory[((g * B + b) * K + k) * M], wk, h, d);
            weight[k] = std::exp(score / std::sqrt(double(D)) + bias(g, b, q, k));
            total += weight[k];
          }
          for (std::size_t d = 0; d < D; ++d) {
            double attended = 0;
            for (std::size_t k = 0; k < K; ++k)
              attended += weight[k] / total * project(&memory[((g * B + b) * K + k) * M], wv, h, d);
            for (std::size_t m = 0; m < M; ++m)
              y[((g * B + b) * Q + q) * M + m] += attended * wo[(h * D + d) * M + m];
          }
        }
  return y;
}

template <class Program, class Bias>
void check(const std::vector<double>& bias_data, Bias bias) {
  const std::vector<double> x = numbers(G * B * Q * M, 0), memory = numbers(G * B * K * M, 1);
  std::vector<double> expected;
  for (const std::vector<int>& e : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {3, 2}, {2, 2}}) {
    const auto on = gs::simulate<mesh>(e);
    gs::parameter_store store(on, 5);
    gs::executable<Program> run(on, extents, store);
    const std::vector<double> y = gs::to_global(run(x, memory, bias_data));
    if (expected.empty()) expected = naive(store, x, memory, bias);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("attention with a bias per key, as padding has, is the textbook's loop") {
  std::vector<double> bias(G * B * K, 0.0);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = i % K > 2 + i / K % 3 ? -1e9 : 0;
  check<by_padding>(bias, [&](std::size_t g, std::size_t b, std::size_t, std::size_t k) {
    return bias[(g * B + b) * K + k];
  });
}

TEST_CASE("attention with a bias per pair of positions, as causality has") {
  std::vector<double> bias(Q * K, 0.0);
  for (std::size_t q = 0; q < Q; ++q)
    for (std::size_t k = q + 1; k < K; ++k) bias[q * K + k] = -1e9;
  check<by_position>(bias,
                     [&](std::size_t, std::size_t, std::size_t q, std::size_t k) { return bias[q * K + k]; });
}

TEST_CASE("self-attention: a bias of padding is one of keys, whatever their dim is called") {
  constexpr auto to_itself = [](auto& m, auto x, auto bias) { return gs::nn::attention(m.scope("a"), x, x, bias); };
  constexpr auto to_others = [](auto& m, auto x, auto memory, auto bias) { return gs::nn::attention(m.scope("a"), x, memory, bias); };
  using one_dim = gs::program<to_itself, mesh, in<"GBKM", P<"data", none, "model", none>, double>, in<"GBK", P<"data", none, none>, double>,
                              gs::element<double>>;
  using two_dims =
      gs::program<to_others, mesh, in<"GBQM", void, double>, in<"GBKM", void, double>, in<"GBK", void, double>, gs::element<double>>;
  std::vector<double> bias(G * B * K, 0.0);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = i % K > 2 + i / K % 3 ? -1e9 : 0;
  const std::vector<double> x = numbers(G * B * K * M, 0);
  const gs::dims square{{'G', G}, {'B', B}, {'Q', K}, {'K', K}, {'M', M}, {'H', H}, {'D', D}};
  const auto on = gs::simulate<mesh>({2, 2});
  gs::parameter_store store(on, 5);
  gs::executable<one_dim> itself(on, square, store);
  gs::executable<two_dims> others(on, square, store);
  const std::vector<double> y = gs::to_global(itself(x, bias)), expected = gs::to_global(others(x, x, bias));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("attention with options equals attention with a bias") {
  constexpr auto in_blocks = [](auto& m, auto x, auto mask) {
    return gs::nn::attention(m.scope("a"), x, x, {.causal = true, .mask = mask});
  };
  constexpr auto with_bias = [](auto& m, auto x, auto bias) { return gs::nn::attention(m.scope("a"), x, x, bias); };
  using fused = gs::program<in_blocks, mesh, in<"GBKM", P<"data", none, none, none>, double>, in<"GBK", P<"data", none, none>, double>,
                            gs::element<double>>;
  using plain = gs::program<with_bias, mesh, in<"GBKM", void, double>, in<"GBKK", void, double>, gs::element<double>>;
  std::vector<double> mask(G * B * K), bias(G * B * K * K);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % K > 2 + i / K % 3 ? 0 : 1;
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = i % K > i / K % K || mask[i / (K * K) * K + i % K] == 0 ? -1e9 : 0;
  const std::vector<double> x = numbers(G * B * K * M, 0);
  for (const std::vector<int>& e : std::vector<std::vector<int>>{{1, 1}, {2, 2}}) {
    const auto on = gs::simulate<mesh>(e);
    gs::parameter_store store(on, 5);
    gs::executable<fused> blocks(on, extents, store);
    gs::executable<plain> whole(on, extents, store);
    const std::vector<double> y = gs::to_global(blocks(x, mask)), expected = gs::to_global(whole(x, bias));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("attention with grouped and rotated heads: with every sharding as on one device; gradients are central differences") {
  const auto model = [](auto& m, auto x) { return gs::nn::attention(m, x, x, {.causal = true, .grouped = true, .rotary_base = 100}); };
  CHECK(gs::check_shardings(model, {"GBKM"}, {.sizes = {{{'G', 2}, {'B', 1}, {'K', 5}, {'M', 4}, {'H', 2}, {'R', 2}, {'D', 4}}}}) == "");
}
