// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scaling/results.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace {

using namespace scaling;

/// A directory with the results of one run.
class directory {
 public:
  directory() : path(std::filesystem::temp_directory_path() / ("gshard-scaling-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~directory() { std::filesystem::remove_all(path); }
  void write(const sizes& s, std::int64_t steps, bool finished) const {
    std::ofstream file(results());
    file << nlohmann::json{{"steps", steps}, {"size", size_of_runs(s)}} << "\n{}\n";
    if (finished) file << nlohmann::json{{"finished", true}} << "\n";
  }
  std::filesystem::path results() const { return path / "one.jsonl"; }

  std::filesystem::path path;
};

std::string complaint(const std::filesystem::path& where, const sizes& s, std::int64_t steps) {
  try {
    check_results(where, s, {steps, 100});
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("scaling: a file of results is finished if its last line says so") {
  const directory d;
  CHECK(!is_finished(d.path / "none.jsonl"));
  d.write(sizes::small(), 1000, false);
  CHECK(!is_finished(d.results()));
  d.write(sizes::small(), 1000, true);
  CHECK(is_finished(d.results()));
}

TEST_CASE("scaling: finished runs of another size or length are refused before a run begins") {
  const directory d;
  CHECK(complaint(d.path / "none", sizes::small(), 1000) == "");
  CHECK(complaint(d.path, sizes::small(), 1000) == "");
  d.write(sizes::small(), 1000, true);
  CHECK(complaint(d.path, sizes::small(), 1000) == "");
  const std::string file = d.results().string(), advice = ": remove it, or name another directory with --out";
  CHECK(complaint(d.path, sizes::small(), 500) == file + " is a run of 1000 steps, not of 500" + advice);
  sizes longer = sizes::small();
  longer.batch_tokens *= 2;
  CHECK(complaint(d.path, longer, 1000) == file + " is a run of batch_tokens " + std::to_string(sizes::small().batch_tokens) + ", not of " +
                                               std::to_string(longer.batch_tokens) + advice);
  CHECK(complaint(d.path, sizes::quick(), 1000).find(" is a run of ") != std::string::npos);
  d.write(sizes::small(), 1000, false);  // starts again
  CHECK(complaint(d.path, longer, 500) == "");
}

}  // namespace
