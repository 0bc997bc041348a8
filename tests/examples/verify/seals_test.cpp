// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../examples/verify/seals.hpp"

#include "../../io/scratch.hpp"

#include <gshard/run/event_log.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

TEST_CASE("gshard-verify: a log, its seals, and a log that is sealed but missing") {
  namespace gs = gshard;
  const scratch folder;
  const std::string path = folder / "events-00000.jsonl", manifest = folder / "manifest.json";
  gs::event_log log(path);
  log.write("start");
  log.write("checkpoint");
  const gs::event_log_head head = log.head();
  nlohmann::json document;
  document["event_logs"] = {{{"file", head.file}, {"records", head.records}, {"hash", head.hash}}};
  set_content(manifest, document.dump());
  log.write("stop");

  std::vector<gs::event_log_head> seals;
  verify::add_seals(seals, manifest);
  REQUIRE(seals == std::vector{head});
  CHECK(verify::check(path, seals).text == "events-00000.jsonl: 3 records, unaltered; those up to record 2 are sealed");
  CHECK(verify::missing_logs({path}, seals).empty());
  CHECK(verify::missing_logs({folder / "events-00001.jsonl"}, seals) == std::vector<std::string>{"events-00000.jsonl"});
  std::string content = content_of(path);
  content.resize(content.find('\n') + 1);
  set_content(path, content);
  CHECK_FALSE(verify::check(path, seals).holds);
  CHECK(verify::check(path, {}).holds);

  for (const std::string text : {"", "[]", "{}", R"({"event_logs": 3})", R"({"event_logs": [3]})", R"({"event_logs": [{"file": "a"}]})",
                                 R"({"event_logs": [{"file": "a", "records": -1, "hash": ""}]})"}) {
    set_content(manifest, text);
    CHECK_MESSAGE(contains(complaint([&] { verify::add_seals(seals, manifest); }), manifest + ": "), text);
  }
}
