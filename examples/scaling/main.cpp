// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains translation models with more and more experts at equal operations per token. Several of these processes share the runs of one
// directory. Each takes the next run that no process has finished or started. See --help.

#include "configuration.hpp"
#include "results.hpp"
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
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace scaling;

/// The lock of a run: while it exists, no other process on this host can take the run.
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
  bool quick = false, small = false, list = false, check = false;
  int seeds = 3, rounds = 0;
  std::int64_t steps = 0, tokens = 0;
  double minutes = 0;
  std::vector<std::string> only;

  sizes size() const {
    sizes s = quick ? sizes::quick() : small ? sizes::small() : sizes{};
    if (tokens > 0) s.batch_tokens = tokens;
    return s;
  }
  run_length length() const {
    run_length l = quick ? run_length{20, 10} : small ? run_length{500, 50} : run_length{};
    if (steps > 0) l.steps = steps;
    return l;
  }
};

void run_all(const command_line& c, const std::vector<configuration>& runs) {
  const sizes s = c.size();
  check_results(c.out, s, c.length());
  if (c.check) return;
  using clock = std::chrono::steady_clock;
  const auto is_late = [&, begin = clock::now()] {
    return c.minutes > 0 && clock::now() - begin > std::chrono::duration<double>(60 * c.minutes);
  };
  std::filesystem::create_directories(c.out);
  std::map<task, task_data> data;
  for (const configuration& r : runs) {
    if (is_late()) return;
    const std::filesystem::path results = c.out / (r.name() + ".jsonl");
    const claim mine(c.out / (r.name() + ".lock"));
    if (!mine.is_mine() || is_finished(results)) continue;
    if (!data.contains(r.data)) data = {{r.data, prepare(r.data, s, c.iso_codes, c.catalogues)}};
    run(r, data.at(r.data), s, c.length(), results);
  }
}

void measure(const command_line& c, const std::vector<configuration>& runs) {
  const task which = runs.front().data;
  if (std::any_of(runs.begin(), runs.end(), [&](const configuration& r) { return r.data != which; }))
    throw std::runtime_error("--time compares models of one task: choose them by --only");
  const sizes s = c.size();
  print_step_times(runs, prepare(which, s, c.iso_codes, c.catalogues), s, c.rounds, std::cout);
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
  app.add_option("--only", c.only, "only runs whose name has this text, or one of several, with commas or spaces between them")->delimiter(',');
  app.add_option("--minutes", c.minutes, "no run begins later; those under way are finished")->check(CLI::PositiveNumber);
  app.add_option("--tokens", c.tokens, "source and target positions of a training step, about")->check(CLI::PositiveNumber);
  app.add_option("--time", c.rounds, "trains nothing to its end: prints the time of a step of each run, measured in turn in this many rounds")
      ->check(CLI::PositiveNumber);
  CLI::Option* const small = app.add_flag("--small", c.small, "small models and batches: a run takes minutes");
  app.add_flag("--quick", c.quick, "tiny models, a few steps: shows that everything runs")->excludes(small);
  app.add_flag("--list", c.list, "prints the names of the runs");
  app.add_flag("--check", c.check, "only checks that the results in --out are of the same size and length");
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<configuration> runs = select_runs(c.seeds, c.only);
    if (c.list) {
      for (const configuration& r : runs) std::cout << r.name() << '\n';
    } else if (c.rounds > 0) {
      measure(c, runs);
    } else {
      run_all(c, runs);
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "scaling: " << e.what() << std::endl;
    return 1;
  }
}
