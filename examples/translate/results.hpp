// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/baselines.hpp"
#include "data/metrics.hpp"
#include "data/random.hpp"
#include "data/splits.hpp"
#include "trainer.hpp"
#include "translator.hpp"

#include <gshard/all_operations.hpp>
#include <gshard/report.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translate {

/// At most `most` pairs from the whole list, selected by a fixed shuffle.
inline std::vector<pair> sample(std::vector<pair> pairs, std::size_t most) {
  stable_shuffle(std::span(pairs), 17);
  pairs.resize(std::min(pairs.size(), most));
  return pairs;
}
inline std::vector<std::string> sources(std::span<const pair> pairs) {
  std::vector<std::string> texts;
  for (const pair& p : pairs) texts.push_back(p.source);
  return texts;
}

/// The approximate number of terminal columns of UTF-8 text: code points without combining marks, wide ones count twice.
inline std::size_t columns(std::string_view text) {
  std::size_t n = 0;
  for (char32_t c : code_points(text)) {
    const bool mark = (c >= 0x300 && c < 0x370) || (c >= 0x93A && c <= 0x94D) || c == 0x200C || c == 0x200D;
    const bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) || (c >= 0xAC00 && c < 0xD7A4) ||
                      (c >= 0xFF00 && c < 0xFF61);
    n += mark ? 0 : wide ? 2 : 1;
  }
  return n;
}
/// The text as a cell of a table: padded to this width, with at least one space.
inline std::string fill(std::string text, std::size_t width) {
  const std::size_t used = columns(text);
  return text + std::string(used < width ? width - used : 1, ' ');
}

/// Compares the model with copying and the nearest neighbor, on clean held-out pairs; for the first set also by script.
class scoreboard {
 public:
  explicit scoreboard(std::span<const pair> train) : neighbor_(train) {}

  void add(const std::string& name, std::span<const pair> pairs, std::span<const std::string> ours) {
    std::vector<std::string> copied, nearest;
    for (const pair& p : pairs) {
      copied.push_back(copy_source(p.source));
      nearest.push_back(neighbor_.translate(p.source));
    }
    const bool first = lines_.empty();
    if (first) heading("held-out pairs");
    line(name, evaluate(ours, pairs), evaluate(copied, pairs), evaluate(nearest, pairs));
    if (!first) return;
    scripts_ = "\n";
    const auto a = evaluate_by(ours, pairs, &pair::script), b = evaluate_by(copied, pairs, &pair::script),
               c = evaluate_by(nearest, pairs, &pair::script);
    std::vector<std::string> order;
    for (const auto& [script, s] : a) order.push_back(script);
    std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) { return a.at(x).count > a.at(y).count; });
    std::swap(lines_, scripts_);
    heading("of these, by script");
    for (const std::string& script : order) line("  " + script, a.at(script), b.at(script), c.at(script));
    std::swap(lines_, scripts_);
  }
  std::string text() const { return lines_ + scripts_; }

 private:
  nearest_neighbor neighbor_;
  std::string lines_, scripts_;

  void heading(const std::string& what) {
    lines_ += fill(what, 34) + "pairs    exact  chrF    copy: exact  chrF    neighbor: exact  chrF\n";
  }
  void line(const std::string& name, const score& model, const score& copied, const score& nearest) {
    char text[160];
    std::snprintf(text, sizeof text, "%5lld    %.3f  %4.1f          %.3f  %4.1f               %.3f  %4.1f\n",
                  static_cast<long long>(model.count), model.exact, model.chrf, copied.exact, copied.chrf, nearest.exact, nearest.chrf);
    lines_ += fill(name, 34) + text;
  }
};

/// One pair of each script, the most frequent scripts first.
inline std::vector<pair> showcase(std::span<const pair> pairs, std::size_t most) {
  std::map<std::string, std::size_t> count;
  for (const pair& p : pairs) ++count[p.script];
  std::vector<pair> chosen;
  std::set<std::string> seen;
  for (const pair& p : pairs)
    if (seen.insert(p.script).second) chosen.push_back(p);
  std::stable_sort(chosen.begin(), chosen.end(), [&](const pair& x, const pair& y) { return count[x.script] > count[y.script]; });
  for (const pair& p : pairs)  // there are fewer scripts than lines: add further pairs
    if (chosen.size() < most && std::find(chosen.begin(), chosen.end(), p) == chosen.end()) chosen.push_back(p);
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

/// The collectives of a training step with the bytes that a device receives, and the bytes received in the whole training.
inline std::string communication_report(const trainer& t) {
  const gs::executor& e = t.executor(0);
  std::string s = "a training step (" + std::to_string(e.plan().steps.size()) +
                  " steps of the plan), per device at the smallest batch shape:\n" + gs::describe_communication(e.plan(), e.sizes()) +
                  "the whole training:\n";
  for (const gs::op_ref kind : gs::all_operations) {
    const auto c = t.communication(kind);
    if (c.calls > 0)
      s += "  " + fill(std::string(kind->name), 18) + fill(std::to_string(c.calls) + " calls,", 16) + "planned " +
           fill(gs::describe_bytes(c.planned) + ",", 12) + "received " + gs::describe_bytes(c.received) + "\n";
  }
  return s;
}

}  // namespace translate
