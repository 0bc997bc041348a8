// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace translate {

/// The last complete record of a step in a file of telemetry, or nothing.
inline std::optional<nlohmann::json> last_step(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = std::int64_t(file.tellg()), most = std::int64_t(1) << 16;
  if (!file || size <= 0) return std::nullopt;
  std::string text(std::size_t(std::min(size, most)), '\0');
  file.seekg(size - std::int64_t(text.size()));
  file.read(text.data(), std::int64_t(text.size()));
  while (!text.empty()) {
    const std::size_t end = text.rfind('\n');
    if (end == text.npos) break;
    text.resize(end);
    const std::size_t begin = text.rfind('\n') + 1;  // 0 if there is none
    auto record = nlohmann::json::parse(text.substr(begin), nullptr, false);
    if (record.is_object() && record.contains("step") && record.contains("seconds")) return record;
  }
  return std::nullopt;
}

/// The step of the newest checkpoint in a directory, or -1.
inline std::int64_t newest_checkpoint(const std::filesystem::path& directory) {
  std::int64_t newest = -1;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string(), prefix = "step-";
    std::int64_t step = -1;
    if (!name.starts_with(prefix) || !std::filesystem::exists(entry.path() / "manifest.json", ignored)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
    newest = std::max(newest, step);
  }
  return newest;
}

/// The state of a training as a line: the latest records that its ranks wrote to this directory. Empty if there are none yet.
inline std::string state_of_run(const std::filesystem::path& directory) {
  std::vector<nlohmann::json> ranks;
  std::error_code ignored;
  std::map<std::string, std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (const std::string name = entry.path().filename().string(); name.starts_with("telemetry-")) files[name] = entry.path();
  for (const auto& [name, path] : files)
    if (auto step = last_step(path)) ranks.push_back(std::move(*step));
  if (ranks.empty()) return {};
  const auto number = [](const nlohmann::json& from, const char* key) {
    const auto found = from.find(key);
    return found != from.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const nlohmann::json& first = ranks.front();
  double seconds = 0, waiting = 0, memory = 0;
  for (const nlohmann::json& r : ranks) {
    seconds = std::max(seconds, number(r, "seconds"));
    waiting += number(r, "waiting") / double(ranks.size());
    memory = std::max(memory, number(r, "resident"));
  }
  char text[300];
  std::snprintf(text, sizeof text, "step %lld  loss %.3f  %.3f s/step  waiting %.0f%%  %.0f MiB on the fullest of %zu ranks",
                static_cast<long long>(number(first, "step") + 1), first.contains("values") ? number(first["values"], "loss") : 0.0, seconds,
                seconds > 0 ? 100 * waiting / seconds : 0.0, memory / (1 << 20), ranks.size());
  std::string line = text;
  if (const std::int64_t saved = newest_checkpoint(directory); saved >= 0) line += "  checkpoint of step " + std::to_string(saved);
  return line;
}

}  // namespace translate
