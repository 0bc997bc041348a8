// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../requests.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>

// Situations of other partitioners' test suites, in our shapes and letters: what they send, and what we may send at most.
namespace conformance {

namespace pl = planning;
namespace gs = gshard;

/// Collectives, and the bytes that one device receives in them.
struct traffic {
  int steps = 0;
  std::int64_t bytes = 0;
  friend constexpr traffic operator+(traffic a, traffic b) { return {a.steps + b.steps, a.bytes + b.bytes}; }
  bool operator==(const traffic&) const = default;
  /// With what starting costs, in the planner's currency: a step more may pay, or a byte.
  constexpr std::int64_t cost() const { return bytes + steps * gs::start_bytes; }
};

/// Bytes of a block of f32.
template <class... Extents>
constexpr std::int64_t f32(Extents... extents) {
  return (std::int64_t(4) * ... * extents);
}

inline constexpr traffic nothing{};
/// `result`: bytes of the gathered block, over n devices.
constexpr traffic all_gather(std::int64_t result, int n) { return {1, result - result / n}; }
/// `block`: bytes that every device holds.
constexpr traffic all_reduce(std::int64_t block, int n) { return {1, 2 * (block * (n - 1) / n)}; }
constexpr traffic reduce_scatter(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic all_to_all(std::int64_t block, int n) { return {1, block * (n - 1) / n}; }
constexpr traffic permute(std::int64_t block) { return {1, block}; }
/// A loop that passes a block round n devices.
constexpr traffic ring(std::int64_t block, int n) { return {n - 1, block * (n - 1)}; }

struct row {
  std::string_view source, command;
  traffic theirs;
  /// How the result lies; if empty, as --to or --out says.
  std::string_view result = {};
  /// Why ours is worse today, or empty. A row that has caught up must lose it.
  std::string_view gap = {};
};

namespace detail {

struct outcome {
  std::string refused, result, expected, kinds;
  traffic ours;

  bool keeps_up(const row& r) const {
    return refused.empty() && result == expected && ours.cost() <= r.theirs.cost();
  }
};

inline std::string expected_result(const row& r, const pl::request& asked) {
  return r.result.empty() ? pl::text_of(asked.output.value(), asked.mesh) : std::string(r.result);
}

inline outcome outcome_of(const pl::plan_facts& f) {
  outcome o;
  o.result = pl::text_of(f.outputs[0].whole, f.mesh);
  for (const pl::step_facts& s : f.steps) {
    o.kinds += (o.kinds.empty() ? "" : " ") + std::string(gs::name(s.kind));
    o.ours = o.ours + traffic{s.groups > 0 ? 1 : 0, s.bytes};
  }
  return o;
}

/// Few enough devices and operations that a simulation takes no time.
inline bool is_cheap(const pl::plan_facts& f) {
  const int devices = gs::device_count(pl::extents_of(f.mesh));
  return devices <= 64 && f.flops * devices < 1'000'000'000;
}

/// One line of the table that is printed if CONFORMANCE_TABLE is set.
inline void print(const row& r, const outcome& o) {
  if (std::getenv("CONFORMANCE_TABLE") == nullptr) return;
  const bool trade = o.ours.steps > r.theirs.steps || o.ours.bytes > r.theirs.bytes;
  const char* verdict = !o.keeps_up(r) ? "gap" : trade ? "trade" : o.ours == r.theirs ? "same" : "less";
  std::cout << verdict << " | " << r.source << " | " << r.command << " | theirs " << r.theirs.steps << '/' << r.theirs.bytes << " | ours "
            << o.ours.steps << '/' << o.ours.bytes << " | " << o.kinds << " -> " << o.result << ' ' << o.refused << '\n';
}

inline void check(const row& r) {
  CAPTURE(r.source);
  CAPTURE(r.command);
  outcome o;
  try {
    const pl::request request = requests::request_of(std::string(r.command));
    o.expected = expected_result(r, request);
    const pl::planned p = pl::make_plan(request);
    const pl::plan_facts f = pl::facts_of(p);
    o = outcome_of(f);
    if (is_cheap(f)) CHECK(requests::right(request));
  } catch (const pl::refusal& e) {
    o.refused = e.what();
  }
  print(r, o);
  CAPTURE(o.kinds);
  if (!r.gap.empty()) {
    CHECK_MESSAGE(!o.keeps_up(r), "no gap any more");
    return;
  }
  CHECK(o.refused == "");
  CHECK(o.result == o.expected);
  CAPTURE(o.ours.steps);
  CAPTURE(r.theirs.steps);
  CAPTURE(o.ours.bytes);
  CAPTURE(r.theirs.bytes);
  CHECK(o.ours.cost() <= r.theirs.cost());
}

}  // namespace detail

inline void check(std::initializer_list<row> rows) {
  for (const row& r : rows) detail::check(r);
}

}  // namespace conformance
