// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/error.hpp>
#include <gshard/run/event_log_check.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace verify {

namespace gs = gshard;

/// Adds the heads of event logs that a manifest seals: its field "event_logs", a list of {"file", "records", "hash"}.
/// Throws gs::error if the file cannot be read or is no such manifest.
inline void add_seals(std::vector<gs::event_log_head>& seals, const std::string& manifest) {
  const auto document = nlohmann::json::parse(gs::detail::whole_file(manifest), nullptr, false);
  const auto refuse = [&](const std::string& why) { throw gs::error(manifest + ": " + why); };
  if (!document.is_object()) refuse("is not a JSON object");
  const auto list = document.find("event_logs");
  if (list == document.end() || !list->is_array()) refuse("seals no event logs: it has no list \"event_logs\"");
  for (const auto& head : *list) {
    const auto is_text = [&](const char* key) { return head.contains(key) && head[key].is_string(); };
    if (!head.is_object() || !is_text("file") || !is_text("hash") || !head.contains("records") || !head["records"].is_number_unsigned())
      refuse("an entry of \"event_logs\" lacks file, records or hash");
    seals.push_back({head["file"].get<std::string>(), head["records"].get<std::uint64_t>(), head["hash"].get<std::string>()});
  }
}

/// The sentence of gshard-verify about one log, and whether it is unaltered.
struct verdict {
  bool holds = false;
  std::string text;
};

inline verdict check(const std::string& log, const std::vector<gs::event_log_head>& seals) {
  const gs::event_log_finding f = gs::check_event_log(log, seals);
  return {f.unaltered, f.text};
}

/// What is sealed, but not among the logs.
inline std::vector<std::string> missing_logs(const std::vector<std::string>& logs, const std::vector<gs::event_log_head>& seals) {
  std::vector<std::string> missing;
  for (const gs::event_log_head& seal : seals) {
    bool is_there = seal.records == 0;
    for (const std::string& log : logs) is_there = is_there || gs::detail::base_name(log) == seal.file;
    for (const std::string& m : missing) is_there = is_there || m == seal.file;
    if (!is_there) missing.push_back(seal.file);
  }
  return missing;
}

}  // namespace verify
