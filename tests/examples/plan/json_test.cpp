// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/json.hpp"

#include "requests.hpp"

#include <nlohmann/json.hpp>

using namespace requests;

TEST_CASE("plan: a plan as JSON has numbers where text has words") {
  const nlohmann::ordered_json j = pl::to_json(facts(reshard("x=2,y=2,z=2", "16@(x,z),8+partial(y)", "16,8@x")));
  CHECK(j["mesh"][1]["axis"] == "y");
  CHECK(j["mesh"][1]["extent"] == 2);
  CHECK(j["inputs"][0]["shape"] == "16@(x,z),8+partial(y)");
  CHECK(j["output"]["local"] == std::vector<int>{16, 4});
  std::int64_t bytes = 0;
  for (const auto& step : j["steps"]) bytes += step["bytes_received"].get<std::int64_t>();
  CHECK(j["total"]["bytes_received"] == bytes);
  CHECK(j["total"]["steps"] == j["steps"].size());
  const auto& sum = j["steps"][0];
  CHECK(sum["axes"] == std::vector<std::string>{"y"});
  CHECK(sum["moves"][0]["from_partial"] == true);
  CHECK(sum["moves"][0]["from_dim"].is_null());
  const auto& last = j["steps"].back();
  CHECK(last["op"] == "all_to_all");
  CHECK(last["groups"]["count"].get<int>() * last["groups"]["size"].get<int>() == 8);
  CHECK(last["groups"]["devices"].size() == last["groups"]["count"]);
}

TEST_CASE("plan: all results of a plan as JSON") {
  const nlohmann::ordered_json j = pl::to_json(facts("top-k --mesh x=2 --in 4@x,6 --k 2"));
  CHECK(j["outputs"].size() == 2);
  CHECK(j["output"] == j["outputs"][0]);
  CHECK(j["output"]["extents"] == std::vector<int>{4, 2});
  CHECK(pl::to_json(facts("roll --mesh x=2 --in 8@x --shift 1"))["steps"][0]["moves"][0]["halo"] == true);
}
