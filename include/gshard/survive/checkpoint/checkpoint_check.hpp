// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks a checkpoint without the program that saved it: manifest, signature, and every byte of the parts.

#include <gshard/exec/process/error.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/checkpoint/step_directories.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The result of a check of a checkpoint.
struct checkpoint_finding {
  std::vector<std::string> faults;         ///< One sentence each. Empty: the checkpoint is intact.
  std::string text;                        ///< One sentence that names the checkpoint.
  std::vector<event_log_head> event_logs;  ///< The heads that its manifest seals.
};

namespace detail {

/// The text of a manifest. With a key, throws `gshard::error` unless the key has signed it.
inline std::string signed_text(const directory& in, const signing_key* key) {
  std::string text = in.text_of(manifest_file, manifest::most_bytes);
  if (key == nullptr) return text;
  if (!in.has(signature_file)) throw error(in.path_of(manifest_file) + ": is not signed: there is no " + signature_file);
  if (!key->accepts(text, in.text_of(signature_file, 1000)))
    throw error(in.path_of(signature_file) + ": is not the signature of the manifest by this key");
  return text;
}
/// Reads a manifest and checks its SHA-256 and, with a key, its signature. Throws `gshard::error` with the path.
inline manifest checked_manifest(const directory& in, const signing_key* key) {
  const std::string text = signed_text(in, key);
  manifest m;
  const process_error problem = problem_of([&] { m = parse_manifest(text); });
  if (!problem.empty()) throw error(in.path_of(manifest_file) + ": " + problem.text);
  return m;
}

/// Reads a part and verifies all its bytes. Returns its elements by tensor. Throws `gshard::error` with the path.
inline std::vector<std::int64_t> elements_of_part(const directory& in, std::size_t number, const manifest& m,
                                                  const std::map<std::string, std::size_t, std::less<>>& by_name) {
  const std::string name = part_name(number), path = in.path_of(name);
  const std::string header = read_part_header(in, name, m.parts[number]);
  std::vector<stored_block> blocks;
  const process_error problem = problem_of([&] { blocks = blocks_of_part(header, m.parts[number].bytes, m.tensors, by_name); });
  if (!problem.empty()) throw error(path + ": " + problem.text);
  const auto [file, size] = in.read(name);
  std::vector<std::int64_t> elements(m.tensors.size(), 0);
  std::vector<std::byte> data;
  for (const stored_block& b : blocks) {
    data.resize(std::size_t(b.bytes));
    read_block(file, path, b, data);
    elements[b.tensor] += b.elements();
  }
  return elements;
}

}  // namespace detail

/// Checks the checkpoint in these directories. Each has all parts or, for a run with `per_host`, the parts of a host. Every manifest must
/// have its SHA-256 and be the same; with a key, it must also be signed by it. Every part must be in one of the directories. All parts in
/// them must have their size, and the SHA-256 of their headers and of all blocks. Reads all parts. Returns faults and does not throw for
/// them.
inline checkpoint_finding check_checkpoint(std::span<const std::string> directories, const signing_key* key = nullptr) {
  using namespace detail;
  checkpoint_finding found;
  const auto fault_of = [&](auto f) {
    if (const process_error problem = problem_of(f); !problem.empty()) found.faults.push_back(problem.text);
  };
  std::optional<manifest> m;
  std::vector<directory> open;
  for (const std::string& path : directories)
    fault_of([&] {
      open.push_back(directory::at(path));
      const manifest here = checked_manifest(open.back(), key);
      if (m && *m != here) throw error(open.back().path_of(manifest_file) + ": is not the same as in " + open.front().path());
      m = here;
      const std::string name = base_name(path);
      if (const auto step = step_name::parse(name); step && step->step != here.step)
        throw error(open.back().path_of(manifest_file) + ": is that of step " + std::to_string(here.step));
    });
  const std::string name = directories.empty() ? "a checkpoint" : directories.front();
  if (m) {
    found.event_logs = m->event_logs;
    std::map<std::string, std::size_t, std::less<>> by_name;
    for (std::size_t t = 0; t < m->tensors.size(); ++t) by_name[m->tensors[t].name] = t;
    std::vector<std::int64_t> elements(m->tensors.size(), 0);
    std::int64_t bytes = 0;
    for (std::size_t p = 0; p < m->parts.size(); ++p) {
      bytes += m->parts[p].bytes;
      bool is_there = false, is_counted = false;
      for (const directory& in : open) {
        if (!in.has(part_name(p))) continue;
        is_there = true;
        fault_of([&] {
          const std::vector<std::int64_t> part = elements_of_part(in, p, *m, by_name);
          for (std::size_t t = 0; t < part.size() && !is_counted; ++t) elements[t] += part[t];
          is_counted = true;
        });
      }
      if (!is_there) found.faults.push_back(open.front().path_of(part_name(p)) + ": is missing");
    }
    for (std::size_t t = 0; t < elements.size() && found.faults.empty(); ++t)
      if (elements[t] * size_of(m->tensors[t].type) != m->tensors[t].bytes())
        found.faults.push_back(name + ": the parts have " + std::to_string(elements[t]) + " elements of " +
                               in_quotes(m->tensors[t].name) + ", which has " +
                               std::to_string(m->tensors[t].bytes() / size_of(m->tensors[t].type)));
    if (found.faults.empty())
      found.text = name + ": step " + std::to_string(m->step) + ", " + std::to_string(m->parts.size()) +
                   (m->parts.size() == 1 ? " part, " : " parts, ") + std::to_string(bytes) + " bytes, all as they were written; " +
                   (key != nullptr ? "signed by this key" : "no key was given, so that a signature was not checked");
  }
  if (found.text.empty())
    found.text = name + ": " + std::to_string(found.faults.size()) + (found.faults.size() == 1 ? " fault" : " faults");
  return found;
}

}}  // namespace gshard::v0
