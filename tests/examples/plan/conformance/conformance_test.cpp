// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.hpp"

#if __has_include(<CLI/CLI.hpp>)
#include "plan/check.hpp"
#include "plan/command_line.hpp"
#include "plan/facts.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace conformance {

namespace {

namespace pl = planning;
namespace gs = gshard;

struct outcome {
  std::string refused, result, kinds;
  traffic ours;

  bool keeps_up(const row& r) const {
    return refused.empty() && result == r.result && ours.cost() <= r.theirs.cost();
  }
};

outcome outcome_of(const pl::plan_facts& f) {
  outcome o;
  for (const pl::tensor_facts& t : f.outputs) {
    const std::string text = pl::text_of(t.whole, f.mesh);
    if (o.result != text) o.result += (o.result.empty() ? "" : " ") + text;
  }
  for (const pl::step_facts& s : f.steps) {
    o.kinds += (o.kinds.empty() ? "" : " ") + s.called;
    o.ours = o.ours + traffic{s.bytes > 0 ? 1 : 0, s.bytes};  // a step without bytes has no start
  }
  return o;
}

/// True for so few devices and operations that the simulation is fast.
bool is_cheap(const pl::plan_facts& f) {
  const int devices = gs::device_count(pl::extents_of(f.mesh));
  return devices <= 64 && f.flops * devices < 1'000'000'000;
}

pl::request request_of(std::string_view command) {
  static pl::command_parser parser;
  std::istringstream in{std::string(command)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return parser.parse(words).make();
}

/// One line of the table that is printed if CONFORMANCE_TABLE is set.
void print(const row& r, const outcome& o) {
  if (std::getenv("CONFORMANCE_TABLE") == nullptr) return;
  const bool trade = o.ours.steps > r.theirs.steps || o.ours.bytes > r.theirs.bytes;
  const char* verdict = !o.keeps_up(r) ? "gap" : trade ? "trade" : o.ours == r.theirs ? "same" : "less";
  std::cout << verdict << " | " << r.source << " | " << r.command << " | theirs " << r.theirs.steps << '/' << r.theirs.bytes << " | ours "
            << o.ours.steps << '/' << o.ours.bytes << " | " << o.kinds << " -> " << o.result << ' ' << o.refused << '\n';
}

void check(row r) {
  CAPTURE(r.source);
  CAPTURE(r.command);
  outcome o;
  std::string expected;
  try {
    const pl::request request = request_of(r.command);
    if (r.result.empty() && request.output) r.result = expected = pl::text_of(*request.output, request.mesh);
    const pl::planned p = pl::make_plan(request);
    const pl::plan_facts f = pl::facts_of(p);
    o = outcome_of(f);
    if (is_cheap(f)) CHECK(pl::compare(request, p).equal());
  } catch (const std::exception& e) {
    o.refused = e.what();
  }
  print(r, o);
  CAPTURE(o.kinds);
  if (!r.gap.empty()) {
    CHECK_MESSAGE(!o.keeps_up(r), "no gap any more");
    return;
  }
  CHECK(o.refused == "");
  CHECK(o.result == r.result);
  CAPTURE(o.ours.steps);
  CAPTURE(r.theirs.steps);
  CAPTURE(o.ours.bytes);
  CAPTURE(r.theirs.bytes);
  CHECK(o.ours.cost() <= r.theirs.cost());
}

}  // namespace

void check(std::initializer_list<row> rows) {
  for (const row& r : rows) check(r);
}

}  // namespace conformance

TEST_CASE("conformance: a row is a command line") {
  conformance::check({{"", "reduce --kind max --mesh x=2 --in 8@x,6 --dims 1", conformance::nothing, "8@x"}});
}

#else

void conformance::check(std::initializer_list<row>) { MESSAGE("without CLI11 no command line is read"); }

TEST_CASE("conformance: needs CLI11") {}

#endif
