// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The result files of a directory: which are finished, and whether they can be compared with further runs.

#include "task_data.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace scaling {

struct run_length {
  std::int64_t steps = 1500;
  std::int64_t validate_every = 100;
};

/// The common sizes of runs that can be compared. The first line of a result file contains them, in addition to the task.
inline nlohmann::json size_of_runs(const sizes& s) {
  return {{"model", s.model}, {"hidden", s.hidden}, {"batch_tokens", s.batch_tokens}, {"groups", s.groups}};
}

namespace detail {
/// The first and the last line of a file.
struct outer_lines {
  nlohmann::json first, last;
};
inline outer_lines read_outer_lines(const std::filesystem::path& results) {
  std::ifstream file(results);
  std::string first, last;
  for (std::string line; std::getline(file, line); last = line)
    if (first.empty()) first = line;
  return {nlohmann::json::parse(first, nullptr, false), nlohmann::json::parse(last, nullptr, false)};
}
inline bool is_finished(const outer_lines& l) { return l.last.is_object() && l.last.value("finished", false); }
}  // namespace detail

/// True if the result file is complete.
inline bool is_finished(const std::filesystem::path& results) { return detail::is_finished(detail::read_outer_lines(results)); }

/// Throws if the directory has a finished run of another size or length: the page could not compare it with a new one.
inline void check_results(const std::filesystem::path& directory, const sizes& s, const run_length& length) {
  if (!std::filesystem::is_directory(directory)) return;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const detail::outer_lines lines = detail::read_outer_lines(file);
    if (!detail::is_finished(lines) || !lines.first.is_object()) continue;
    const auto refuse = [&](const std::string& has, const std::string& wanted) {
      throw std::runtime_error(file.string() + " is a run of " + has + ", not of " + wanted + ": remove it, or name another directory with --out");
    };
    const std::int64_t steps = lines.first.value("steps", std::int64_t(0));
    if (steps != length.steps) refuse(std::to_string(steps) + " steps", std::to_string(length.steps));
    const nlohmann::json size = lines.first.value("size", nlohmann::json::object()), mine = size_of_runs(s);
    for (const auto& [name, value] : mine.items())
      if (size.value(name, nlohmann::json()) != value) refuse(name + " " + size.value(name, nlohmann::json()).dump(), value.dump());
  }
}

}  // namespace scaling
