// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/process/error.hpp>
#include <gshard/survive/checkpoint/checkpoint_check.hpp>
#include <gshard/survive/checkpoint/step_directories.hpp>
#include <gshard/survive/files/directory.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace verify {

namespace gs = gshard;

/// The checkpoints to check. Each has one directory, or one per host.
struct chosen_checkpoints {
  std::vector<std::vector<std::string>> all;  // the newest first
  std::vector<std::string> notes;             // sentences about checkpoints that are not checked, with the reason
};

/// `given`: directories of a run, or of one checkpoint. `every`: checks all checkpoints, not only the newest. Throws gs::error if a
/// directory cannot be read or has no checkpoint.
inline chosen_checkpoints choose_checkpoints(const std::vector<std::string>& given, bool every) {
  std::vector<std::string> single;
  std::map<gs::detail::step_name, std::vector<std::string>> finished, unfinished;
  for (const std::string& path : given) {
    const auto in = gs::detail::directory::at(path);
    const std::string begin = path + (path.ends_with('/') ? "" : "/");
    const gs::detail::found_steps found = gs::detail::find_steps(in);
    for (const auto& s : found.finished) finished[s].push_back(begin + s.text());
    for (const auto& s : found.unfinished) unfinished[s].push_back(begin + s.text());
    if (!found.finished.empty()) continue;
    if (!in.has_file(gs::detail::manifest_file)) throw gs::error(path + ": has no checkpoint: there is no " + gs::detail::manifest_file);
    single.push_back(path);
  }
  chosen_checkpoints chosen;
  if (!single.empty()) chosen.all.push_back(single);
  for (auto it = finished.rbegin(); it != finished.rend() && (every || it == finished.rbegin()); ++it) chosen.all.push_back(it->second);
  if (finished.size() > 1 && !every) chosen.notes.push_back("older checkpoints were not checked: --all checks them");
  for (const auto& [step, paths] : unfinished)
    for (const std::string& path : paths)
      chosen.notes.push_back(path + ": has no " + gs::detail::manifest_file + ": it is being saved, or was never finished");
  return chosen;
}

/// The paths of the logs in these directories that are sealed by the heads.
inline std::vector<std::string> logs_beside(const std::vector<std::string>& directories, const std::vector<gs::event_log_head>& seals) {
  std::vector<std::string> logs;
  for (const std::string& path : directories) {
    const auto in = gs::detail::directory::at(path);
    for (const gs::event_log_head& seal : seals) {
      const std::string log = in.path_of(seal.file);
      const bool is_name = seal.file.find('/') == seal.file.npos;
      if (is_name && in.has_file(seal.file) && std::ranges::find(logs, log) == logs.end()) logs.push_back(log);
    }
  }
  return logs;
}

}  // namespace verify
