// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#if __has_include(<nlohmann/json.hpp>)
#include "watch.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

struct run_directory {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "gshard_watch_test";
  run_directory() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~run_directory() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

}  // namespace

TEST_CASE("watch: the last complete step of all ranks, and the newest checkpoint") {
  const run_directory run;
  CHECK(translate::state_of_run(run.path).empty());
  CHECK(translate::state_of_run(run.path / "none").empty());
  run.write("telemetry-00000.jsonl",
            "{\"start\":true}\n"
            "{\"step\":6,\"seconds\":1,\"waiting\":0.5,\"resident\":1048576,\"values\":{\"loss\":9}}\n"
            "{\"step\":7,\"seconds\":0.5,\"waiting\":0.2,\"resident\":2097152,\"values\":{\"loss\":2.25}}\n"
            "{\"step\":8,\"sec");
  CHECK(translate::state_of_run(run.path) == "step 8  loss 2.250  0.500 s/step  waiting 40%  2 MiB on the fullest of 1 ranks");
  run.write("telemetry-00001.jsonl", std::string(100000, ' ') + "\n{\"step\":7,\"seconds\":0.25,\"waiting\":0,\"resident\":4194304}\n");
  run.write("step-0000000005/manifest.json", "{}");
  run.write("step-0000000007/part-00000.bin", "");
  CHECK(translate::state_of_run(run.path) ==
        "step 8  loss 2.250  0.500 s/step  waiting 20%  4 MiB on the fullest of 2 ranks  checkpoint of step 5");
  run.write("telemetry-00000.jsonl", "no JSON\n");
  run.write("telemetry-00001.jsonl", "");
  CHECK(translate::state_of_run(run.path).empty());
}
#endif
