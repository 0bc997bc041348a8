// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../examples/verify/seals.hpp"

#include "../../io/scratch.hpp"
#include "../../survive/keys.hpp"

#include <gshard/survive/log/event_log.hpp>

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
  gs::manifest sealing;
  sealing.event_logs = {head};
  const std::string sealed = gs::detail::text_of(sealing);
  set_content(manifest, sealed);
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

  // A changed seal is found by its manifest's SHA-256. If the whole manifest was rewritten, only a key shows it.
  std::string edited = sealed;
  edited.replace(edited.find("\"records\":2"), 11, "\"records\":1");
  sealing.event_logs[0].records = 1;
  for (const std::string& text : {std::string(), std::string("{}"), sealed.substr(1), edited}) {
    set_content(manifest, text);
    CHECK_MESSAGE(contains(complaint([&] { verify::add_seals(seals, manifest); }), manifest + ": the manifest "), text);
  }
  keys::write(folder / "key", std::string(32, 'k'));
  const gs::signing_key key = gs::signing_key::hmac(folder / "key");
  set_content(manifest, sealed);
  CHECK(contains(complaint([&] { verify::add_seals(seals, manifest, &key); }), manifest + ": is not signed"));
  set_content(folder / "manifest.sig", key.sign(sealed));
  verify::add_seals(seals, manifest, &key);
  set_content(manifest, gs::detail::text_of(sealing));
  verify::add_seals(seals, manifest);
  CHECK(complaint([&] { verify::add_seals(seals, manifest, &key); }) == manifest + ": its manifest.sig is not a signature by this key");
  CHECK(seals.size() == 3);
}
