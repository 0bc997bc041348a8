// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/adafactor.hpp>

#include "../exec/planned_program.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/eager/reshard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

/// A matrix, a stack of matrices, a vector and a scalar. Their layouts shard rows, columns and the stack.
template <class MatrixSpec, class StackSpec, const gs::adafactor& Settings, bool OwnRate = false>
inline constexpr auto regression = [](auto& m, auto x, auto y, auto rate) {
  auto w = m.param("w", "BC", MatrixSpec{}, gs::init::normal(1));
  auto s = m.param("s", "EBC", StackSpec{}, gs::init::normal(0.5));
  auto v = m.param("v", "C", gs::init::normal(0.5)), k = m.param("k", "", gs::init::constant(0.3));
  auto error = (gs::einsum<"ab,bc->ac">(x, w) + gs::einsum<"ab,ebc->ac">(x, s) + v) * k - y;
  auto loss = gs::sum(error * error);
  if constexpr (OwnRate) Settings.minimize(m, loss);
  else Settings.minimize(m, loss, rate);
  return loss;
};
template <class MatrixSpec, class StackSpec, const gs::adafactor& Settings, bool OwnRate = false>
using step = gs::program<regression<MatrixSpec, StackSpec, Settings, OwnRate>, mesh, in<"AB", P<"x", none>, double>,
                         in<"AC", P<"x", none>, double>, in<"", void, double>, gs::element<double>>;

using whole = P<none, none>;
using whole_stack = P<none, none, none>;
constexpr bool is_matrix(std::string_view name, int dims) { return dims > 1 && name != "s"; }
inline constexpr gs::adafactor plain{.relative = false}, paper{}, averaging{.clip = 0.5, .beta1 = 0.9, .relative = false},
    decaying{.weight_decay = 0.5}, skipping{.beta1 = 0.9, .weight_decay = 0.5, .if_not_finite = gs::not_finite::skip, .clip_norm = 0.5,
                                            .decays = is_matrix},
    zero{.beta1 = 0.9, .shard_state_over = "x"}, zero_skipping{.weight_decay = 0.5, .if_not_finite = gs::not_finite::skip, .clip_norm = 0.5,
                                                              .decays = is_matrix, .shard_state_over = "y"};

constexpr std::size_t A = 7, B = 5, C = 3, E = 2;

struct tensor {
  std::size_t batch, rows, cols;  // for a vector and a scalar: cols numbers
  std::vector<double> p, m, r, c;
  bool factored = rows > 0;
};

/// One update by the paper's formulas.
void update(tensor& x, const std::vector<double>& g, double rate, double t, const gs::adafactor& a, double weight_decay) {
  const double beta = 1 - std::pow(t, -a.decay);
  const std::size_t n = g.size();
  std::vector<double> u(n);
  if (!x.factored) {
    x.r.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      x.r[i] = beta * x.r[i] + (1 - beta) * (g[i] * g[i] + a.epsilon);
      u[i] = g[i] / std::sqrt(x.r[i]);
    }
  } else {
    x.r.resize(x.batch * x.rows);
    x.c.resize(x.batch * x.cols);
    const auto at = [&](std::size_t e, std::size_t i, std::size_t j) { return (e * x.rows + i) * x.cols + j; };
    for (std::size_t e = 0; e < x.batch; ++e) {
      double mean = 0;
      for (std::size_t i = 0; i < x.rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < x.cols; ++j) sum += g[at(e, i, j)] * g[at(e, i, j)] + a.epsilon;
        double& r = x.r[e * x.rows + i];
        r = beta * r + (1 - beta) * sum / double(x.cols);
        mean += r / double(x.rows);
      }
      for (std::size_t j = 0; j < x.cols; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < x.rows; ++i) sum += g[at(e, i, j)] * g[at(e, i, j)] + a.epsilon;
        double& c = x.c[e * x.cols + j];
        c = beta * c + (1 - beta) * sum / double(x.rows);
      }
      for (std::size_t i = 0; i < x.rows; ++i)
        for (std::size_t j = 0; j < x.cols; ++j)
          u[at(e, i, j)] = g[at(e, i, j)] / std::sqrt(x.r[e * x.rows + i] * x.c[e * x.cols + j] / mean);
    }
  }
  const auto rms = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double e : v) sum += e * e;
    return std::sqrt(sum / double(v.size()));
  };
  const double clipped = std::max(1.0, rms(u) / a.clip), size = a.relative ? std::max(a.least_scale, rms(x.p)) : 1;
  x.m.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    x.m[i] = a.beta1 * x.m[i] + (1 - a.beta1) * u[i] / clipped;
    x.p[i] -= rate * size * x.m[i] + rate * weight_decay * x.p[i];
  }
}

template <class MatrixSpec, class StackSpec, const gs::adafactor& Settings, bool OwnRate = false>
void check(const std::vector<int>& extents) {
  const auto on = gs::simulate<mesh>(extents);
  planned::executable<step<MatrixSpec, StackSpec, Settings, OwnRate>> run(on, {{'A', A}, {'B', B}, {'C', C}, {'E', E}},
                                                                          gs::parameter_store(on, 1));
  const auto content = [&](std::string_view name, std::size_t n) {
    const gs::parameter_store::entry& e = *run.executor().store().find(name);
    std::vector<double> all(n);
    for (std::size_t d = 0; d < e.value.data.size(); ++d)
      gs::kernel::for_each_element(e.value.places[d],
                                   [&](std::size_t global, std::size_t local) { all[global] = e.value.template as<double>(d)[local]; });
    return all;
  };
  std::vector<double> x(A * B), y(A * C);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(3 * double(i));
  tensor w{1, B, C, content("w", B * C), {}, {}, {}}, s{E, B, C, content("s", E * B * C), {}, {}, {}},
      v{1, 0, C, content("v", C), {}, {}, {}}, k{1, 0, 1, content("k", 1), {}, {}, {}};
  double first = 0, loss = 0;
  bool clips = false;
  for (int t = 1; t <= 12; ++t) {
    const double given = 0.02, rate = OwnRate ? std::min(0.01, 1 / std::sqrt(double(t))) : given;
    std::vector<double> gw(B * C), gs_(E * B * C), gv(C), gk(1);
    loss = 0;
    for (std::size_t i = 0; i < A; ++i)
      for (std::size_t j = 0; j < C; ++j) {
        double inner = v.p[j];
        for (std::size_t b = 0; b < B; ++b) {
          inner += x[i * B + b] * w.p[b * C + j];
          for (std::size_t e = 0; e < E; ++e) inner += x[i * B + b] * s.p[(e * B + b) * C + j];
        }
        const double error = inner * k.p[0] - y[i * C + j], d = 2 * error * k.p[0];
        loss += error * error;
        gk[0] += 2 * error * inner;
        gv[j] += d;
        for (std::size_t b = 0; b < B; ++b) {
          gw[b * C + j] += d * x[i * B + b];
          for (std::size_t e = 0; e < E; ++e) gs_[(e * B + b) * C + j] += d * x[i * B + b];
        }
      }
    if (t == 1) first = loss;
    if (Settings.clip_norm > 0) {
      double square = 0;
      for (const std::vector<double>* g : {&gw, &gs_, &gv, &gk})
        for (const double d : *g) square += d * d;
      clips = clips || Settings.clip_norm * Settings.clip_norm < square;
      for (std::vector<double>* g : {&gw, &gs_, &gv, &gk})
        for (double& d : *g) d *= std::min(1.0, Settings.clip_norm / std::sqrt(square));
    }
    const double others = Settings.decays("v", 1) ? Settings.weight_decay : 0;
    update(w, gw, rate, t, Settings, Settings.weight_decay);
    update(s, gs_, rate, t, Settings, others);
    update(v, gv, rate, t, Settings, others);
    update(k, gk, rate, t, Settings, others);
    CHECK(run(x, y, std::vector{given}).item() == doctest::Approx(loss).epsilon(1e-10));
    const auto same = [&](std::string_view name, const tensor& expected) {
      CAPTURE(name);
      const std::vector<double> found = content(name, expected.p.size());
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected.p[i]).epsilon(1e-9));
    };
    same("w", w);
    same("s", s);
    same("v", v);
    same("k", k);
  }
  CHECK(loss < first);
  CHECK(clips == (Settings.clip_norm > 0));
}

}  // namespace

TEST_CASE("adafactor keeps as much as the rows and the columns of a matrix") {
  const gs::plan_view plan = planned::plan_of<step<whole, whole_stack, plain>>();
  CHECK(plan.find("adafactor.m.w") == nullptr);
  CHECK(plan.find("adafactor.v.w") == nullptr);
  CHECK(plan.find("adafactor.v.v") != nullptr);
  for (const std::string_view name : {"adafactor.r.w", "adafactor.c.w", "adafactor.r.s", "adafactor.c.s", "adafactor.steps"}) {
    CAPTURE(name);
    REQUIRE(plan.find(name) != nullptr);
    CHECK(!plan.find(name)->trainable);
  }
  CHECK(plan.at(plan.find("adafactor.r.s")->value).rank() == 2);
  CHECK(plan.at(plan.find("adafactor.c.w")->value).rank() == 1);
}

TEST_CASE("adafactor: every step of the update has the line of `minimize`, not one of the library") {
  for (const gs::node& n : planned::plan_of<step<whole, whole_stack, averaging, true>>().steps)
    CHECK(!(n.place.file && std::string_view(n.place.file).ends_with("adafactor.hpp")));
}

TEST_CASE("adafactor: the paper's formulas, however the parameters are sharded") {
  for (const std::vector<int>& extents : {std::vector{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 2}}) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    check<whole, whole_stack, plain>(extents);
    check<P<"x", "y">, P<"x", none, "y">, paper>(extents);
    check<P<none, "x">, P<none, "y", "x">, averaging>(extents);
  }
}

TEST_CASE("adafactor with weight decay, its mask, and clipping by the global norm, however the parameters are sharded") {
  for (const std::vector<int>& extents : {std::vector{1, 1}, {2, 1}, {2, 2}, {3, 2}}) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    check<P<"x", "y">, P<"x", none, "y">, decaying>(extents);
    check<P<none, "x">, P<none, "y", "x">, skipping>(extents);
    check<whole, whole_stack, skipping, true>(extents);
  }
}

TEST_CASE("adafactor with the update sharded over one more axis, however the parameters are sharded") {
  for (const std::vector<int>& extents : {std::vector{1, 1}, {2, 1}, {2, 2}, {3, 2}}) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    check<whole, whole_stack, zero>(extents);
    check<P<none, "y">, P<"x", none, "y">, zero>(extents);
    check<P<"x", none>, whole_stack, zero_skipping, true>(extents);
  }
}

namespace {

using line = gs::mesh<gs::axis<"data">>;
inline constexpr auto error_of = [](auto& m, auto x, auto y) {
  const auto error = gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::normal(1))) - y;
  return gs::mean(error * error);
};
template <bool OwnRate>
inline constexpr auto in_parts = [](auto& m, auto x, auto y, auto rate) {
  const auto sum = gs::accumulate(m, [&](auto part, auto wanted) { return error_of(m, part, wanted); }, x, y);
  if constexpr (OwnRate) decaying.minimize(m, sum);
  else decaying.minimize(m, sum, rate);
  return sum.loss;
};
template <bool OwnRate>
inline constexpr auto at_once = [](auto& m, auto x, auto y, auto rate) {
  const auto loss = error_of(m, x, y);
  if constexpr (OwnRate) decaying.minimize(m, loss);
  else decaying.minimize(m, loss, rate);
  return loss;
};
template <bool OwnRate>
using parts = gs::program<in_parts<OwnRate>, line, in<"NBM", P<none, "data", none>, double>, in<"NBH", P<none, "data", none>, double>,
                          in<"", void, double>, gs::element<double>, gs::extent<'N', 3>>;
template <bool OwnRate>
using batch = gs::program<at_once<OwnRate>, line, in<"BM", P<"data", none>, double>, in<"BH", P<"data", none>, double>,
                          in<"", void, double>, gs::element<double>>;

template <bool OwnRate>
void check_parts(int devices) {
  std::vector<double> x(12 * 4), y(12 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(3 * double(i));
  const auto on = gs::simulate<line>(devices);
  planned::executable<parts<OwnRate>> first(on, {{'N', 3}, {'B', 4}, {'M', 4}, {'H', 3}}, gs::parameter_store(on, 7));
  planned::executable<batch<OwnRate>> second(on, {{'B', 12}, {'M', 4}, {'H', 3}}, gs::parameter_store(on, 7));
  double loss = 0;
  for (int t = 0; t < 6; ++t) {
    const double before = loss;
    loss = second(x, y, std::vector{0.02}).item();
    CHECK(first(x, y, std::vector{0.02}).item() == doctest::Approx(loss).epsilon(1e-12));
    CHECK(loss != before);
  }
}

}  // namespace

TEST_CASE("adafactor: micro-batches train like the whole batch") {
  for (const int devices : {1, 2}) check_parts<false>(devices), check_parts<true>(devices);
}

TEST_CASE("adafactor: the paper's own rate") { check<P<"y", none>, P<"y", "x", none>, paper, true>({2, 2}); }
