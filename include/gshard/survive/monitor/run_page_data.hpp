// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The history of a run as one JSON document for its page: curves have at most some hundred points, for any number of steps.

#include <gshard/survive/monitor/run_history.hpp>
#include <gshard/survive/monitor/run_summary.hpp>
#include <gshard/survive/monitor/straggler.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A number with four digits, which a page can show; null if it is not finite.
inline nlohmann::ordered_json rounded(double x) {
  if (!std::isfinite(x)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return std::strtod(text, nullptr);
}

/// The division of steps into buckets, in the format of the page.
inline nlohmann::ordered_json json_of(const step_buckets& b) { return {{"first", b.first}, {"width", b.width}, {"count", b.count}}; }

class run_page_data {
 public:
  static constexpr std::size_t most_events = 2000;

  run_page_data(const run_history& history, std::string title) : run_(history), sums_(history.summary), title_(std::move(title)) {}

  nlohmann::ordered_json json() const {
    using json = nlohmann::ordered_json;
    json logs = json::array();
    for (const std::string& text : run_.logs) logs.push_back(text);
    json all{{"format", "gshard run history 1"}, {"title", title_}, {"parts", json::array()}, {"processes", run_.processes},
             {"first", sums_.first}, {"last", sums_.last}, {"repeated", run_.repeated}, {"skipped", skipped()}, {"unread", run_.unread},
             {"logs", std::move(logs)}, {"logs_hold", run_.logs_hold}, {"starts", starts()}, {"events", events()},
             {"event_count", run_.events.size()}};
    all["restarts"] = all["starts"].empty() ? 0 : all["starts"].size() - 1;
    all["checkpoints"] = checkpoints();
    all["stragglers"] = count("straggler");
    if (!sums_.empty()) {
      add_curves(all);
      add_processes(all);
      add_lists(all);
    }
    return all;
  }

 private:
  const run_history& run_;
  const run_summary& sums_;
  std::string title_;

  std::size_t count(std::string_view event) const {
    return std::size_t(std::count_if(run_.events.begin(), run_.events.end(), [&](const event_history& e) { return e.event == event; }));
  }
  std::size_t skipped() const { return run_.processes > 0 ? std::size_t(run_.skipped) : count("skipped"); }

  /// The number of checkpoints. Every live process writes an event for each checkpoint. For each name, the maximum over processes counts.
  std::size_t checkpoints() const {
    std::map<std::string, std::map<int, std::size_t>> by_name;
    for (const event_history& e : run_.events)
      if (e.event == "checkpoint") ++by_name[text_in(e.fields, "directory") + "/" + std::to_string(number_in(e.fields, "step"))][e.process];
    std::size_t sum = 0;
    for (const auto& [name, of] : by_name)
      sum += std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->second;
    return sum;
  }

  static nlohmann::ordered_json means(const std::vector<range_of>& all) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const range_of& r : all) list.push_back(rounded(r.mean()));
    return list;
  }
  static nlohmann::ordered_json curve(const std::vector<range_of>& all) {
    nlohmann::ordered_json low = nlohmann::ordered_json::array(), high = low, broken = low;
    for (std::size_t i = 0; i < all.size(); ++i) {
      low.push_back(all[i].n ? rounded(all[i].low) : nullptr);
      high.push_back(all[i].n ? rounded(all[i].high) : nullptr);
      if (all[i].others > 0) broken.push_back(i);
    }
    return {{"mean", means(all)}, {"low", std::move(low)}, {"high", std::move(high)}, {"not_finite", std::move(broken)}};
  }

  void add_curves(nlohmann::ordered_json& all) const {
    double begun = sums_.begun;
    if (!run_.starts.empty()) begun = std::min(begun, run_.starts.front().time);
    all["steps"] = sums_.steps();
    all["begun"] = begun;
    all["ended"] = sums_.ended;
    all["wall"] = sums_.ended - begun;
    all["mean_step"] = sums_.total / double(sums_.records);
    all["waiting_share"] = sums_.total > 0 ? sums_.waited / sums_.total : 0;
    all["bytes_per_step"] = sums_.bytes / double(sums_.records);
    all["buckets"] = json_of(sums_.points);
    all["time"] = nlohmann::ordered_json::array();
    for (const range_of& t : sums_.time) all["time"].push_back(t.n ? nlohmann::ordered_json(std::round(t.mean() - begun)) : nullptr);
    all["step_seconds"] = curve(sums_.seconds);
    all["step_waiting"] = means(sums_.waiting);
    const std::vector<range_of>& predicted = sums_.predicted;
    if (std::any_of(predicted.begin(), predicted.end(), [](const range_of& r) { return r.n > 0; })) all["predicted"] = means(predicted);
    all["values"] = all["received"] = nlohmann::ordered_json::array();
    for (const auto& [name, ranges] : sums_.values) {
      nlohmann::ordered_json c = curve(ranges);
      c["name"] = run_.names[name];
      all["values"].push_back(std::move(c));
    }
    for (const auto& [name, ranges] : sums_.received) {  // per step, mean over all processes; a step without bytes has no entry
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      double sum = 0;
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        sum += ranges[i].sum;
        list.push_back(sums_.seconds[i].n ? rounded(ranges[i].sum / double(sums_.seconds[i].n)) : nullptr);
      }
      all["received"].push_back({{"kind", run_.names[name]}, {"bytes", sum}, {"per_step", std::move(list)}});
    }
  }

  /// Rows of processes, or of groups of them, over time.
  void add_processes(nlohmann::ordered_json& all) const {
    std::map<int, std::string> hosts;
    for (const start_history& s : run_.starts) hosts[s.process] = s.host;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    double peak = 0;
    for (std::size_t r = 0; r < sums_.rows.size(); ++r) {
      const run_summary::row& row = sums_.rows[r];
      const std::size_t first = r * sums_.group;
      peak = std::max(peak, row.most_memory);
      nlohmann::ordered_json share = nlohmann::ordered_json::array();
      range_of whole, waits, in_steps;
      for (std::size_t i = 0; i < sums_.columns.count; ++i) {
        share.push_back(row.seconds[i].sum > 0 ? rounded(row.waiting[i].sum / row.seconds[i].sum) : nullptr);
        whole.add(row.compute[i]);
        waits.add(row.waiting[i]);
        in_steps.add(row.seconds[i]);
      }
      rows.push_back({{"process", first}, {"processes", std::min(sums_.group, run_.processes - first)}, {"host", hosts[int(first)]},
                      {"compute", means(row.compute)}, {"waiting", std::move(share)}, {"resident", means(row.resident)},
                      {"arena", means(row.arena)}, {"peak", row.most_memory}, {"mean_compute", whole.n ? whole.mean() : 0},
                      {"waiting_share", in_steps.sum > 0 ? waits.sum / in_steps.sum : 0}});
    }
    all["columns"] = json_of(sums_.columns);
    all["peak"] = peak;
    all["rows"] = std::move(rows);
  }

  void add_lists(nlohmann::ordered_json& all) const {
    all["lists"] = nlohmann::ordered_json::array();
    for (const auto& [name, g] : sums_.lists) {
      nlohmann::ordered_json columns = nlohmann::ordered_json::array();
      for (std::vector<range_of> column : g.cells) {
        const bool has_any = std::any_of(column.begin(), column.end(), [](const range_of& r) { return r.n > 0; });
        column.resize((g.length + g.group - 1) / g.group);
        columns.push_back(has_any ? means(column) : nullptr);
      }
      all["lists"].push_back({{"name", run_.names[name]}, {"length", g.length}, {"group", g.group}, {"columns", std::move(columns)}});
    }
  }

  /// The starts of the run: those of the first process with telemetry.
  nlohmann::ordered_json starts() const {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    int process = -1;
    for (const start_history& s : run_.starts) process = process < 0 ? s.process : std::min(process, s.process);
    std::vector<const start_history*> mine;
    for (const start_history& s : run_.starts)
      if (s.process == process) mine.push_back(&s);
    std::vector<std::string> ends = ends_of(mine);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      nlohmann::ordered_json row{{"time", mine[i]->time}, {"processes", mine[i]->processes}, {"version", mine[i]->version},
                                 {"mesh", nlohmann::ordered_json::object()}, {"steps", mine[i]->steps}};
      for (const auto& [axis, extent] : mine[i]->mesh) row["mesh"][axis] = extent;
      if (mine[i]->steps > 0) {
        row["first"] = mine[i]->first;
        row["last"] = mine[i]->last;
        row["ended"] = mine[i]->ended;
      }
      row["end"] = std::move(ends[i]);
      all.push_back(std::move(row));
    }
    return all;
  }

  /// The end of each start: "finish", "stop", "not_finite", "abort", "no word", or nothing for the last one, which may still run.
  std::vector<std::string> ends_of(const std::vector<const start_history*>& starts) const {
    constexpr double rounding = .001;  // of times in telemetry
    std::vector<double> start_times, heard;  // of the starts, and of their last telemetry
    for (const start_history* s : starts) {
      start_times.push_back(s->time);
      heard.push_back(std::max(s->time, s->ended) - rounding);
    }
    const auto next_after = [](const std::vector<double>& all, double time) {
      return std::size_t(std::upper_bound(all.begin(), all.end(), time) - all.begin());
    };
    std::map<int, std::vector<double>> begins;  // by process: a log may begin before the telemetry of its start
    for (const event_history& e : run_.events) {
      std::vector<double>& all = begins.try_emplace(e.process, start_times).first->second;
      const std::size_t i = next_after(start_times, e.time);
      if (e.event == "start" && i < start_times.size() && (i == 0 || e.time > heard[i - 1])) all[i] = e.time;
    }
    std::vector<std::string> ends(starts.size());
    struct state {
      std::size_t start = 0;  // its index plus 1
      bool is_other = false;  // a start without telemetry has followed
    };
    std::map<int, state> logs;  // by process
    for (const event_history& e : run_.events) {
      const std::size_t start = next_after(begins[e.process], e.time);
      if (start == 0) continue;
      state& log = logs[e.process];
      log.is_other = log.start == start && (log.is_other || e.event == "start");
      log.start = start;
      if (log.is_other || e.event == "continued") continue;
      std::string& end = ends[start - 1];
      const bool went_on = e.process == starts[start - 1]->process && heard[start - 1] > e.time + rounding;
      if (e.event == "finish" || e.event == "stop" || (e.event == "not_finite" && !went_on)) end = e.event;
      else if (e.event == "abort") end = end == "not_finite" ? end : e.event;
      else if (end == "not_finite" || end == "abort") end.clear();  // it went on
    }
    for (std::size_t i = 0; i + 1 < ends.size(); ++i)
      if (ends[i].empty()) ends[i] = "no word";
    return ends;
  }

  /// The first events and the last ones, each with its step: from its own field, or from its time.
  nlohmann::ordered_json events() const {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    const std::size_t n = run_.events.size(), head = n > most_events ? most_events / 4 : n;
    for (std::size_t i = 0; i < n; ++i) {
      if (i >= head && i + (most_events - head) < n) continue;
      const event_history& e = run_.events[i];
      std::string text = e.fields.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      if (text.size() > 300) text = text.substr(0, 300) + " ...";
      nlohmann::ordered_json row{{"time", e.time}, {"process", e.process}, {"event", e.event}, {"fields", std::move(text)}};
      double step = number_in(e.fields, "step");
      if (!std::isfinite(step)) step = e.step;
      row["step"] = std::isfinite(step) ? nlohmann::ordered_json(std::uint32_t(std::clamp(step, 0.0, 4e9))) : nullptr;
      all.push_back(std::move(row));
    }
    return all;
  }
};

}}}  // namespace gshard::v0::detail
