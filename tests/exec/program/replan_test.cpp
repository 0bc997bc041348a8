// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/replan.hpp>

#include <gshard/gshard.hpp>
#include <gshard/runtime.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::extent, gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto lookup = [](auto& m, auto ids, auto y, auto rate) {
  auto table = m.param("table", "V@x,M", gs::init::fan_in("M"));
  auto w = m.param("w", "M", gs::init::fan_in("M"));
  auto rows = gs::sum<"BFM->BM">(gs::gather(table, ids));
  auto error = gs::einsum<"BM,M->B">(rows, w) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using train = gs::program<lookup, mesh, in<"B@x,F", std::int32_t>, in<"B@x,">, in<"">>;
using at_sizes = gs::program<lookup, gs::mesh<gs::axis<"x", 4>>, in<"B@x,F", std::int32_t>, in<"B@x,">, in<"">, extent<'V', 20000>,
                             extent<'M', 32>, extent<'B', 64>, extent<'F', 4>>;
const gs::dims sizes{{'V', 20000}, {'M', 32}, {'B', 64}, {'F', 4}};

std::vector<std::int32_t> some_ids() {
  std::vector<std::int32_t> ids(64 * 4);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t((i * 7919) % 20000);
  return ids;
}

template <class Run>
std::int64_t received(const Run& run) {
  return run.executor().plan().bytes_received(run.executor().sizes());
}

}  // namespace

TEST_CASE("a program that is planned again at its extents receives what a plan that states them receives") {
  const auto cluster = gs::simulate<mesh>(4);
  gs::executable<train> assumed(cluster, sizes), again(gs::replan, cluster, sizes);
  const std::int64_t stated = at_sizes::plan.bytes_received(at_sizes::plan.bind({}, std::array{4}));
  CHECK(received(again) * 100 <= stated * 105);
  CHECK(received(assumed) > 10 * received(again));
}

TEST_CASE("both plans read and update one store, and give the same losses") {
  const auto cluster = gs::simulate<mesh>(4);
  gs::parameter_store store(cluster, 3), same(cluster, 3);
  gs::executable<train> first(cluster, sizes, store), other(gs::replan, cluster, sizes, same), on_first(gs::replan, cluster, sizes, store);
  const std::vector<std::int32_t> ids = some_ids();
  const std::vector<float> y(64, 1.5f);
  for (int i = 0; i < 3; ++i)
    CHECK(other(ids, y, std::array{0.01f}).item() == doctest::Approx(first(ids, y, std::array{0.01f}).item()).epsilon(1e-5));
  CHECK(on_first(ids, y, std::array{0.01f}).item() == doctest::Approx(other(ids, y, std::array{0.01f}).item()).epsilon(1e-5));
  CHECK(store.steps() == 4);
}

TEST_CASE("the report names the tensors that make the difference") {
  const auto cluster = gs::simulate<mesh>(4);
  gs::executable<train> assumed(cluster, sizes);
  const gs::plan_report report = assumed.plan_report();
  std::string assumed_letters;
  for (const gs::assumed_extent& e : report.assumed) assumed_letters += e.name + (e.decides ? "* " : " ");
  CHECK(assumed_letters == "B* F V* M* x ");
  CHECK(report.problem.empty());
  CHECK(report.cost.received == received(assumed));
  CHECK(report.replanned.received == received(gs::executable<train>(gs::replan, cluster, sizes)));
  REQUIRE(!report.tensors.empty());
  CHECK(report.tensors.size() <= 3);
  CHECK(report.tensors[0].name == "table");
  CHECK(report.tensors.at(1).name == "the gradient of table");
  CHECK(report.tensors[0].received > report.tensors[0].received_replanned);
  CHECK(contains(report.text(), "assumes B=64*, F=64, V=64*, M=64*, x=8; with another extent"));
  CHECK(contains(report.text(), "  table: "));

  const gs::plan_report again = gs::executable<train>(gs::replan, cluster, sizes).plan_report();
  CHECK(again.assumed.empty());
  CHECK(again.cost.received == again.replanned.received);
  CHECK(again.tensors.empty());
}

TEST_CASE("extents from the inputs; extents without a plan") {
  const auto cluster = gs::simulate<mesh>(4);
  const std::vector<std::int32_t> ids = some_ids();
  const std::vector<float> y(64, 1.5f);
  gs::executable<train> run(gs::replan, cluster, {{'V', 20000}, {'M', 32}, {'F', 4}}, ids, y, std::array{0.01f});
  CHECK(run.executor().plan().dims[0].known);
  CHECK(contains(complaint([&] { gs::executable<train>(gs::replan, cluster, {{'V', 20000}, {'M', 32}, {'B', 64}}); }), "'F'"));
  CHECK(contains(complaint([&] { gs::executable<train>(gs::replan, cluster, {{'V', 20000}, {'M', -1}, {'B', 64}, {'F', 4}}); }),
                 "there is no plan for these extents: invalid range"));
}

TEST_CASE("a run-time program at the extents of a cluster") {
  const auto cluster = gs::simulate("x", 4);
  const gs::runtime_program program(lookup, "x", {"i32[B@x,F]", "B@x,", ""});
  const gs::runtime_program again = program.at(cluster, sizes);
  gs::runtime_executable run(again, cluster, sizes), assumed(program, cluster, sizes);
  CHECK(received(run) == received(gs::executable<train>(gs::replan, gs::simulate<mesh>(4), sizes)));
  CHECK(assumed.plan_report().tensors.at(0).name == "table");
  CHECK(gs::to_global<float>(run(some_ids(), std::vector<float>(64, 1.5f), std::array{0.01f}).front()).front() > 0);
}

TEST_CASE("uneven extents, and a cluster with more axes than the program") {
  const auto cluster = gs::simulate("y,x", std::vector{2, 3});
  constexpr auto dense = [](auto& m, auto x) { return gs::einsum<"BM,MH->BH">(x, m.param("w", "M@x,H", gs::init::fan_in("M"))); };
  const gs::runtime_program program(dense, "x", {"B,M@x"});
  const gs::dims uneven{{'B', 5}, {'M', 7}, {'H', 2}};
  const std::vector<float> x(35, 0.5f);
  gs::runtime_executable plain(program, cluster, uneven), again(program.at(cluster, uneven), cluster, uneven);
  const auto expected = gs::to_global<float>(plain(x).front()), made = gs::to_global<float>(again(x).front());
  REQUIRE(made.size() == expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) CHECK(made[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}
