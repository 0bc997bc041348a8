// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks an event log: its chain of hashes, and the heads of it that were sealed elsewhere.

#include <gshard/io/file.hpp>
#include <gshard/survive/files/sha256.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The state of an event log at one moment. Kept in another place, such as the manifest of a checkpoint, it seals all records up to then.
struct event_log_head {
  std::string file;           ///< name without folders: "events-00003.jsonl"
  std::uint64_t records = 0;
  std::string hash;           ///< of the last of these records, 64 digits
  friend bool operator==(const event_log_head&, const event_log_head&) = default;
};

/// The result of a check of an event log.
struct event_log_finding {
  bool unaltered = true;
  std::uint64_t records = 0;  ///< valid records: all, or all before the first altered one
  std::string hash;           ///< of the last valid record; zeros if there is none
  /// The first record that was altered, removed, moved or added, from 1. If it is not known exactly, it is in this range.
  std::uint64_t first = 0, last = 0;
  bool is_cut = false;        ///< the last line has no end, as if its writer was killed; there is no other fault
  std::string rest;           ///< the incomplete line, if it is no record
  std::string told;           ///< the report of an earlier alteration by an event "log_altered" in the log, or empty
  std::string text;           ///< one sentence
};

namespace detail {

inline const std::string no_hash(sha256::hex_digits, '0');
inline constexpr std::string_view continued = "continued";      // the event after a line that was cut off
inline constexpr std::string_view log_altered = "log_altered";  // the event of a load that has found another log than the sealed one

/// A line of an event log, without its end. `holds`: it has a number, and the hash of its text.
struct event_line {
  bool holds = false;
  std::uint64_t number = 0;
  std::string previous, hash, event;
  std::string cut;      // the hash of the line before this one, if that is no record
  std::string finding;  // of an event log_altered

  event_line() = default;
  explicit event_line(std::string_view line) {
    constexpr std::string_view name = ",\"hash\":\"";
    constexpr std::size_t tail = name.size() + sha256::hex_digits + 2;
    if (line.size() < tail || line.substr(line.size() - tail, name.size()) != name || !line.ends_with("\"}")) return;
    hash = line.substr(line.size() - tail + name.size(), sha256::hex_digits);
    if (sha256_of(line.substr(0, line.size() - tail)) != hash) return;
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("n") || !record["n"].is_number_unsigned()) return;
    const auto text = [](const nlohmann::json& in, const char* key) {
      return in.is_object() && in.contains(key) && in[key].is_string() ? in[key].get<std::string>() : std::string();
    };
    number = record["n"].get<std::uint64_t>();
    previous = text(record, "previous");
    event = text(record, "event");
    if (event == continued && record.contains("fields")) cut = text(record["fields"], "cut_sha256");
    if (event == log_altered && record.contains("fields")) finding = text(record["fields"], "finding");
    holds = true;
  }
  bool follows(std::uint64_t records, std::string_view last) const { return holds && number == records + 1 && previous == last; }
};

inline std::string records_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? "record " + std::to_string(first) : "records " + std::to_string(first) + " to " + std::to_string(last);
}

inline std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Walks over the lines of a log and stops at the first fault.
class event_log_walk {
 public:
  event_log_walk(std::string file, std::string_view log, std::span<const event_log_head> seals) : file_(std::move(file)) {
    for (const event_log_head& s : seals)
      if (s.file == file_ && s.records > 0) seals_.push_back(s);
    std::sort(seals_.begin(), seals_.end(), [](const auto& a, const auto& b) { return a.records < b.records; });
    found.hash = no_hash;
    while (!log.empty() && found.unaltered) {
      const std::size_t end = log.find('\n');
      const std::string_view line = log.substr(0, end);
      log.remove_prefix(end == log.npos ? log.size() : end + 1);
      check(line, log.substr(0, std::min(log.find('\n'), log.size())), end == log.npos);
    }
    if (found.unaltered) check_end();
  }

  event_log_finding found;

 private:
  std::string file_;
  std::vector<event_log_head> seals_;  // of this file, the shortest first
  std::uint64_t sealed_ = 0;           // records up to the last seal that holds

  std::uint64_t most_sealed() const { return seals_.empty() ? 0 : seals_.back().records; }

  void fault(std::uint64_t first, std::uint64_t last, const std::string& what) {
    found.unaltered = false;
    found.first = first;
    found.last = last;
    found.records = std::min(found.records, first - 1);
    found.text = file_ + ": " + what;
  }
  void check(std::string_view text, std::string_view next_text, bool without_end) {
    const std::uint64_t n = found.records + 1;
    const std::string record = "record " + std::to_string(n), other = "record ";
    const event_line line(text);
    found.is_cut = without_end;
    if (!line.holds) {
      const event_line next(next_text);
      if (next.follows(found.records, found.hash) && next.event == continued && next.cut == sha256_of(text)) return;
      found.is_cut = without_end && most_sealed() < n;
      found.rest = without_end ? text : std::string_view();
      return fault(n, n, record + (without_end ? " is incomplete: it was altered, or its writer ended while it wrote it"
                                               : " is altered or added: its hash is not that of its text"));
    }
    if (line.number == n - 1 && n > 1) {
      const std::uint64_t first = sealed_ == n - 1 ? n : n - 1;
      return fault(first, n, other + std::to_string(n - 1) + " is there twice: one was added");
    }
    if (line.number != n)
      return fault(n, n, record + (line.number > n ? " is missing: " : " is added or moved: ") + other + std::to_string(line.number) +
                             " is in its place");
    if (line.previous != found.hash) {
      // Both records have the hash of their text. If this one is sealed, or the next one follows it, then the one before was rewritten.
      if (sealed_ == n - 1) return fault(n, n, record + " does not follow the sealed one before it: it was rewritten or added");
      if (event_line(next_text).follows(n, line.hash) ||
          std::any_of(seals_.begin(), seals_.end(), [&](const auto& s) { return s.records == n && s.hash == line.hash; }))
        return fault(n - 1, n - 1, other + std::to_string(n - 1) + " was rewritten: the record after it does not follow it");
      return fault(n - 1, n, record + " does not follow the one before it: one of the two was rewritten");
    }
    found.records = n;
    found.hash = line.hash;
    if (line.event == log_altered && found.told.empty()) found.told = record + " tells that the log was altered before it: " + line.finding;
    for (const event_log_head& s : seals_)
      if (s.records == n && s.hash != line.hash) {
        const std::string since = sealed_ + 1 == n ? "" : "; those from record " + std::to_string(sealed_ + 1) + " on may be, too";
        return fault(sealed_ + 1, n, record + " is not the one that was sealed: the log was rewritten" + since);
      } else if (s.records == n) {
        sealed_ = n;
      }
  }
  void check_end() {
    const std::uint64_t n = found.records, most = most_sealed();
    if (most > n) {
      const std::string since = sealed_ < n ? "; those from record " + std::to_string(sealed_ + 1) + " on may have been rewritten" : "";
      return fault(sealed_ + 1, most, records_text(n + 1, most) + (n + 1 == most ? " is" : " are") + " missing at the end: a seal has " +
                                          std::to_string(most) + " records" + since);
    }
    found.text = file_ + ": " + std::to_string(n) + " records, unaltered; " +
                 (most == 0 ? "no seal was given, so that records may be missing at the end"
                            : "those up to record " + std::to_string(most) + " are sealed");
  }
};

/// The content of a regular file. Throws `gshard::error` if it cannot be read.
inline std::string whole_file(const std::string& path) {
  const input_file file(path);
  std::string text(std::size_t(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace detail

/// Checks the text of a log. Every record must have the hash of its own text and of the record before it. The heads in `seals` for this
/// file must match. Names the first record that was altered, removed, moved or added.
///
/// Without seals, two edits are not found: records removed at the end, and records rewritten together with all later ones. Before the last
/// seal both are found. A rewritten record is then reported as a range between two seals.
inline event_log_finding check_event_log_text(const std::string& file, std::string_view log, std::span<const event_log_head> seals = {}) {
  return detail::event_log_walk(file, log, seals).found;
}

/// Checks the log in a file. Throws `gshard::error` if it cannot be read. @see event_log
inline event_log_finding check_event_log(const std::string& path, std::span<const event_log_head> seals = {}) {
  return check_event_log_text(detail::base_name(path), detail::whole_file(path), seals);
}

}}  // namespace gshard::v0
