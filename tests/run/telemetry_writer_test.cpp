// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/run/telemetry_writer.hpp>

#include "../io/scratch.hpp"
#include "prometheus_parser.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <string>
#include <vector>

namespace gs = gshard;

namespace {

unsigned mode(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777u;
}
gs::detail::telemetry_sample step(std::uint32_t n) {
  gs::detail::telemetry_sample s;
  s.step = n;
  s.lists = {{"load", {1, 2}}};
  return s;
}

}  // namespace

TEST_CASE("telemetry: files, their modes, and a line that a killed process left") {
  const scratch folder;
  const mode_t before = ::umask(0);
  const std::string lines = folder / "t.jsonl", state = folder / "t.prom";
  std::vector<std::string> told;
  const auto tell = [&](const std::string& s) { told.push_back(s); };
  for (int start = 0; start < 2; ++start) {
    gs::detail::telemetry_writer writer({lines, state, 1e9, 2, {}, tell}, "{\"telemetry\":1}\n");
    for (std::uint32_t n = 0; n < 3; ++n) writer.add(step(n));
    writer.set_straggler("1", start == 0);
  }
  CHECK(mode(lines) == 0600);
  CHECK(mode(state) == 0644);
  ::umask(0077);
  std::ofstream(lines, std::ios::app) << "{\"step\":3,\"ti";
  {
    gs::detail::telemetry_writer writer({lines, state, 1e9, 2, {}, tell}, "{\"telemetry\":1}\n");
  }
  CHECK(mode(state) == 0644);  // whatever the umask: node exporter is another user
  ::umask(before);
  std::ifstream file(lines);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  REQUIRE(all.size() == 10);
  CHECK(all[8] == "{\"step\":3,\"ti");
  CHECK(nlohmann::json::parse(all[9])["telemetry"] == 1);
  CHECK(nlohmann::json::parse(all[1]).contains("lists"));
  CHECK_FALSE(nlohmann::json::parse(all[2]).contains("lists"));
  CHECK(prometheus_parser(content_of(state)).samples.at("gshard_running") == 0);
  CHECK(told.empty());
  CHECK(folder.entries() == 2);
}

TEST_CASE("telemetry: what cannot be written is told once, and steps go on") {
  const scratch folder;
  std::vector<std::string> told;
  const auto tell = [&](const std::string& s) { told.push_back(s); };
  {
    gs::detail::telemetry_writer writer({"", folder / "absent/t.prom", 0, 1, {}, tell}, "");
    writer.add(step(1));
  }
  REQUIRE(told.size() == 1);
  CHECK(contains(told[0], "t.prom: its "));
  {
    const small_disk disk(0);
    gs::detail::telemetry_writer writer({folder / "t.jsonl", "", 0, 1, {}, tell}, "{}\n");
    writer.add(step(1));
  }
  CHECK(told.size() == 2);
  REQUIRE(::symlink((folder / "t.jsonl").c_str(), (folder / "link").c_str()) == 0);
  CHECK(contains(complaint([&] { gs::detail::telemetry_writer writer({folder / "link", "", 0, 1, {}, tell}, ""); }), "is a symbolic link"));
}
