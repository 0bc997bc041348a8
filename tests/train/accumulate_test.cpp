// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/accumulate.hpp>

#include "../exec/run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data">>;
inline constexpr auto loss_of = [](auto& m, auto x, auto y) {
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::normal(1))));
  auto error = gs::einsum<"BH,H->B">(h, m.param("v", "H", gs::init::normal(1))) - y;
  m.loss(gs::mean(h * h));
  return m.objective(gs::mean(error * error), 0.5);
};
inline constexpr auto in_parts = [](auto& m, auto x, auto y, auto rate) {
  const auto sum = gs::accumulate(m, [&](auto part, auto wanted) { return loss_of(m, part, wanted); }, x, y);
  gs::adam{}.minimize(m, sum, rate);
  return sum.loss;
};
inline constexpr auto at_once = [](auto& m, auto x, auto y, auto rate) {
  const auto loss = loss_of(m, x, y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <int Parts>
using parts = gs::program<in_parts, mesh, in<"NBM", P<none, "data", none>, double>, in<"NB", P<none, "data">, double>,
                          in<"", void, double>, gs::element<double>, gs::extent<'N', Parts>, gs::combine_up_to<0>>;
using whole = gs::program<at_once, mesh, in<"BM", P<"data", none>, double>, in<"B", P<"data">, double>, in<"", void, double>,
                          gs::element<double>, gs::combine_up_to<0>>;
// One reduction for each parameter, and one for the loss, for any number of micro-batches.
static_assert(parts<4>::plan.count(op::all_reduce) == 3 && parts<4>::plan.collectives() == 3);
static_assert(parts<1>::plan.collectives() == 3 && whole::plan.count(op::all_reduce) == whole::plan.collectives());

}  // namespace

TEST_CASE("accumulate: micro-batches train like the whole batch") {
  constexpr std::size_t rows = 8, columns = 3;
  std::vector<double> x(rows * columns), y(rows);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(double(3 * i));
  const std::vector<double> rate{0.01};
  for (const int devices : {1, 2}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<parts<4>> first(on, {{'N', 4}, {'B', 2}, {'M', columns}, {'H', 5}}, gs::parameter_store(on, 7));
    gs::executable<whole> second(on, {{'B', rows}, {'M', columns}, {'H', 5}}, gs::parameter_store(on, 7));
    for (int step = 0; step < 5; ++step) {
      const double loss = second(x, y, rate).item();
      CHECK(first(x, y, rate).item() == doctest::Approx(loss).epsilon(1e-12));
    }
    const std::vector<double> w = gs::to_global<double>(first.executor().store(), "w");
    const std::vector<double> other = gs::to_global<double>(second.executor().store(), "w");
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == doctest::Approx(other[i]).epsilon(1e-10));
  }
}

namespace {

/// The loss and gradients of a batch of 12 rows, split into micro-batches. A row with a negative label does not count.
run_graph::arrays labelled_batch(int parts, int devices, const run_graph::arrays& sources, bool weighted = true) {
  gs::trace_options options;
  options.known = {{'N', parts}, {'B', 12 / parts}};
  const auto body = [](gs::symbol x, gs::symbol labels, gs::symbol w) {
    const gs::symbol losses = gs::cross_entropy(gs::einsum<"BM,MV->BV">(x, w), labels);
    const gs::symbol real = gs::map<[](auto id) { return id >= 0 ? decltype(id)(1) : decltype(id)(0); }>(gs::cast<double>(labels));
    return gs::sum(losses) / gs::map<[](auto n) { return n < 1 ? decltype(n)(1) : n; }>(gs::sum(real));
  };
  const run_graph::traced t = run_graph::trace(
      {{"NBM"}, {"NB", gs::dtype::i32, 'V', -1}},
      [&](const gs::parameter_scope& m, std::span<const gs::symbol> in) {
        const gs::symbol w = m.param("w", "MV", gs::init::normal(1));
        const gs::symbol real = gs::map<[](auto id) { return id >= 0 ? decltype(id)(1) : decltype(id)(0); }>(gs::cast<double>(in[1]));
        const gs::accumulated sum = gs::accumulate(
            m, {.weights = weighted ? gs::sum<"NB->N">(real) : gs::symbol()},
            [&](gs::symbol x, gs::symbol labels) { return body(x, labels, w); }, in[0], in[1]);
        return gs::list<gs::symbol>{sum.loss, sum.gradients[0]};
      },
      options);
  run_graph::setting s = run_graph::serial(t, {{'N', parts}, {'B', 12 / parts}, {'M', 3}, {'V', 5}});
  s.mesh = {devices};
  for (std::size_t i = 0; i < 2; ++i) s.layouts[i][1].push_back(0);  // "data" shards the rows of a micro-batch
  s.options.known = options.known;
  return run_graph::run(t, s, sources);
}

}  // namespace

TEST_CASE("accumulate: weights make any split of a batch the whole batch, also if a micro-batch has no label") {
  for (const int real_rows : {12, 7, 1, 0}) {
    run_graph::arrays sources(3);
    for (int i = 0; i < 36; ++i) sources[0].push_back(std::sin(i));
    for (int i = 0; i < 12; ++i) sources[1].push_back(i < real_rows ? (i * 7) % 5 : -1);
    for (int i = 0; i < 15; ++i) sources[2].push_back(std::cos(i));
    const run_graph::arrays whole = labelled_batch(1, 1, sources);
    CHECK((std::abs(whole[0][0]) > 0.1) == (real_rows > 0));
    if (real_rows == 0)  // not NaN, which would compare equal below
      for (std::size_t i = 0; i < 2; ++i) CHECK(whole[i] == run_graph::array(whole[i].size(), 0));  // the loss, and its gradient
    for (const int parts : {1, 2, 3, 4, 6, 12})
      for (const int devices : {1, 2, 3}) {
        CAPTURE(real_rows);
        CAPTURE(parts);
        CAPTURE(devices);
        CHECK(run_graph::distance(labelled_batch(parts, devices, sources), whole) <= 1e-13);
      }
    // Without weights the test fails.
    if (real_rows == 7) CHECK(run_graph::distance(labelled_batch(3, 1, sources, false), whole) > 1e-3);
  }
}
