// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/checkpoint/checkpoint_check.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include <string>
#include <vector>

namespace verify {

namespace gs = gshard;

/// Adds the heads of event logs that a manifest seals. Throws gs::error if the file cannot be read, is no manifest, was altered, or, with a
/// key, is not signed by it. The signature is the file manifest.sig in the same directory.
inline void add_seals(std::vector<gs::event_log_head>& seals, const std::string& manifest, const gs::signing_key* key = nullptr) {
  const std::string text = gs::detail::whole_file(manifest);
  if (key != nullptr) {
    const auto in = gs::detail::directory::at(gs::detail::directory_of(manifest));
    if (!in.has(gs::detail::signature_file))
      throw gs::error(manifest + ": is not signed: there is no " + gs::detail::signature_file + " in its directory");
    if (!key->accepts(text, in.text_of(gs::detail::signature_file, 1000)))
      throw gs::error(manifest + ": its " + gs::detail::signature_file + " is not a signature by this key");
  }
  gs::manifest m;
  const gs::process_error problem = gs::detail::problem_of([&] { m = gs::detail::parse_manifest(text); });
  if (!problem.empty()) throw gs::error(manifest + ": " + problem.text);
  seals.insert(seals.end(), m.event_logs.begin(), m.event_logs.end());
}

/// gshard-verify's sentence about one log, and whether the log is unaltered.
struct verdict {
  bool holds = false;
  std::string text;
};

inline verdict check(const std::string& log, const std::vector<gs::event_log_head>& seals) {
  const gs::event_log_finding f = gs::check_event_log(log, seals);
  return f.unaltered && !f.told.empty() ? verdict{false, gs::detail::base_name(log) + ": " + f.told} : verdict{f.unaltered, f.text};
}

/// The names of sealed logs that are missing.
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
