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
  bool quick = false, list = false;
  int seeds = 3;
  std::int64_t steps = 0;
  std::string only;
};

void run_all(const command_line& c) {
  const sizes s = c.quick ? sizes::quick() : sizes{};
  run_length length = c.quick ? run_length{20, 10} : run_length{};
  if (c.steps > 0) length.steps = c.steps;
  std::filesystem::create_directories(c.out);
  for (const task which : {task::iso_codes, task::catalogues}) {
    std::optional<task_data> data;
    for (const configuration& r : runs_of(which, c.seeds)) {
      if (r.name().find(c.only) == std::string::npos) continue;
      if (c.list) {
        std::cout << r.name() << '\n';
        continue;
      }
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
  app.add_option("--only", c.only, "only runs whose name has this text");
  app.add_flag("--quick", c.quick, "small models, a few steps: shows that everything runs");
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
