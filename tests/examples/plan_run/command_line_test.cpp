// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_run/command_line.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace gs = gshard;
namespace pr = plan_run;

namespace {

pr::command_line parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "plan-run");
  pr::command_line c;
  pr::command_parser(c).parse(int(words.size()), words.data());
  return c;
}
std::string refused(const std::vector<const char*>& words) {
  try {
    parsed(words).axes_on(8);
  } catch (const CLI::Error& e) {
    return e.what();
  } catch (const gs::error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("plan a run: models by their names, changed by options") {
  const pr::command_line c = parsed({"--plan", "150B", "--mesh", "tpu-v4:4x4x4", "--layers", "24", "--capacity", "1.25", "--by-index"});
  CHECK(c.mesh == "tpu-v4:4x4x4");
  CHECK(c.model.layers == 24);
  CHECK(c.model.experts == 512);
  CHECK(c.model.tokens == 1 << 20);
  CHECK(c.model.capacity_factor == 1.25);
  CHECK(!c.model.one_hot_products);
  CHECK(parsed({}).model == *pr::find_model("600B"));
  for (const pr::named_model& m : pr::models) CHECK(parsed({"--plan", m.name.data()}).model.layers == m.layers);
}

TEST_CASE("plan a run: a config file") {
  const std::string file = "plan_run_test.cfg";
  std::ofstream(file) << "# mine\nplan = 37B\nlayers = 8\nexperts=64\nrecompute = always\n";
  const pr::command_line c = parsed({"--config", file.c_str(), "--layers", "4"});
  CHECK(c.model.layers == 4);
  CHECK(c.model.experts == 64);
  CHECK(c.run.activations == gs::recompute::always);
  std::remove(file.c_str());
}

TEST_CASE("plan a run: faults") {
  const pr::command_line c = parsed({"--straggler", "17:2", "--dead", "3", "--slow-link", "0-1:0.5", "--jitter", "0.1", "--seed", "5"});
  REQUIRE(c.run.faults.stragglers.size() == 1);
  CHECK(c.run.faults.stragglers[0].device == 17);
  CHECK(c.run.faults.stragglers[0].factor == 2);
  CHECK(c.run.faults.dead_devices == std::vector<int>{3});
  REQUIRE(c.run.faults.links.size() == 1);
  CHECK(c.run.faults.links[0].factor == 0.5);
}

TEST_CASE("plan a run: axes of the mesh of devices") {
  CHECK(parsed({"--axes", "data=2,expert=4"}).axes_on(8).text() == "data=2, expert=4");
  CHECK(parsed({}).axes_on(2048).text() == "expert=2048");
  CHECK(parsed({"--plan", "37B"}).axes_on(2048).text() == "data=16, expert=128");
}

TEST_CASE("plan a run: what is refused, and why") {
  CHECK(refused({"--plan", "60"}) == "--plan: there is no model 60; there are " + pr::model_names());
  CHECK(refused({"--axes", "x=2"}).find("wants axes called data, expert and model") != std::string::npos);
  CHECK(refused({"--axes", "expert"}).find("wants axes called") != std::string::npos);
  CHECK(refused({"--straggler", "17"}) == "--straggler: wants DEVICE:FACTOR, as 17:2, not 17");
  CHECK(refused({"--slow-link", "17"}) == "--slow-link: wants FROM-TO:FACTOR, as 0-1:0.5, not 17");
  CHECK(!refused({"--layers", "-1"}).empty());
}
