// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/log/event_log.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

using lines = std::vector<std::string>;  // lines of a log, without line ends

std::string joined(const lines& all) {
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

lines split(const std::string& text) {
  lines all;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) all.push_back(text.substr(at, text.find('\n', at) - at));
  return all;
}

/// A log of n records.
lines log_of(std::uint64_t n) {
  const scratch folder;
  gs::event_log log(folder / "events.jsonl");
  for (std::uint64_t i = 0; i < n; ++i) log.write(i % 5 == 0 ? "checkpoint" : "straggler", {{"step", 7 * i}, {"text", "rank \"3\"\n"}});
  return split(content_of(folder / "events.jsonl"));
}

/// A record with changed text and a correct hash of its own.
std::string rehashed(std::string line, const std::string& previous = {}) {
  constexpr std::size_t tail = 9 + 64 + 2, link = 64 + 1;
  line.resize(line.size() - tail);
  if (!previous.empty()) line.replace(line.size() - link, 64, previous);
  return line + ",\"hash\":\"" + gs::sha256_of(line) + "\"}";
}
std::string hash_in(const std::string& line) { return line.substr(line.size() - 66, 64); }

/// Recomputes the chain from line `begin` on, as anyone can who may write the file.
void rechain(lines& log, std::size_t begin) {
  for (std::size_t i = begin; i < log.size(); ++i) {
    std::string& line = log[i];
    line = "{\"n\":" + std::to_string(i + 1) + line.substr(line.find(','));
    line = rehashed(line, i == 0 ? std::string(64, '0') : hash_in(log[i - 1]));
  }
}

gs::event_log_head head_of(const lines& log, std::uint64_t records) {
  return {"events.jsonl", records, hash_in(log[std::size_t(records) - 1])};
}

}  // namespace

TEST_CASE("event log: 1,000 random edits behind a seal are found, and the first altered record is named") {
  const lines whole = log_of(40);
  const std::string unaltered = joined(whole);
  const std::array<gs::event_log_head, 3> seals{head_of(whole, 12), head_of(whole, 25), head_of(whole, 40)};
  REQUIRE(gs::check_event_log_text("events.jsonl", unaltered, seals).unaltered);
  std::mt19937 random(17);
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  std::array<int, 8> kinds{};
  int found = 0, named = 0;
  int edits = 0;
  while (edits < 1000) {
    lines log = whole;
    std::string text;
    std::size_t at = below(log.size());  // the first altered line
    const std::size_t kind = below(kinds.size());
    switch (kind) {
      case 0: {  // a changed byte anywhere, also a line end
        text = joined(log);
        const std::size_t byte = below(text.size());
        text[byte] = char(text[byte] ^ char(1 + below(255)));
        at = std::size_t(std::count(unaltered.begin(), unaltered.begin() + std::ptrdiff_t(byte), '\n'));
        break;
      }
      case 1: log.erase(log.begin() + std::ptrdiff_t(at)); break;
      case 2: {
        const std::size_t other = (at + 1 + below(log.size() - 1)) % log.size();
        std::swap(log[at], log[other]);
        at = std::min(at, other);
        break;
      }
      case 3: log.insert(log.begin() + std::ptrdiff_t(at), log[below(log.size())]); break;
      case 4: {  // a forged record that follows the previous one correctly
        std::string line = whole[at];
        line.replace(line.find("\"step\":") + 7, 1, "8");
        log.insert(log.begin() + std::ptrdiff_t(at), rehashed(line));
        if (hash_in(log[at]) == hash_in(whole[at])) continue;  // it was an 8
        break;
      }
      case 5: log.resize(at); break;
      case 6: {  // a record with changed text and its right hash
        log[at].replace(log[at].find("\"time\":\"") + 8, 4, "1999");
        log[at] = rehashed(log[at]);
        break;
      }
      default: {  // the same, and the whole chain after it
        if (below(2) == 0 && at + 1 < log.size()) log.erase(log.begin() + std::ptrdiff_t(at));
        else log[at].replace(log[at].find("\"time\":\"") + 8, 4, "1999");
        rechain(log, at);
      }
    }
    if (text.empty()) text = joined(log);
    if (text == unaltered) continue;  // a copy of the same line was inserted, or two equal lines swapped
    ++edits;
    ++kinds[kind];
    const gs::event_log_finding f = gs::check_event_log_text("events.jsonl", text, seals);
    found += !f.unaltered;
    const std::uint64_t expected = at + 1;
    const bool is_named = f.first <= expected && expected <= f.last;
    CHECK_MESSAGE(is_named, "edit ", edits, " of kind ", kind, " of record ", expected, ": ", f.text);
    named += is_named;
    // If only a seal shows it, the record is between two seals. If two valid records exclude each other, either may be wrong.
    const bool is_sealed = expected == 12 || expected == 25 || expected == 40;
    const bool only_by_seal = kind == 5 || kind == 7 || (kind == 1 && expected == 40) || (is_sealed && (kind == 4 || kind == 6));
    if (!only_by_seal) CHECK_MESSAGE(f.last - f.first <= (kind == 3 || kind == 4 ? 1 : 0), "edit ", edits, " of kind ", kind, ": ", f.text);
    CHECK(f.records < expected);
  }
  for (const int n : kinds) CHECK(n > 60);
  CHECK(found == edits);
  CHECK(named == edits);
  MESSAGE(found, " of ", edits, " edits were found");
}

TEST_CASE("event log: what only a seal can find") {
  const lines whole = log_of(20);
  lines log = whole;
  log.resize(15);
  CHECK(gs::check_event_log_text("events.jsonl", joined(log)).unaltered);
  const std::array<gs::event_log_head, 1> early{head_of(whole, 10)}, late{head_of(whole, 20)};
  CHECK(gs::check_event_log_text("events.jsonl", joined(log), early).unaltered);
  const gs::event_log_finding cut = gs::check_event_log_text("events.jsonl", joined(log), late);
  CHECK(cut.text == "events.jsonl: records 16 to 20 are missing at the end: a seal has 20 records; "
                    "those from record 1 on may have been rewritten");
  CHECK(cut.first == 1);
  CHECK(cut.last == 20);

  log = whole;
  log[11].replace(log[11].find("straggler"), 9, "abort");
  rechain(log, 11);
  CHECK(gs::check_event_log_text("events.jsonl", joined(log)).unaltered);
  CHECK(gs::check_event_log_text("events.jsonl", joined(log), early).unaltered);  // after the seal
  CHECK_FALSE(gs::check_event_log_text("events.jsonl", joined(log), late).unaltered);
  CHECK(gs::check_event_log_text("other.jsonl", joined(log), late).unaltered);  // a seal of another file
}

TEST_CASE("event log: sentences") {
  const lines whole = log_of(5);
  const auto text_of = [&](lines log) { return gs::check_event_log_text("e", joined(log)).text; };
  CHECK(text_of(whole) == "e: 5 records, unaltered; no seal was given, so that records may be missing at the end");
  lines log = whole;
  log[2][20] ^= 1;
  CHECK(text_of(log) == "e: record 3 is altered or added: its hash is not that of its text");
  log = whole;
  log.erase(log.begin() + 2);
  CHECK(text_of(log) == "e: record 3 is missing: record 4 is in its place");
  log = whole;
  log.insert(log.begin() + 3, log[1]);
  CHECK(text_of(log) == "e: record 4 is added or moved: record 2 is in its place");
  log = whole;
  log.insert(log.begin() + 3, log[2]);
  CHECK(text_of(log) == "e: record 3 is there twice: one was added");
  log = whole;
  log[2] = rehashed(log[2].replace(log[2].find("time"), 4, "date"));
  CHECK(text_of(log) == "e: record 3 was rewritten: the record after it does not follow it");
  CHECK(gs::check_event_log_text("e", joined(whole).substr(0, 900)).text.find(
            "is incomplete: it was altered, or its writer ended while it wrote it") != std::string::npos);
  CHECK(gs::check_event_log_text("e", "").unaltered);
  CHECK(gs::check_event_log_text("e", "\n").first == 1);
  CHECK(gs::check_event_log_text("e", "[]\n{}\n").first == 1);
}
