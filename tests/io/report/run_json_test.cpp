// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/report/run_json.hpp>

#include "../../complaint.hpp"
#include "../../sim/report/sample_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;

TEST_CASE("a run as one document: its numbers are those of the record, its words those of the plan") {
  const sample::run& sample = sample::small();
  const gs::run_record& run = sample.record;
  // Through text, as a reader gets it.
  const auto d = nlohmann::json::parse(gs::text_of_json(gs::run_json(run, sample::plan, sample.sizes, sample::sweep())));
  CHECK(d["format"] == "gshard run 1");
  CHECK(d["seconds"] == run.seconds);
  CHECK(d["devices"] == 16);
  CHECK(d["mesh"][1]["axis"] == "expert");
  CHECK(d["mesh"][1]["extent"] == 8);
  CHECK(d["chips"] == run.chips);

  REQUIRE(d["steps"].size() == run.steps.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const gs::step_record& s = run.steps[i];
    const auto& j = d["steps"][i];
    CHECK(j["step"] == s.step);
    CHECK(j["text"] == gs::describe(sample::plan, sample::plan.steps[std::size_t(s.step)]));
    CHECK(j["why"] == gs::describe_reason(sample::plan, std::size_t(s.step)));
    CHECK(j["why"].get<std::string>().empty() == (s.bytes_received == 0));
    CHECK(j["part"] == gs::name(s.part));
    CHECK(j["bound"] == gs::name(s.bound));
    CHECK(j["flops"] == s.flops);
    CHECK(j["bytes_touched"] == s.bytes_touched);
    CHECK(j["bytes_received"] == s.bytes_received);
    CHECK(j["arithmetic"] == s.arithmetic);
    CHECK(j["memory"] == s.memory);
    CHECK(j["network"] == s.network);
    CHECK(j["seconds"] == s.seconds);
    CHECK(j["recomputed"] == s.recomputed);
  }
  REQUIRE(d["parts"].size() == run.parts.size());
  for (std::size_t p = 0; p < run.parts.size(); ++p) CHECK(d["parts"][p]["seconds"] == run.parts[p]);
  CHECK(d["received"] == run.received);
  CHECK(d["bytes_received"] == sample::plan.bytes_received(sample.sizes));

  REQUIRE(d["tracks"].size() == 2);
  CHECK(d["tracks"][0]["devices"].size() == 15);
  CHECK(d["tracks"][1]["compute"] == run.tracks[1].compute);
  REQUIRE(d["tracks"][0]["spans"].size() == run.tracks[0].spans.size());
  for (std::size_t i = 0; i < run.tracks[0].spans.size(); ++i) {
    const gs::time_span& s = run.tracks[0].spans[i];
    const auto& j = d["tracks"][0]["spans"][i];
    CHECK(j["row"] == s.row);
    CHECK(j["what"] == gs::name(s.what));
    CHECK(j["begin"] == s.begin);
    CHECK(j["end"] == s.end);
  }
  CHECK(d["tracks"][0]["memory"].back()["bytes"] == run.tracks[0].memory.back().bytes);

  CHECK(d["memory"]["peak"] == run.memory.peak);
  CHECK(d["memory"]["kinds"][1]["bytes"] == run.memory.bytes[1]);
  CHECK(d["memory"]["largest"].size() == run.memory.largest.size());
  REQUIRE(d["links"].size() == run.links.size());
  CHECK(d["links"][3]["to"] == run.links[3].to);
  CHECK(d["links"][3]["bytes"] == run.links[3].bytes);
  CHECK(d["assumptions"] == run.assumptions);
  REQUIRE(d["sweep"].size() == 3);
  CHECK(d["sweep"][1]["core_years"] == 5.25);
  CHECK(d["sweep"][2]["fits"] == false);
}

TEST_CASE("tensors: each once, by dims with the axes that shard them, what a device has and the whole") {
  const sample::run& sample = sample::small();
  const auto d = gs::run_json(sample.record, sample::plan, sample.sizes);
  int parameters = 0, state = 0, inputs = 0;
  std::vector<int> seen;
  for (const auto& t : d["tensors"]) {
    seen.push_back(t["value"]);
    parameters += t["role"] == "parameter";
    state += t["role"] == "state";
    inputs += t["role"] == "input";
    std::int64_t whole = 4, pieces = 1;
    for (const auto& dim : t["dims"]) {
      whole *= dim["extent"].get<std::int64_t>();
      for (const auto& axis : dim["axes"]) pieces *= axis == "data" ? 2 : 8;
    }
    CHECK(t["whole_bytes"] == whole);
    CHECK(t["bytes"] == whole / pieces);
  }
  CHECK(parameters == 3);
  CHECK(state >= 6);
  CHECK(inputs == 3);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  const auto& x = d["tensors"][0];
  CHECK(x["name"] == "GSM");
  CHECK(x["dims"][0]["name"] == "G");
  CHECK(x["dims"][0]["extent"] == 32);
  CHECK(x["dims"][0]["axes"] == nlohmann::json{"data", "expert"});
}

TEST_CASE("names that are not UTF-8 are no reason to fail, a record of another plan is") {
  gs::run_record run;
  run.program = "\xff\"\n";
  const std::string text = gs::text_of_json(gs::run_json(run, gs::plan_view{}, {}));
  CHECK(nlohmann::json::parse(text)["program"] == "\xef\xbf\xbd\"\n");
  run.steps.resize(1);
  CHECK(contains(complaint([&] { gs::run_json(run, gs::plan_view{}, {}); }), "its plan has 0 steps"));
  run.steps.clear();
  run.tracks.resize(1);
  for (const std::int32_t row : {-1, 0}) {
    run.tracks[0].spans = {{row}};
    CHECK(contains(complaint([&] { gs::run_json(run, gs::plan_view{}, {}); }), "a span is of row " + std::to_string(row)));
  }
}
