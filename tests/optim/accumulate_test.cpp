// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/optim/accumulate.hpp>

#include <gshard/exec/executable.hpp>
#include <gshard/exec/parameter_access.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/reduce.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::op, gs::P;

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
// One reduction for each parameter, and one for the loss, whatever the number of micro-batches.
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
    const std::vector<double> w = gs::to_global<double>(first.engine().store(), "w");
    const std::vector<double> other = gs::to_global<double>(second.engine().store(), "w");
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == doctest::Approx(other[i]).epsilon(1e-10));
  }
}
