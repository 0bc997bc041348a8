// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// write_histories <folder>: pages of made-up whole runs for check_history.py.
#include <gshard/survive/monitor/run_page.hpp>

#include "../survive/sample_history.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

void write(const std::filesystem::path& path, const gshard::run_history& history, const std::string& title) {
  std::ofstream(path, std::ios::binary) << gshard::history_page(history, title);
}

}  // namespace

int main(int, char** argument) {
  const std::filesystem::path folder = argument[1];
  std::filesystem::create_directories(folder);
  gshard::run_history finished = sample_history(4, 3000, 16);
  finished.skipped = 2;
  finished.events.push_back({finished.events.back().time + 1, 0, "finish", {{"step", 3000}}, 0});
  write(folder / "long.html", finished, "translate");
  write(folder / "wide.html", sample_history(140, 60, 300), "many processes");
  write(folder / "one.html", sample_history(1, 1, 1), "one step");

  // Names that could break out of their HTML element, an altered log, and no event without a step.
  gshard::run_history hostile = sample_history(2, 50, 3);
  for (std::string& name : hostile.names) name = "</script><b>\"" + name + "\" & <img src=x onerror=alert(1)><!--";
  hostile.events.push_back({1, 1, "<i>mine</i>", {{"text", "</script><script>alert(2)</script>\xff"}}, 0});
  hostile.starts[0].host = "<b>host</b>";
  hostile.logs.push_back("events-00001.jsonl: record 2 is altered or added: its hash is not that of its text");
  hostile.logs_hold = false;
  hostile.unread = 3;
  write(folder / "hostile.html", hostile, "</title></style><b>run</b>");

  gshard::run_history events = sample_history(1, 20, 1);
  events.summary = {};
  events.processes = 0;
  events.starts.clear();
  write(folder / "events.html", events, "only events");
}
