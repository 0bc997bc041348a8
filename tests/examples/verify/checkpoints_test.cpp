// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../examples/verify/checkpoints.hpp"

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using texts = std::vector<std::string>;

TEST_CASE("gshard-verify: the newest checkpoint, all, one, and those of several hosts") {
  const scratch dir;
  for (const char* path : {"a/step-0000000010", "a/step-0000000020", "a/step-0000000030", "b/step-0000000020", "none"})
    std::filesystem::create_directories(dir / path);
  for (const char* path : {"a/step-0000000010", "a/step-0000000020", "b/step-0000000020"})
    set_content(dir / (std::string(path) + "/manifest.json"), "{}");
  const std::string a = dir / "a", b = dir / "b/";
  verify::chosen_checkpoints chosen = verify::choose_checkpoints({a, b}, false);
  CHECK(chosen.all == std::vector<texts>{{a + "/step-0000000020", b + "step-0000000020"}});
  CHECK(chosen.notes == texts{"older checkpoints were not checked: --all checks them",
                              a + "/step-0000000030: has no manifest.json: it is being saved, or was never finished"});
  chosen = verify::choose_checkpoints({a}, true);
  CHECK(chosen.all == std::vector<texts>{{a + "/step-0000000020"}, {a + "/step-0000000010"}});
  CHECK(chosen.notes.size() == 1);
  chosen = verify::choose_checkpoints({a + "/step-0000000010"}, false);
  CHECK(chosen.all == std::vector<texts>{{a + "/step-0000000010"}});
  CHECK(chosen.notes.empty());
  CHECK(contains(complaint([&] { verify::choose_checkpoints({dir / "none"}, true); }), "none: has no checkpoint"));
  CHECK(contains(complaint([&] { verify::choose_checkpoints({dir / "absent"}, true); }), "absent: cannot be opened"));
}

TEST_CASE("gshard-verify: the logs in these directories that are sealed, each once; names with folders are none") {
  const scratch dir;
  set_content(dir / "events-00000.jsonl", "");
  set_content(dir / "events-00001.jsonl", "");
  const std::string outside = "../" + std::filesystem::path(dir / "").parent_path().filename().string() + "/events-00001.jsonl";
  const std::vector<gshard::event_log_head> seals{
      {"events-00000.jsonl", 1, ""}, {"events-00000.jsonl", 2, ""}, {"events-00002.jsonl", 1, ""}, {outside, 1, ""}};
  CHECK(verify::logs_beside({dir / ""}, seals).size() == 1);
}
