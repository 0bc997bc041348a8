// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/untyped_executable.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../../complaint.hpp"

namespace gs = gshard;
using gs::none, gs::P;

namespace {

using line = gs::mesh<gs::axis<"x">>;
constexpr auto train = [](auto& m, auto x, auto rate) {
  const auto y = gs::einsum<"BM,M->B">(x, m.param("w", "M", gs::init::constant(1)));
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
constexpr auto twice = [](auto&, auto x) { return x + x; };

}  // namespace

TEST_CASE("untyped_executable: a bound program runs by a reference that does not name its type") {
  const auto on = gs::simulate<line>(2);
  gs::executable<gs::program<twice, line, gs::in<"B", P<"x">>>> run(on, {{'B', 3}});
  gs::tensor<float, P<"x">> x = gs::from_global<float, P<"x">>(on, {3}, std::vector<float>{1, 2, 3});
  gs::tensor<float, P<"x">> y(on, {3});
  run.bind_input<0>(x);
  run.bind_output<0>(y);
  gs::untyped_executable& any = run;
  any.run_bound();
  CHECK(*y.local_shard(1).data == 6);
  *x.local_shard(1).data = 5;
  any.start_bound();
  any.wait();
  CHECK(*y.local_shard(1).data == 10);
  CHECK(complaint([&] { any.wait(); }) == "program: wait() without start_bound()");
}

TEST_CASE("untyped_executable: what updates parameters counts as a step of the store") {
  const auto on = gs::simulate<line>(2);
  gs::parameter_store store(on);
  gs::executable<gs::program<train, line, gs::in<"BM", P<"x", none>>, gs::in<"">>> step(on, {{'B', 4}, {'M', 2}}, store);
  gs::executable<gs::program<twice, line, gs::in<"B", P<"x">>>> other(on, {{'B', 3}}, store);
  (void)step(std::vector<float>(8, 0.5f), std::vector<float>{0.1f});
  (void)other(std::vector<float>(3, 1));
  CHECK(store.steps() == 1);
  CHECK(step.skipped_steps() == 0);
}
