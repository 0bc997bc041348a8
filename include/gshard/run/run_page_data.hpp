// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The history of a run as one JSON document for its page: curves of at most some hundred points, whatever the number of steps.

#include <gshard/run/run_history.hpp>
#include <gshard/run/straggler.hpp>

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
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A number with four digits, which a page can show; null if it is not finite.
inline nlohmann::ordered_json thin(double x) {
  if (!std::isfinite(x)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return std::strtod(text, nullptr);
}

/// Mean, least and largest of some numbers. Those that are not finite are counted apart.
struct range_of {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint64_t n = 0, others = 0;

  void add(double x) {
    if (!std::isfinite(x)) {
      ++others;
      return;
    }
    sum += x;
    ++n;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  double mean() const { return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / double(n); }
};

/// Divides the steps of a run into at most so many parts of equal length.
struct step_buckets {
  std::uint32_t first = 0, width = 1;
  std::size_t count = 0;

  step_buckets(std::uint32_t begin, std::uint32_t last, std::size_t most) : first(begin) {
    const std::uint64_t all = std::uint64_t(last) - begin + 1;
    width = std::uint32_t((all + most - 1) / most);
    count = std::size_t((all + width - 1) / width);
  }
  std::size_t of(std::uint32_t step) const { return (step - first) / width; }
  nlohmann::ordered_json json() const { return {{"first", first}, {"width", width}, {"count", count}}; }
};

class run_page_data {
 public:
  static constexpr std::size_t most_points = 800, most_columns = 160, most_rows = 128, most_events = 2000;

  run_page_data(const run_history& history, std::string title) : run_(history), title_(std::move(title)) {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
    for (const std::vector<step_history>& all : run_.steps) {
      std::vector<const step_history*>& valid = valid_.emplace_back();
      // Steps that were done again after a restart count as they were done last.
      std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
      for (auto it = all.rbegin(); it != all.rend(); ++it)
        if (it->step < lowest) {
          valid.push_back(&*it);
          lowest = it->step;
        }
      std::reverse(valid.begin(), valid.end());
      if (valid.empty()) continue;
      first = std::min(first, valid.front()->step);
      last = std::max(last, valid.back()->step);
      repeated_ = std::max(repeated_, all.size() - valid.size());
      has_steps_ = true;
    }
    if (!has_steps_) first = last = 0;
    first_ = first;
    last_ = last;
  }

  nlohmann::ordered_json json() const {
    using json = nlohmann::ordered_json;
    json logs = json::array();
    for (const std::string& text : run_.logs) logs.push_back(text);
    json all{{"format", "gshard run history 1"}, {"title", title_}, {"parts", json::array()}, {"processes", run_.steps.size()},
             {"first", first_}, {"last", last_}, {"repeated", repeated_}, {"unread", run_.unread}, {"logs", std::move(logs)},
             {"logs_hold", run_.logs_hold}, {"starts", starts()}, {"events", events()}, {"event_count", run_.events.size()}};
    all["restarts"] = all["starts"].empty() ? 0 : all["starts"].size() - 1;
    for (const auto& [key, event] : {std::pair("checkpoints", "checkpoint"), std::pair("stragglers", "straggler")})
      all[key] = std::count_if(run_.events.begin(), run_.events.end(), [&](const event_history& e) { return e.event == event; });
    if (has_steps_) {
      add_curves(all);
      add_processes(all);
      add_lists(all);
    }
    return all;
  }

 private:
  const run_history& run_;
  std::string title_;
  std::vector<std::vector<const step_history*>> valid_;  // by process, ascending
  std::uint32_t first_ = 0, last_ = 0;
  std::size_t repeated_ = 0;
  bool has_steps_ = false;

  static nlohmann::ordered_json means(const std::vector<range_of>& all) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const range_of& r : all) list.push_back(thin(r.mean()));
    return list;
  }
  static nlohmann::ordered_json curve(const std::vector<range_of>& all) {
    nlohmann::ordered_json low = nlohmann::ordered_json::array(), high = low, broken = low;
    for (std::size_t i = 0; i < all.size(); ++i) {
      low.push_back(all[i].n ? thin(all[i].low) : nullptr);
      high.push_back(all[i].n ? thin(all[i].high) : nullptr);
      if (all[i].others > 0) broken.push_back(i);
    }
    return {{"mean", means(all)}, {"low", std::move(low)}, {"high", std::move(high)}, {"not_finite", std::move(broken)}};
  }

  void add_curves(nlohmann::ordered_json& all) const {
    const step_buckets b(first_, last_, most_points);
    std::vector<range_of> time(b.count), seconds(b.count), waiting(b.count), predicted(b.count);
    std::map<std::uint16_t, std::vector<range_of>> values, received;
    double total = 0, waited = 0, ended = 0, begun = std::numeric_limits<double>::infinity(), bytes = 0;
    std::uint64_t steps = 0;
    for (const auto& valid : valid_) {
      steps = std::max(steps, std::uint64_t(valid.size()));
      for (const step_history* s : valid) {
        const std::size_t i = b.of(s->step);
        time[i].add(s->time);
        seconds[i].add(s->seconds);
        waiting[i].add(s->waiting);
        if (std::isfinite(s->predicted)) predicted[i].add(s->predicted);
        for (const auto& [name, x] : s->values) values.try_emplace(name, b.count).first->second[i].add(x);
        for (const auto& [name, x] : s->received) {
          received.try_emplace(name, b.count).first->second[i].add(x);
          bytes += x;
        }
        total += s->seconds;
        waited += s->waiting;
        ended = std::max(ended, s->time);
        begun = std::min(begun, s->time - s->seconds);
      }
    }
    if (!run_.starts.empty()) begun = std::min(begun, run_.starts.front().time);
    all["steps"] = steps;
    all["begun"] = begun;
    all["ended"] = ended;
    std::uint64_t records = 0;
    for (const auto& valid : valid_) records += valid.size();
    all["wall"] = ended - begun;
    all["mean_step"] = total / double(records);
    all["waiting_share"] = total > 0 ? waited / total : 0;
    all["bytes_per_step"] = bytes / double(records);
    all["buckets"] = b.json();
    all["time"] = nlohmann::ordered_json::array();
    for (const range_of& t : time) all["time"].push_back(t.n ? nlohmann::ordered_json(std::round(t.mean() - begun)) : nullptr);
    all["step_seconds"] = curve(seconds);
    all["step_waiting"] = means(waiting);
    if (std::any_of(predicted.begin(), predicted.end(), [](const range_of& r) { return r.n > 0; })) all["predicted"] = means(predicted);
    all["values"] = all["received"] = nlohmann::ordered_json::array();
    for (auto& [name, ranges] : values) {
      nlohmann::ordered_json c = curve(ranges);
      c["name"] = run_.names[name];
      all["values"].push_back(std::move(c));
    }
    for (auto& [name, ranges] : received) {  // per step, mean over all processes; a step without bytes has no entry
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      double sum = 0;
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        sum += ranges[i].sum;
        list.push_back(seconds[i].n ? thin(ranges[i].sum / double(seconds[i].n)) : nullptr);
      }
      all["received"].push_back({{"kind", run_.names[name]}, {"bytes", sum}, {"per_step", std::move(list)}});
    }
  }

  /// Rows of processes, or of groups of them, over time.
  void add_processes(nlohmann::ordered_json& all) const {
    const step_buckets b(first_, last_, most_columns);
    const std::size_t group = (valid_.size() + most_rows - 1) / most_rows;
    std::map<int, std::string> hosts;
    for (const start_history& s : run_.starts) hosts[s.process] = s.host;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    double peak = 0;
    for (std::size_t first = 0; first < valid_.size(); first += group) {
      std::vector<range_of> compute(b.count), waiting(b.count), resident(b.count), arena(b.count), seconds(b.count);
      double most = 0;
      for (std::size_t p = first; p < std::min(first + group, valid_.size()); ++p)
        for (const step_history* s : valid_[p]) {
          const std::size_t i = b.of(s->step);
          compute[i].add(s->seconds - s->waiting);
          waiting[i].add(s->waiting);
          seconds[i].add(s->seconds);
          resident[i].add(s->resident);
          arena[i].add(s->arena);
          most = std::max(most, s->resident);
        }
      peak = std::max(peak, most);
      nlohmann::ordered_json share = nlohmann::ordered_json::array();
      for (std::size_t i = 0; i < b.count; ++i) share.push_back(seconds[i].sum > 0 ? thin(waiting[i].sum / seconds[i].sum) : nullptr);
      range_of whole, waits, in_steps;
      for (std::size_t i = 0; i < b.count; ++i) {
        whole.sum += compute[i].sum;
        whole.n += compute[i].n;
        waits.sum += waiting[i].sum;
        in_steps.sum += seconds[i].sum;
      }
      rows.push_back({{"process", first}, {"processes", std::min(group, valid_.size() - first)}, {"host", hosts[int(first)]},
                      {"compute", means(compute)}, {"waiting", std::move(share)}, {"resident", means(resident)},
                      {"arena", means(arena)}, {"peak", most}, {"mean_compute", whole.n ? whole.mean() : 0},
                      {"waiting_share", in_steps.sum > 0 ? waits.sum / in_steps.sum : 0}});
    }
    all["columns"] = b.json();
    all["peak"] = peak;
    all["rows"] = std::move(rows);
  }

  void add_lists(nlohmann::ordered_json& all) const {
    const step_buckets b(first_, last_, most_columns);
    struct grid {
      std::size_t length = 0, group = 1;
      std::vector<std::vector<range_of>> cells;  // by column and row
    };
    std::map<std::uint16_t, grid> grids;
    for (const auto& valid : valid_)
      for (const step_history* s : valid)
        for (const auto& [name, list] : s->lists) grids[name].length = std::max(grids[name].length, list.size());
    for (auto& [name, g] : grids) {
      g.group = std::max<std::size_t>(1, (g.length + most_rows - 1) / most_rows);
      g.cells.assign(b.count, std::vector<range_of>((g.length + g.group - 1) / g.group));
    }
    for (const auto& valid : valid_)
      for (const step_history* s : valid)
        for (const auto& [name, list] : s->lists)
          for (std::size_t i = 0; i < list.size(); ++i) grids[name].cells[b.of(s->step)][i / grids[name].group].add(list[i]);
    all["lists"] = nlohmann::ordered_json::array();
    for (const auto& [name, g] : grids) {
      nlohmann::ordered_json columns = nlohmann::ordered_json::array();
      for (const std::vector<range_of>& column : g.cells)
        columns.push_back(std::any_of(column.begin(), column.end(), [](const range_of& r) { return r.n > 0; }) ? means(column) : nullptr);
      all["lists"].push_back({{"name", run_.names[name]}, {"length", g.length}, {"group", g.group}, {"columns", std::move(columns)}});
    }
  }

  /// Each start of the whole run: those of the first process that has telemetry.
  nlohmann::ordered_json starts() const {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    int process = -1;
    for (const start_history& s : run_.starts) process = process < 0 ? s.process : std::min(process, s.process);
    std::vector<const start_history*> mine;
    for (const start_history& s : run_.starts)
      if (s.process == process) mine.push_back(&s);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double end = i + 1 < mine.size() ? mine[i + 1]->time : std::numeric_limits<double>::infinity();
      nlohmann::ordered_json row{{"time", mine[i]->time}, {"processes", mine[i]->processes}, {"version", mine[i]->version},
                                 {"mesh", nlohmann::ordered_json::object()}, {"steps", 0}};
      for (const auto& [axis, extent] : mine[i]->mesh) row["mesh"][axis] = extent;
      for (const step_history& s : run_.steps[std::size_t(process)])
        if (s.time >= mine[i]->time && s.time < end) {
          if (row["steps"] == 0) row["first"] = s.step;
          row["last"] = s.step;
          row["ended"] = s.time;
          row["steps"] = row["steps"].get<int>() + 1;
        }
      std::string why = i + 1 < mine.size() ? "no word" : "";
      for (const event_history& e : run_.events)
        if (e.time >= mine[i]->time && e.time < end && (e.event == "stop" || e.event == "abort" || e.event == "not_finite")) why = e.event;
      row["end"] = why;
      all.push_back(std::move(row));
    }
    return all;
  }

  /// The first events and the last ones, each with its step: its own field, or that of its time.
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
      if (!std::isfinite(step)) step = step_at(e);
      row["step"] = std::isfinite(step) ? nlohmann::ordered_json(std::uint32_t(std::clamp(step, 0.0, 4e9))) : nullptr;
      all.push_back(std::move(row));
    }
    return all;
  }
  double step_at(const event_history& e) const {
    for (const std::size_t p : {std::size_t(e.process), std::size_t(0)})
      if (p < run_.steps.size() && !run_.steps[p].empty()) {
        const std::vector<step_history>& all = run_.steps[p];
        const auto after = std::upper_bound(all.begin(), all.end(), e.time, [](double t, const step_history& s) { return t < s.time; });
        return after == all.end() ? all.back().step : after->step;
      }
    return std::numeric_limits<double>::quiet_NaN();
  }
};

}}}  // namespace gshard::v0::detail
