// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares the measurements of arXiv 2006.16668 on TPU v3 pods (section 5, tables 3 and 4) with plans of this library's partitioner. They
// are simulated with one set of efficiencies.
#include <gshard/sim/run/dry_run.hpp>

#include <gshard/plan.hpp>

#include "plan_run/translation_model.hpp"
#include "../../allocations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using part = gs::step_part;

namespace {

/// The slice of a pod with this many cores, as square as possible.
gs::hardware cores(int n) {
  int rows = 1, columns = n / 2;
  while (rows < columns) rows *= 2, columns /= 2;
  return gs::make_hardware(gs::find_preset("tpu-v3"), {rows, columns});
}
const gs::plan_tables& planned(int layers) {
  static std::vector<gs::plan_tables> plans(100);
  gs::plan_tables& p = plans[std::size_t(layers)];
  if (p.steps.empty()) {
    gs::mesh_shape mesh;
    mesh.push_back("expert", gs::dynamic);
    plan_run::translation_model m;
    m.layers = layers;
    p = plan_run::plan_of(m, mesh);
    REQUIRE(!p.problem);
  }
  return p;
}
plan_run::translation_model model(int layers, int experts, std::int64_t tokens_per_core) {
  plan_run::translation_model m;
  m.layers = layers;
  m.experts = m.groups = experts;
  m.tokens = tokens_per_core * experts;
  return m;
}
gs::run_record run(int layers, int experts, std::int64_t tokens_per_core, gs::recompute how = gs::recompute::when_needed) {
  const gs::plan_view plan = planned(layers).view();
  gs::dry_run_options o;
  o.activations = how;
  return gs::dry_run(plan, plan.bind(model(layers, experts, tokens_per_core).dims(), std::array{experts}), cores(experts), o);
}
double seconds(const gs::run_record& r, part p) { return r.parts[std::size_t(p)]; }
/// The time of the Transformer and MoE layers, as in figure 8.
double of_layers(const gs::run_record& r) {
  double sum = 0;
  for (const part p :
       {part::attention, part::feed_forward, part::moe_feed_forward, part::gate_einsum, part::gate_other, part::dispatch_combine})
    sum += seconds(r, p);
  return sum;
}
std::int64_t bytes(const gs::run_record& r, gs::memory_kind k) { return r.memory.bytes[std::size_t(k)]; }
double recomputed(const gs::run_record& r) {
  double sum = 0;
  for (const gs::step_record& s : r.steps) sum += s.recomputed ? s.seconds : 0;
  return sum;
}
void check_near(double got, double expected, double share) {
  CHECK(got >= expected * (1 - share));
  CHECK(got <= expected * (1 + share));
}

}  // namespace

TEST_CASE("paper: a layer takes 1.7 times as long with 2048 experts as with 128, the exchange 16 and 36 % of it") {
  const gs::run_record few = run(12, 128, 2048), many = run(12, 2048, 2048);
  const double growth = of_layers(many) / of_layers(few);
  MESSAGE("layers ", growth, "; exchange ", 100 * seconds(few, part::dispatch_combine) / of_layers(few), " % and ",
          100 * seconds(many, part::dispatch_combine) / of_layers(many), " %, grows ",
          seconds(many, part::dispatch_combine) / seconds(few, part::dispatch_combine), "; gate einsums grow ",
          seconds(many, part::gate_einsum) / seconds(few, part::gate_einsum), "; other gating ",
          100 * seconds(few, part::gate_other) / of_layers(few), " % and ", 100 * seconds(many, part::gate_other) / of_layers(many), " %");
  check_near(growth, 1.7, 0.15);
  CHECK(std::abs(seconds(few, part::dispatch_combine) / of_layers(few) - 0.16) <= 0.06);
  CHECK(std::abs(seconds(many, part::dispatch_combine) / of_layers(many) - 0.36) <= 0.06);
  const double exchange = seconds(many, part::dispatch_combine) / seconds(few, part::dispatch_combine);
  CHECK(exchange >= 3.4);
  CHECK(exchange <= 4.2);
  CHECK(seconds(few, part::gate_other) < 0.02 * of_layers(few));
  CHECK(seconds(many, part::gate_other) < 0.10 * of_layers(many));
}

TEST_CASE("paper: table 3, step times of six models") {
  struct row {
    int layers, experts;
    std::int64_t tokens_per_core;
    double paper, got;
  };
  std::vector<row> rows{{36, 2048, 2048, 1 / 0.72, 0}, {12, 2048, 2048, 1 / 2.15, 0}, {36, 512, 2048, 1 / 1.05, 0},
                        {12, 512, 2048, 1 / 3.28, 0},  {36, 128, 8192, 1 / 0.67, 0},  {12, 128, 8192, 1 / 2.16, 0}};
  double sum = 0;
  for (row& r : rows) {
    r.got = run(r.layers, r.experts, r.tokens_per_core).seconds;
    sum += std::log(r.got / r.paper);
  }
  const double fit = std::exp(sum / double(rows.size()));
  for (const row& r : rows) {
    MESSAGE(r.experts, " experts, ", r.layers, " layers: ", r.got, " s, the paper ", r.paper, " s, ", r.got / r.paper / fit,
            " after a fit of ", fit);
    CHECK(r.got / r.paper / fit <= 2);
    CHECK(r.got / r.paper / fit >= 0.5);
  }
  MESSAGE("512 -> 2048 experts: ", rows[0].got / rows[2].got, " and ", rows[1].got / rows[3].got);
  check_near(rows[0].got / rows[2].got, 1.46, 0.15);
  check_near(rows[1].got / rows[3].got, 1.53, 0.15);
}

TEST_CASE("paper: weights of the models of 36 layers on a core, which do not grow with the experts") {
  std::int64_t first = 0;
  for (const int experts : {128, 512, 2048}) {
    const gs::plan_view plan = planned(36).view();
    const gs::extents e = plan.bind(model(36, experts, 2048).dims(), std::array{experts});
    std::int64_t weights = 0, gates = 0;  // gates have weights for all experts, on every core: the paper neglects them
    for (const gs::parameter& p : plan.parameters)
      if (p.trainable) (p.name.view().ends_with(".wg") ? gates : weights) += gs::detail::shard_bytes(plan, p.value, e);
    MESSAGE(experts, " experts: ", double(weights) * 1e-9, " GB, gates ", double(gates) * 1e-9, " GB");
    check_near(double(weights), 4.75e9, 0.02);
    if (first == 0) first = weights;
    CHECK(weights == first);
    const gs::run_record r = run(36, experts, 2048);
    CHECK(bytes(r, gs::memory_kind::replicated_weight) + bytes(r, gs::memory_kind::sharded_weight) == weights + gates);
  }
}

TEST_CASE("paper: memory of a core does not grow with the experts but by what the gates are") {
  const gs::run_record few = run(12, 128, 2048), many = run(12, 2048, 2048);
  MESSAGE("peak ", double(few.memory.peak) * 1e-9, " GB and ", double(many.memory.peak) * 1e-9, " GB");
  check_near(double(many.memory.peak), double(few.memory.peak), 0.03);
  CHECK(bytes(many, gs::memory_kind::sharded_weight) == bytes(few, gs::memory_kind::sharded_weight));
}

TEST_CASE("paper: 12 and 24 layers fit into a core, 36 and 60 only if activations are made again; so 60 layers hold fewer than 36") {
  const auto at = [](int layers) { return run(layers, 2048, 2048); };
  const gs::run_record of12 = at(12), of24 = at(24), of36 = at(36), of60 = at(60);
  for (const gs::run_record* r : {&of12, &of24, &of36, &of60})
    MESSAGE("peak ", double(r->memory.peak) * 1e-9, " GB, activations ", double(bytes(*r, gs::memory_kind::activation)) * 1e-9,
            " GB, made again ", 100 * recomputed(*r) / r->seconds, " %");
  CHECK(recomputed(of12) == 0);
  CHECK(recomputed(of24) == 0);
  CHECK(recomputed(of36) > 0);
  CHECK(recomputed(of60) > recomputed(of36));
  CHECK(bytes(of60, gs::memory_kind::activation) < bytes(of36, gs::memory_kind::activation));
  CHECK_THROWS_AS(run(60, 2048, 2048, gs::recompute::never), gs::error);
}

TEST_CASE("paper: a dry step of 600 billion weights on 2048 cores, its plan made at run time, in less than 200 MB") {
  const auto start = std::chrono::steady_clock::now();
  const plan_run::translation_model m;
  gs::mesh_shape mesh;
  mesh.push_back("expert", 2048);
  gs::run_record r;
  const std::int64_t held = allocations::bytes_during([&] {
    const gs::plan_tables p = plan_run::plan_of(m, mesh);
    r = gs::dry_run(p.view(), p.view().bind(m.dims(), std::array{2048}), cores(2048));
  });
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("planned and run in ", took, " s and ", double(held) * 1e-6, " MB");
  CHECK(held < 200'000'000);
  CHECK(r.tracks[0].devices.size() == 2048);
  check_near(double(m.expert_weights()), 618.5e9, 0.001);
}

// Table 4: the growth of compute and communication per partition with the number D of partitions.
namespace {

using mesh = gs::mesh<gs::axis<"d">>;

struct growth {
  double compute, communicate;  // exponents of D
};
/// The slopes of a line through the logarithms.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = double(x.size());
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += std::log(x[i]) / n, my += std::log(y[i]) / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my);
    xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  }
  return xy / xx;
}

template <auto Model, class... Inputs>
void check_row(std::string_view name, double compute_grows, double communication_grows,
               const std::function<gs::dims(std::int64_t)>& sizes) {
  CAPTURE(name);
  const gs::plan_tables p = gs::detail::build_program<Model, mesh, gs::dense_one_hot, Inputs...>();
  REQUIRE(!p.problem);
  std::vector<double> partitions, compute, communication;
  for (int d = 16; d <= 2048; d *= 2) {
    const gs::extents e = p.view().bind(sizes(d), std::array{d});
    gs::hardware on = cores(d);
    on.topology.wrap = {true, true, true};
    double flops = 0, touched = 0, moved = 0;
    for (const gs::step_record& s : gs::costs_of(p.view(), e, on.device, on.lay(std::array{d}))) {
      flops += s.flops;
      touched += double(s.bytes_touched);
      moved += s.network;
    }
    partitions.push_back(d);
    compute.push_back(flops > 0 ? flops : touched);
    communication.push_back(moved);
  }
  const double grows = slope(partitions, compute);
  CHECK(std::abs(grows - compute_grows) <= 0.1);
  if (communication_grows < 0) {
    for (const double c : communication) CHECK(c == 0);
    MESSAGE(name, ": compute D^", grows, ", no communication");
    return;
  }
  const double moves = slope(partitions, communication);
  MESSAGE(name, ": compute D^", grows, ", communication D^", moves);
  CHECK(std::abs(moves - communication_grows) <= 0.1);
}

inline constexpr auto add = [](auto&, auto x, auto y) { return x + y; };
inline constexpr auto product = [](auto&, auto x, auto y) { return gs::einsum<"AB,BC->AC">(x, y); };
inline constexpr auto whole_product = [](auto&, auto x, auto y) { return gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, y)); };
inline constexpr auto rows_of_product = [](auto&, auto x, auto y) { return gs::annotate<P<"d", none>>(gs::einsum<"AB,BC->AC">(x, y)); };
inline constexpr auto reduce_rows = [](auto&, auto x) { return gs::sum<"AB->A">(x); };
inline constexpr auto reduce_columns = [](auto&, auto x) { return gs::annotate<P<none>>(gs::sum<"AB->B">(x)); };
inline constexpr auto dispatch = [](auto&, auto mask, auto x) {
  return gs::annotate<P<"d", none, none, none>>(gs::einsum<"GSEC,GSM->EGCM">(mask, x));
};
inline constexpr auto convolve = [](auto&, auto x, auto w) { return gs::conv<"BIXY,xyIO->BOXY">(x, w, {{.low = 1, .high = 1}}); };

}  // namespace

TEST_CASE("paper: table 4, from our partitioner's plans") {
  using gs::in;
  const std::int64_t n = 2048, k = 1024;
  const auto along = [](char letter, std::int64_t each, gs::dims others) {
    return [=](std::int64_t d) {
      gs::dims all = others;
      all.set(letter, each * d);
      return all;
    };
  };
  check_row<add, in<"A", P<"d">>, in<"A", P<"d">>>("Add(A,A->A)", 0, -1, along('A', 1 << 20, {}));
  check_row<whole_product, in<"AB", P<none, "d">>, in<"BC", P<"d", none>>>("Matmul(AB,BC->AC), B", 0, 0,
                                                                           along('B', k, {{'A', 2 * n}, {'C', n}}));
  check_row<product, in<"AB", P<"d", none>>, in<"BC", P<none, none>>>("Matmul(AB,BC->AC), A", 0, -1, along('A', k, {{'B', n}, {'C', n}}));
  const auto two = [](char a, char b, gs::dims others) {
    return [=](std::int64_t d) {
      gs::dims all = others;
      all.set(a, 256 * d);
      all.set(b, 256 * d);
      return all;
    };
  };
  check_row<rows_of_product, in<"AB", P<"d", none>>, in<"BC", P<"d", none>>>("Matmul(AB,BC->AC), A and B", 1, 1, two('A', 'B', {{'C', n}}));
  check_row<rows_of_product, in<"AB", P<"d", none>>, in<"BC", P<none, "d">>>("Matmul(AB,BC->AC), A and C", 1, 1, two('A', 'C', {{'B', n}}));
  check_row<reduce_rows, in<"AB", P<"d", none>>>("Reduce(AB->A)", 0, -1, along('A', k, {{'B', n}}));
  check_row<reduce_columns, in<"AB", P<"d", none>>>("Reduce(AB->B)", 0, 0, along('A', 16, {{'B', 8 << 20}}));
  check_row<dispatch, in<"GSEC", P<"d", none, none, none>>, in<"GSM", P<"d", none, none>>>(
      "Einsum(GSEC,GSM->EGCM)", 0, 0.5,
      [](std::int64_t d) -> gs::dims { return {{'G', d}, {'E', d}, {'C', 4096 / d}, {'S', 2048}, {'M', 1024}}; });
  check_row<convolve, in<"BIXY", P<none, none, "d", none>>, in<"KLIO", P<none, none, none, none>>>(
      "Convolution(BIXY,xyIO->BOXY), X", 0, 0, along('X', 64, {{'B', 8}, {'I', 64}, {'O', 64}, {'Y', 512}, {'K', 3}, {'L', 3}}));
}
