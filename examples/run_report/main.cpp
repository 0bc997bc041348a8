// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gshard-run-report DIR > page.html: writes the page of a run, from the telemetry and event logs in a directory.

#include <gshard/survive/monitor/run_page.hpp>

#include <CLI/CLI.hpp>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  CLI::App app("Writes a page about a run: its curves, times, memory, experts, restarts and events.\nReads telemetry-*.jsonl and "
               "events-*.jsonl, which the processes of the run write,\nalso while it goes on. The page needs no other file and no network.\n",
               "gshard-run-report");
  std::string directory, title;
  bool json = false;
  app.add_option("DIR", directory, "directory with the files of all processes")->required();
  app.add_option("--title", title, "title of the page; default: the name of the directory");
  app.add_flag("--json", json, "only the data of the page");
  app.footer("Example:\n  gshard-run-report run > run.html");
  try {
    app.parse(argc, argv);
    if (title.empty()) title = std::filesystem::path(directory).lexically_normal().filename().string();
    if (title.empty()) title = std::filesystem::absolute(directory).lexically_normal().parent_path().filename().string();
    const gshard::run_history history = gshard::read_run_history(directory);
    if (json) std::cout << gshard::text_of_json(gshard::history_json(history, title)) << '\n';
    else std::cout << gshard::history_page(history, title);
    std::cout.flush();
    if (std::cout) return 0;
    std::cerr << "gshard-run-report: the output cannot be written\n";
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "gshard-run-report: " << e.what() << "; see gshard-run-report --help\n";
  } catch (const std::exception& e) {
    std::cerr << "gshard-run-report: " << e.what() << '\n';
  }
  return 1;
}
