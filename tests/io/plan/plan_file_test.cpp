// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/plan/plan_file.hpp>

#include <gshard/gshard.hpp>
#include <gshard/runtime.hpp>
#include <gshard/sim/report/describe.hpp>

#include "../../complaint.hpp"
#include "../../runtime/moe_layer.hpp"
#include "../scratch.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert">>;

inline constexpr auto cubed = [](auto v) { return v * v * v; };
struct twice {
  static constexpr std::string_view name = "twice", rule = "BM->BM";
  template <class T>
  static void run(gs::local_shard<const T> x, gs::local_shard<T> y) {
    for (std::int64_t i = 0; i < x.size(); ++i) y.data[i] = 2 * x.data[i];
  }
};
inline constexpr auto copied = [](auto x, auto y) {
  for (std::int64_t i = 0; i < x.size(); ++i) y.data[i] = x.data[i];
};

inline constexpr auto training = [](auto& m, auto x, auto target, auto rate) {
  auto error = moe_layer(m, x) - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
inline constexpr auto with_own_functions = [](auto&, auto x) {
  return gs::call_on_shards<copied, "B@data,M">(gs::annotate<"B@data,M">(gs::custom<twice>(gs::map<cubed>(x))));
};
inline constexpr auto columns = [](auto&, auto a, auto b) { return gs::einsum<"BM,MH->BH">(a, b) * -1.0; };

const gs::plan_functions& functions() {
  static const gs::plan_functions all = gs::plan_functions().map<cubed, 1>("cubed").custom<twice>().on_shards<copied, 1>("copied");
  return all;
}

void check_file(const gs::plan_view& plan) {
  const std::string text = gs::plan_text(plan, functions());
  const gs::runtime_plan read = gs::parse_plan(text, "test", functions());
  CHECK(gs::plan_text(read.plan(), functions()) == text);
  CHECK(gs::describe(read.plan()) == gs::describe(plan));
  REQUIRE(read.plan().values.size() == plan.values.size());
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    CAPTURE(v);
    CHECK(read.plan().values[v].producer == plan.values[v].producer);
    CHECK(read.plan().values[v].parameter == plan.values[v].parameter);
    const gs::lifetime &computed = read.plan().lifetimes[v], &planned = plan.lifetimes[v];
    CHECK(computed.root == planned.root);
    CHECK(computed.first == planned.first);
    CHECK(computed.last == planned.last);
    CHECK(computed.persistent == planned.persistent);
  }
}

}  // namespace

TEST_CASE("a plan that is written and read is the same") {
  check_file(gs::program<moe_layer, mesh, in<"G@expert,S,M">>::plan);
  check_file(gs::program<training, mesh, in<"G@expert,S,M">, in<"GSM">, in<"">>::plan);
  check_file(gs::program<with_own_functions, mesh, in<"B@data,M">>::plan);
  check_file(gs::program<columns, mesh, in<"B@data,M">, in<"MH", gs::column_major>>::plan);
}

TEST_CASE("the constant plan and the plan made at run time are one file") {
  const gs::runtime_program program(training, "data=2,expert", {"G@expert,S,M", "GSM", ""});
  CHECK(gs::plan_text(program.plan()) == gs::plan_text(gs::program<training, mesh, in<"G@expert,S,M">, in<"GSM">, in<"">>::plan));
}

TEST_CASE("a plan that was read runs, and gives the numbers of its program") {
  const scratch folder;
  const std::string path = folder / "training.plan";
  using program = gs::program<training, mesh, in<"G@expert,S,M">, in<"GSM">, in<"">>;
  gs::save_plan(path, program::plan);
  const gs::runtime_plan read = gs::read_plan(path);
  CHECK(read.inputs()[0].dims.letters.view() == "GSM");
  const gs::dims sizes{{'G', 4}, {'S', 8}, {'M', 6}, {'E', 4}, {'H', 10}};
  const auto cluster = gs::simulate<mesh>(2);
  gs::executable<program> run(cluster, sizes);
  gs::runtime_executable again(read, cluster, sizes);
  std::vector<float> x(4 * 8 * 6), target(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) / 7, target[i] = float(i % 5) / 5;
  const std::vector<float> rate{0.01f};
  for (int step = 0; step < 3; ++step) {
    const float expected = run(x, target, rate).item();
    CHECK(gs::to_global<float>(again(x, target, rate).front()).front() == expected);
  }
  CHECK(contains(complaint([&] { again.plan_report(); }), "was read from a file"));
}

TEST_CASE("a column-major input keeps its order") {
  using program = gs::program<columns, mesh, in<"B@data,M">, in<"MH", gs::column_major>>;
  const gs::runtime_plan read = gs::parse_plan(gs::plan_text(program::plan), "test");
  CHECK(read.inputs()[1].is_column_major);
  const auto cluster = gs::simulate<mesh>(2);
  gs::runtime_executable run(read, cluster, {{'B', 2}, {'M', 2}, {'H', 3}});
  const auto y = gs::to_global<float>(run(std::vector<float>{1, 2, 3, 4}, std::vector<float>{1, 2, 3, 4, 5, 6}).front());
  CHECK(y == std::vector<float>{-5, -11, -17, -11, -25, -39});
}

TEST_CASE("functions without a name, and unknown names, are errors that name the step") {
  using program = gs::program<with_own_functions, mesh, in<"B@data,M">>;
  CHECK(contains(complaint([] { gs::plan_text(program::plan); }), "has no name: give it one, as plan_functions().map<f, 1>(\"f\")"));
  const std::string text = gs::plan_text(program::plan, functions());
  CHECK(contains(complaint([&] { gs::parse_plan(text, "c.plan"); }), "\"cubed\" is no function that plan_functions has"));
  CHECK(contains(complaint([&] { gs::parse_plan(text, "c.plan", gs::plan_functions().map<cubed, 1>("cubed")); }),
                 "\"twice\" is no operation that plan_functions has"));
  CHECK(contains(complaint([] { gs::plan_functions().map<cubed, 1>("cubed").map<cubed, 1>("cubed"); }), "\"cubed\" is empty or taken"));
}

TEST_CASE("a file that was changed is refused, unless its digest is ignored") {
  const std::string before = R"("name":"expert")", after = R"("name":"model")";
  std::string text = gs::plan_text(gs::program<moe_layer, mesh, in<"G@expert,S,M">>::plan);
  text.replace(text.find(before), before.size(), after);
  CHECK(contains(complaint([&] { gs::parse_plan(text, "c.plan"); }),
                 "plan file 'c.plan': digest: is not that of the rows: the file was changed after it was written"));
  CHECK(gs::parse_plan(text, "c.plan", {}, gs::plan_digest::ignored).mesh().name(1) == "model");
}
