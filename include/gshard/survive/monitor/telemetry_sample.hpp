// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Telemetry as text: a step as a line of JSON, and the state of a process in Prometheus' text format.

#include <gshard/core/ir/op.hpp>
#include <gshard/exec/backend/agreement.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The measurements of a process in one step.
struct telemetry_sample {
  std::uint32_t step = 0;
  double time = 0;              // of its end, seconds since 1970
  double seconds = 0;
  double waiting = 0;           // seconds in which the process waited for others
  std::vector<std::int64_t> received;  // bytes, by kind in `collective_kinds`
  std::int64_t resident = 0;    // bytes of memory of the process
  std::int64_t arena = 0;       // bytes for the values of programs
  double predicted = -1;        // seconds; less than 0: none
  std::vector<std::pair<std::string, double>> values;
  std::vector<std::pair<std::string, std::vector<double>>> lists;
  bool skipped = false;         // an optimizer skipped its updates
};

/// The kinds of operations that receive bytes.
inline const std::vector<op_ref>& collective_kinds() {
  static const std::vector<op_ref> all = [] {
    std::vector<op_ref> list;
    for (const op_ref kind : move_operations)
      if (kind->collective) list.push_back(*kind);
    return list;
  }();
  return all;
}

/// JSON has no NaN or infinity: they become texts.
inline std::string json_number(double x) {
  if (std::isfinite(x)) return number_text(x);
  return std::isnan(x) ? "\"NaN\"" : x > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}
inline std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
/// Seconds with nine significant digits.
inline std::string seconds_text(double s) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", s);
  return text;
}

/// A step as one line.
inline std::string json_line(const telemetry_sample& s, bool with_lists) {
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", s.time);
  std::string line = "{\"step\":" + std::to_string(s.step) + (s.skipped ? ",\"skipped\":true" : "") + ",\"time\":" + time +
                     ",\"seconds\":" + seconds_text(s.seconds) + ",\"waiting\":" + seconds_text(s.waiting);
  std::string part;
  for (std::size_t k = 0; k < s.received.size(); ++k)
    if (s.received[k] != 0)
      part += (part.empty() ? "\"" : ",\"") + std::string(name(collective_kinds()[k])) + "\":" + std::to_string(s.received[k]);
  line += ",\"received\":{" + part + "},\"resident\":" + std::to_string(s.resident) + ",\"arena\":" + std::to_string(s.arena);
  if (s.predicted >= 0) line += ",\"predicted\":" + seconds_text(s.predicted);
  part.clear();
  for (const auto& [key, x] : s.values) part += (part.empty() ? "" : ",") + json_string(key) + ":" + json_number(x);
  if (!part.empty()) line += ",\"values\":{" + part + "}";
  part.clear();
  for (const auto& [key, list] : s.lists) {
    std::string numbers;
    for (const double x : list) numbers += (numbers.empty() ? "" : ",") + json_number(x);
    part += (part.empty() ? "" : ",") + json_string(key) + ":[" + numbers + "]";
  }
  if (with_lists && !part.empty()) line += ",\"lists\":{" + part + "}";
  return line + "}\n";
}

/// The state of a process, in Prometheus' text format.
class prometheus_text {
 public:
  /// Labels of all samples, such as {"process", "3"}.
  explicit prometheus_text(const std::map<std::string, std::string>& labels) {
    std::map<std::string, std::string> valid;  // two keys may become one name
    for (const auto& [key, value] : labels) valid[label_name(key)] = value;
    for (const auto& [key, value] : valid) common_ += (common_.empty() ? "" : ",") + key + "=\"" + escaped(value) + "\"";
  }

  /// Begins a metric. `type`: gauge or counter.
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  void sample(double x, std::initializer_list<std::pair<std::string_view, std::string_view>> labels = {}) {
    std::string all = common_;
    for (const auto& [key, value] : labels) all += (all.empty() ? "" : ",") + std::string(key) + "=\"" + escaped(value) + "\"";
    text_ += name_ + (all.empty() ? "" : "{" + all + "}") + " ";
    text_ += std::isfinite(x) ? number_text(x) : std::isnan(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf";
    text_ += "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string common_, name_, text_;

  static std::string escaped(std::string_view value) {
    std::string s;
    const std::string valid = nlohmann::json::parse(json_string(value)).get<std::string>();  // bytes that are not UTF-8 are replaced
    for (const char c : valid)
      if (c == '\n') s += "\\n";
      else if (c == '\\' || c == '"') s.append("\\").push_back(c);
      else s += c;
    return s;
  }
  static std::string label_name(std::string_view key) {
    std::string s;
    for (const char c : key) s += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
    const bool is_ours = s == "kind" || s == "name" || s == "index" || s == "of_process";
    return s.empty() || is_ours || (s[0] >= '0' && s[0] <= '9') || s.starts_with("__") ? "label_" + s : s;
  }
};

/// Sums over the steps of a process, and the last step.
struct telemetry_totals {
  std::map<std::string, std::string> labels;
  bool running = true;
  double start = 0;  // seconds since 1970
  std::uint64_t steps = 0;
  double seconds = 0, waiting = 0;
  std::vector<std::int64_t> received = std::vector<std::int64_t>(collective_kinds().size());
  telemetry_sample last;
  std::map<std::string, double> values;              // the last ones
  std::map<std::string, std::vector<double>> lists;
  std::map<std::string, double> stragglers;          // by process; on the leader

  static constexpr std::string_view begin = "# HELP gshard_running ";  // the beginning of prometheus()
  static constexpr std::size_t most_indices = 256;  // of a list; more would be a burden for Prometheus

  void add(const telemetry_sample& s) {
    ++steps;
    seconds += s.seconds;
    waiting += s.waiting;
    for (std::size_t k = 0; k < s.received.size(); ++k) received[k] += s.received[k];
    for (const auto& [key, x] : s.values) values[key] = x;
    for (const auto& [key, list] : s.lists) lists[key] = list;
    last = s;
    last.lists.clear();
  }
  std::string prometheus() const {
    prometheus_text p(labels);
    const auto one = [&](std::string_view name, std::string_view type, std::string_view help, double x) {
      p.metric(name, type, help);
      p.sample(x);
    };
    one("gshard_running", "gauge", "1 while the run goes on, 0 after its end.", running ? 1 : 0);
    one("gshard_start_timestamp_seconds", "gauge", "When the process started, in seconds since 1970.", start);
    one("gshard_steps_total", "counter", "Finished steps of this process since its start.", double(steps));
    one("gshard_seconds_total", "counter", "Seconds in steps.", seconds);
    one("gshard_waiting_seconds_total", "counter", "Seconds of steps in which the process waited for others.", waiting);
    p.metric("gshard_received_bytes_total", "counter", "Bytes received by collectives of programs, by kind.");
    for (std::size_t k = 0; k < received.size(); ++k) p.sample(double(received[k]), {{"kind", name(collective_kinds()[k])}});
    one("gshard_step_timestamp_seconds", "gauge", "When the last step ended, or else the process started, in seconds since 1970.",
        steps > 0 ? last.time : start);
    if (steps > 0) {
      one("gshard_step", "gauge", "The number of the last step.", last.step);
      one("gshard_step_seconds", "gauge", "Time of the last step.", last.seconds);
      if (last.predicted >= 0) one("gshard_predicted_step_seconds", "gauge", "Predicted time of the last step.", last.predicted);
      one("gshard_resident_bytes", "gauge", "Memory of the process.", double(last.resident));
      one("gshard_arena_bytes", "gauge", "Memory of it for the values of programs.", double(last.arena));
    }
    if (!values.empty()) p.metric("gshard_value", "gauge", "The last value of each name that the program gave.");
    for (const auto& [key, x] : values) p.sample(x, {{"name", key}});
    if (!lists.empty()) p.metric("gshard_values", "gauge", "The last list of each name that the program gave.");
    for (const auto& [key, list] : lists)
      for (std::size_t i = 0; i < list.size() && i < most_indices; ++i) p.sample(list[i], {{"name", key}, {"index", std::to_string(i)}});
    if (!stragglers.empty()) p.metric("gshard_straggler", "gauge", "1 if a process computes longer than the others in most steps.");
    for (const auto& [process, x] : stragglers) p.sample(x, {{"of_process", process}});
    return p.text();
  }
};

}}}  // namespace gshard::v0::detail
