// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_run/command_line.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace gs = gshard;
namespace pr = plan_run;

namespace {

pr::command_line parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "gshard-plan-run");
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

TEST_CASE("plan a run: the network of a preset, changed") {
  const pr::command_line c = parsed({"--link-bytes", "10e9", "--hop", "2e-6", "--launch", "1e-6", "--ties", "one-way", "--gather",
                                     "all-links", "--exchange", "by-dimension", "--rings", "1", "--timeout", "7"});
  CHECK(c.run.faults.timeout == 7);
  const gs::hardware plain = gs::parse_hardware("tpu-v3:8x4"), on = c.network.of(plain);
  CHECK(on.topology.link_bytes == 10e9);
  CHECK(on.device.link_bytes == plain.device.link_bytes);  // from the host
  CHECK(on.topology.hop == 2e-6);
  CHECK(on.topology.launch == 1e-6);
  CHECK(on.device.start == 1e-6);
  CHECK(on.topology.ties == gs::tie_policy::one_way);
  CHECK(on.topology.gather == gs::gather_scheme::all_links);
  CHECK(on.topology.exchange == gs::all_to_all_scheme::by_dimension);
  CHECK(!on.topology.wrap[0]);
  CHECK(on.topology.wrap[1]);
  CHECK(parsed({}).network.of(plain).topology == plain.topology);
  CHECK(parsed({"--link-bytes", "1e9"}).network.of(gs::parse_hardware("aries:8")).device.link_bytes == 1e9);
  const auto error_of = [](const pr::command_line& asked, const char* hardware) -> std::string {
    try {
      asked.network.of(gs::parse_hardware(hardware));
    } catch (const gs::error& e) {
      return e.what();
    }
    return {};
  };
  CHECK(error_of(c, "aries:8") == "aries:8 is a cluster: --hop, --ties, --gather, --exchange and --rings are for a torus");
  CHECK(error_of(parsed({"--rings", "2"}), "tpu-v3:8x4").starts_with("--rings 2: '2' is not one of the 2 dimensions"));
}

TEST_CASE("plan a run: axes that follow a snake") {
  const pr::mesh_axes axes = parsed({"--axes", "data=2,expert=4", "--snake", "expert"}).axes_on(8);
  CHECK(axes.text() == "data=2, expert=4 (snake)");
  CHECK(refused({"--snake", "data"}) == "--snake data: 'data' is none of the axes expert=8");
}

TEST_CASE("plan a run: help lists all options") {
  try {
    parsed({"--help"});
    FAIL("help is no run");
  } catch (const CLI::CallForHelp&) {
  }
  pr::command_line c;
  const std::string help = pr::command_parser(c).help();
  CHECK(help.find("never|when-needed|always") != std::string::npos);
  CHECK(help.find("Usage: examples/run.sh [OPTIONS]") != std::string::npos);
  CHECK(help.find("--no-sweep ") != std::string::npos);
  CHECK(parsed({}).sweep);
  CHECK(!parsed({"--no-sweep"}).sweep);
  CHECK(std::all_of(help.begin(), help.end(), [](char x) { return x == '\n' || (x >= ' ' && x <= '~'); }));
}

TEST_CASE("plan a run: a key that a config file should not have") {
  const std::string file = "plan_run_wrong_test.cfg";
  std::ofstream(file) << "plan = 37B\nlayer = 8\n";
  CHECK(refused({"--config", file.c_str()}).find("layer") != std::string::npos);
  std::remove(file.c_str());
}

TEST_CASE("plan a run: what is refused, and why") {
  for (const char* wrong : {"x:2", "17:2junk", "17:-2", "-1:2", "17:nan", "17:inf", "17.5:2", ":2", "17:"})
    CHECK(refused({"--straggler", wrong}) == std::string("--straggler: wants DEVICE:FACTOR, as 17:2, not ") + wrong);
  for (const char* wrong : {"0-1:0.5junk", "0-1:-2", "0-1:2", "0-1", "0:0.5", "-0-1:0.5", "0--1:0.5", "0-1:nan"})
    CHECK(refused({"--slow-link", wrong}) ==
          std::string("--slow-link: wants FROM-TO:FACTOR with a factor from 0 to 1, as 0-1:0.5, not ") + wrong);
  for (const char* option : {"--products", "--batched-products", "--memory-rate", "--all-to-all"})
    for (const char* wrong : {"-1", "0", "1.5", "nan", "0.5x"})
      CHECK(refused({option, wrong}) == std::string(option) + ": wants a share above 0 and at most 1, not " + wrong);
  CHECK(refused({"--link-bytes", "-5"}) == "--link-bytes: wants a number above 0, not -5");
  CHECK(refused({"--jitter", "-0.1"}) == "--jitter: wants a number of at least 0, not -0.1");
  CHECK(refused({"--seed", "-1"}) == "--seed: wants a whole number of at least 0, not -1");
  CHECK(refused({"--layers", "2.5"}) == "--layers: wants a whole number of at least 3, not 2.5");
  CHECK(refused({"--recompute", "2"}) == "--recompute: wants never, when-needed or always, not 2");
  CHECK(refused({"--dead", "3x"}) == "--dead: wants the number of a device, not 3x");
  CHECK(refused({"--axes", "expert=8junk"}).starts_with("--axes expert=8junk: 'expert=8junk' is no axis;"));
  CHECK(refused({"--axes", "expert=8,"}).starts_with("--axes expert=8,: '' is no axis;"));
  CHECK(refused({"--axes", "expert=8,expert=1"}) == "--axes expert=8,expert=1: names expert twice");
  CHECK(refused({"--axes", "data=8"}) == "--axes data=8: has no axis called expert, over which experts are sharded");
  CHECK(refused({"--axes", "expert=4"}) == "--axes expert=4: makes 4 devices, tpu-v3:32x32 has 8");

  CHECK(refused({"--plan", "60"}) == "--plan: there is no model 60; there are " + pr::model_names());
  CHECK(refused({"--axes", "x=2"}).find("wants axes called data, expert and model") != std::string::npos);
  CHECK(refused({"--axes", "expert"}).find("wants axes called") != std::string::npos);
  CHECK(refused({"--straggler", "17"}) == "--straggler: wants DEVICE:FACTOR, as 17:2, not 17");
  CHECK(!refused({"--layers", "-1"}).empty());
}
