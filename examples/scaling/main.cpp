// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains translation models with more and more experts at equal operations per token. Several of these processes share the runs of one
// directory: each takes the next run that nobody has finished or is at. See --help.

#include "configuration.hpp"
#include "run.hpp"
#include "task_data.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace scaling;

/// The right to do a run: as long as this lives, no other process on this host has it.
class claim {
 public:
  explicit claim(const std::filesystem::path& file) : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}
  ~claim() {
    if (file_ >= 0) ::close(file_);
  }
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;

  bool is_mine() const { return file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0; }

 private:
  int file_;
};

struct command_line {
  std::filesystem::path out = "scaling", iso_codes = "/usr/share/locale", catalogues = "/usr/share/locale";
  bool quick = false, small = false, list = false;
  int seeds = 3;
  std::int64_t steps = 0;
  double minutes = 0;
  std::vector<std::string> only;

  bool wants(const std::string& name) const {
    return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& part) { return name.find(part) != name.npos; });
  }
};

void run_all(const command_line& c) {
  const sizes s = c.quick ? sizes::quick() : c.small ? sizes::small() : sizes{};
  run_length length = c.quick ? run_length{20, 10} : c.small ? run_length{1000, 100} : run_length{};
  using clock = std::chrono::steady_clock;
  const auto is_late = [&, begin = clock::now()] {
    return c.minutes > 0 && clock::now() - begin > std::chrono::duration<double>(60 * c.minutes);
  };
  if (c.steps > 0) length.steps = c.steps;
  std::filesystem::create_directories(c.out);
  for (const task which : {task::iso_codes, task::catalogues}) {
    std::optional<task_data> data;
    for (const configuration& r : runs_of(which, c.seeds)) {
      if (!c.wants(r.name())) continue;
      if (c.list) {
        std::cout << r.name() << '\n';
        continue;
      }
      if (is_late()) return;
      const std::filesystem::path results = c.out / (r.name() + ".jsonl");
      const claim mine(c.out / (r.name() + ".lock"));
      if (!mine.is_mine() || is_finished(results)) continue;
      if (!data) data = prepare(which, s, c.iso_codes, c.catalogues);
      run(r, *data, s, length, results);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  command_line c;
  CLI::App app("Trains translation models with more and more experts at equal operations per token, and writes a file of results for each.");
  app.add_option("--out", c.out, "directory of the results")->capture_default_str();
  app.add_option("--iso-codes", c.iso_codes, "directory of the catalogues of the package iso-codes")->capture_default_str();
  app.add_option("--catalogues", c.catalogues, "directory of the catalogues of other packages")->capture_default_str();
  app.add_option("--seeds", c.seeds, "runs of each model")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--steps", c.steps, "training steps of a run")->check(CLI::PositiveNumber);
  app.add_option("--only", c.only, "only runs whose name has this text, or one of several");
  app.add_option("--minutes", c.minutes, "no run begins later; those under way are finished")->check(CLI::PositiveNumber);
  app.add_flag("--small", c.small, "small models and batches: a run takes minutes");
  app.add_flag("--quick", c.quick, "tiny models, a few steps: shows that everything runs");
  app.add_flag("--list", c.list, "prints the names of the runs");
  CLI11_PARSE(app, argc, argv);
  try {
    run_all(c);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "scaling: " << e.what() << std::endl;
    return 1;
  }
}
