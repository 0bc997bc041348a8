// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_run/translation_model.hpp"

#include <gshard/core/cost/step_time.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace gs = gshard;
namespace op = gs::op;

namespace {

gs::plan_tables plan(const plan_run::translation_model& m, std::initializer_list<const char*> axes, int extent = gs::dynamic) {
  gs::mesh_shape mesh;
  for (const char* a : axes) mesh.push_back(a, extent);
  return plan_run::plan_of(m, mesh);
}
plan_run::translation_model of_layers(int layers) {
  plan_run::translation_model m;
  m.layers = layers;
  return m;
}
bool same_steps(const gs::plan_tables& a, const gs::plan_tables& b) {
  if (a.steps.size() != b.steps.size()) return false;
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    if (a.steps[i].kind != b.steps[i].kind) return false;
  return true;
}

}  // namespace

TEST_CASE("translation model: as many weights as the plan's parameters, biases and norms apart") {
  for (const int layers : {8, 7, 6, 3}) {
    const plan_run::translation_model m = of_layers(layers);
    const gs::plan_tables p = plan(m, {"expert"});
    REQUIRE(!p.problem);
    const gs::extents e = p.view().bind(m.dims(), std::array{1});
    std::int64_t weights = 0, gates = 0;
    for (const gs::parameter& q : p.parameters)
      if (q.trainable) (q.name.view().ends_with(".wg") ? gates : weights) += gs::detail::shard_bytes(p.view(), q.value, e) / 4;
    CHECK(double(weights) == doctest::Approx(double(m.expert_weights() + m.dense_weights())).epsilon(0.001));
    CHECK(gates == m.expert_layers() * m.width * m.experts);
  }
}

TEST_CASE("translation model: the paper's sizes") {
  CHECK(double(of_layers(60).expert_weights()) == doctest::Approx(1.03e12).epsilon(0.001));
  CHECK(double(of_layers(36).expert_weights()) == doctest::Approx(618.5e9).epsilon(0.001));
  CHECK(double(of_layers(12).expert_weights()) == doctest::Approx(206e9).epsilon(0.001));
  CHECK(of_layers(36).sentences() == 1);
}

TEST_CASE("translation model: two exchanges there and two back in every MoE layer, on any mesh that cuts groups and experts") {
  for (const bool one_hot : {true, false})
    for (const auto& axes : {std::initializer_list<const char*>{"expert"}, {"data", "expert"}}) {
      plan_run::translation_model m = of_layers(8);
      m.one_hot_products = one_hot;
      const gs::plan_tables p = plan(m, axes);
      REQUIRE(!p.problem);
      CHECK(p.view().count(op::all_to_all) == 4 * 4);
    }
}

TEST_CASE("translation model: the plan depends neither on experts nor on devices") {
  plan_run::translation_model few = of_layers(8);
  few.experts = few.groups = 128;
  few.tokens = 2048 * 128;
  CHECK(same_steps(plan(few, {"expert"}), plan(of_layers(8), {"expert"})));
}

TEST_CASE("translation model: an axis called model cuts the weights of all layers") {
  const plan_run::translation_model m = of_layers(4);
  const gs::plan_tables p = plan(m, {"expert", "model"});
  REQUIRE(!p.problem);
  for (const gs::parameter& q : p.parameters)
    if (q.trainable && p.values[std::size_t(q.value)].rank() > 1 && !q.name.view().ends_with(".wg") && !q.name.view().ends_with("position"))
      CHECK((p.values[std::size_t(q.value)].layout.used() & 2u) != 0);
}

TEST_CASE("translation model: a mesh without an axis called expert is refused") {
  const gs::plan_tables p = plan(of_layers(4), {"data"});
  CHECK(p.problem.what == gs::fault::unknown_axis);
}
