// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The history of a run, read from the telemetry and the event logs of all its processes.

#include <gshard/io/file.hpp>
#include <gshard/survive/log/event_log_check.hpp>
#include <gshard/survive/monitor/run_summary.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// A start of a process, and its steps until the next start.
struct start_history {
  double time = 0;
  int process = 0, processes = 1;
  std::string host, version;
  std::vector<std::pair<std::string, int>> mesh;
  std::uint64_t steps = 0;
  std::uint32_t first = 0, last = 0;  ///< the numbers of these steps, if there are any
  double ended = 0;                   ///< time of the last step, or of a skipped one after it
};

struct event_history {
  double time = 0;
  int process = 0;
  std::string event;
  nlohmann::ordered_json fields;
  double step = std::numeric_limits<double>::quiet_NaN();  ///< step of the process at that time; of process 0 if this one has no telemetry
};

struct run_history {
  std::vector<std::string> names;     ///< of kinds, values and lists
  std::size_t processes = 0;          ///< one more than the highest process number with telemetry
  detail::run_summary summary;        ///< of the steps
  std::uint64_t repeated = 0;         ///< Steps repeated after a restart; the maximum over processes.
  std::uint64_t skipped = 0;          ///< Batches that an optimizer skipped, which are no steps; the maximum over processes.
  std::vector<start_history> starts;  ///< of all processes, in order of time
  std::vector<event_history> events;  ///< of all processes, in order of time
  std::vector<std::string> logs;      ///< results of the checks of the event logs, one sentence each
  bool logs_hold = true;
  std::size_t unread = 0;             ///< lines that are no records, such as one that a killed process left
};

namespace detail {

/// A number of JSON, or one of the texts "NaN", "Infinity" and "-Infinity".
template <class Json>
double number_in(const Json& j) {
  if (j.is_number()) return j.template get<double>();
  const double infinite = std::numeric_limits<double>::infinity();
  if (j.is_string() && j == "Infinity") return infinite;
  if (j.is_string() && j == "-Infinity") return -infinite;
  return std::numeric_limits<double>::quiet_NaN();
}
template <class Json>
double number_in(const Json& j, const char* key, double otherwise = std::numeric_limits<double>::quiet_NaN()) {
  return j.is_object() && j.contains(key) ? number_in(j[key]) : otherwise;
}
template <class Json>
std::string text_in(const Json& j, const char* key) {
  return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].template get<std::string>() : std::string();
}
template <class Json>
int integer_in(const Json& j, const char* key, int otherwise) {
  const double x = number_in(j, key, otherwise);
  return x >= 0 && x < 1e9 ? int(x) : otherwise;
}

/// Seconds since 1970 of "2026-11-24T08:23:13.123456Z"; NaN if it is no such text.
inline double unix_seconds_of(const std::string& utc) {
  std::tm t{};
  double seconds = 0;
  if (std::sscanf(utc.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &seconds) != 6)
    return std::numeric_limits<double>::quiet_NaN();
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  return double(::timegm(&t)) + seconds;
}

/// Calls f(number, line) for all lines of a file.
template <class F>
void for_each_line(const std::string& path, F f) {
  const input_file regular(checked_path(path));  // a pipe would wait for its writer
  std::ifstream file(path, std::ios::binary);
  if (!file) throw error(path + ": cannot be opened");
  std::uint64_t number = 0;
  for (std::string line; std::getline(file, line);) f(number++, line);
}

/// The step number in a line of telemetry. Nothing if the line is no step, incomplete or damaged.
inline std::optional<std::uint32_t> step_in_line(const std::string& line) {
  constexpr std::string_view begin = "{\"step\":";
  if (!line.starts_with(begin) || !line.ends_with('}')) return std::nullopt;
  std::uint32_t step = 0;
  const char* const last = line.data() + line.size();
  const auto [end, code] = std::from_chars(line.data() + begin.size(), last, step);
  return code == std::errc() && end != last && *end == ',' ? std::optional(step) : std::nullopt;
}

/// True for the line of a step whose updates were skipped. The next step has the same number.
inline bool is_skipped(const std::string& line) {
  constexpr std::string_view mark = ",\"skipped\":true";
  return line.compare(std::min(line.find(','), line.size()), mark.size(), mark) == 0;
}

/// Reads the files of a run one after the other. Telemetry is read twice, so that no steps are kept in memory.
class history_reader {
 public:
  run_history found;

  /// Call it first, for all files of telemetry.
  void scan(const std::string& path, int process) {
    found.processes = std::max(found.processes, std::size_t(process) + 1);
    repeated_steps& steps = steps_[process];
    for_each_line(path, [&](std::uint64_t number, const std::string& line) {
      if (const auto step = step_in_line(line); step && is_skipped(line)) steps.see_skipped(number, *step);
      else if (step) steps.see(number, *step);
    });
  }
  /// Call it after all scans and logs.
  void begin() {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
    for (const auto& [process, steps] : steps_)
      if (!steps.empty()) {
        first = std::min(first, steps.first());
        last = std::max(last, steps.last());
      }
    if (first <= last) found.summary = run_summary(first, last, found.processes);
    const auto by_time = [](const auto& a, const auto& b) { return a.time < b.time; };
    std::stable_sort(found.events.begin(), found.events.end(), by_time);
    for (std::size_t e = 0; e < found.events.size(); ++e) {
      const auto own = steps_.find(found.events[e].process);
      events_of_[own != steps_.end() && !own->second.empty() ? own->first : 0].push_back(e);
    }
  }
  /// Call it last, for all files of telemetry, in the order of processes.
  void telemetry(const std::string& path, int process) {
    repeated_steps& steps = steps_[process];
    const std::vector<std::size_t>& events = events_of_[process];
    std::size_t event = 0, start_of = found.starts.size();  // the next event; the start that the records belong to
    std::uint64_t repeated = 0, skipped = 0;
    std::optional<std::uint32_t> last;
    for_each_line(path, [&](std::uint64_t number, const std::string& line) {
      const auto j = nlohmann::ordered_json::parse(line, nullptr, false);
      if (j.is_object() && j.contains("telemetry")) {
        start_of = found.starts.size();
        return start(j, process);
      }
      const std::optional<step_history> s = j.is_object() ? step_of(j, process) : std::nullopt;
      if (!s || step_in_line(line) != s->step) {
        found.unread += !line.empty();
        return;
      }
      last = s->step;
      for (; event < events.size() && found.events[events[event]].time < s->time; ++event) found.events[events[event]].step = s->step;
      if (start_of < found.starts.size()) found.starts[start_of].ended = s->time;
      if (is_skipped(line)) {
        skipped += steps.counts(number, s->step);
        return;
      }
      if (start_of < found.starts.size()) {
        start_history& one = found.starts[start_of];
        if (one.steps++ == 0) one.first = s->step;
        one.last = s->step;
      }
      if (steps.counts(number, s->step)) found.summary.add(std::size_t(process), *s);
      else ++repeated;
    });
    for (; last && event < events.size(); ++event) found.events[events[event]].step = *last;
    found.repeated = std::max(found.repeated, repeated);
    found.skipped = std::max(found.skipped, skipped);
  }
  void log(const std::string& path, int process) {
    const event_log_finding check = check_event_log(path);
    found.logs.push_back(check.unaltered && !check.told.empty() ? base_name(path) + ": " + check.told : check.text);
    found.logs_hold = found.logs_hold && check.unaltered && check.told.empty();
    for_each_line(path, [&](std::uint64_t, const std::string& line) {
      const auto j = nlohmann::ordered_json::parse(line, nullptr, false);
      if (!j.is_object()) {
        found.unread += !line.empty();
        return;
      }
      const double time = unix_seconds_of(text_in(j, "time"));
      if (std::isfinite(time) && j.contains("fields")) found.events.push_back({time, process, text_in(j, "event"), j["fields"]});
    });
  }

 private:
  std::map<std::string, std::uint16_t> ids_;
  std::map<std::string, int> givers_;  // the first process that gave a value or a list
  std::map<int, repeated_steps> steps_;
  std::map<int, std::vector<std::size_t>> events_of_;  // by the process whose step numbers they get

  /// The step of a record; nothing if it is another record.
  std::optional<step_history> step_of(const nlohmann::ordered_json& j, int process) {
    const double step = number_in(j, "step"), seconds = number_in(j, "seconds");
    if (!(step >= 0 && step < 4e9) || !(seconds >= 0)) return std::nullopt;
    step_history s;
    s.step = std::uint32_t(step);
    s.seconds = seconds;
    s.time = number_in(j, "time", 0);
    s.waiting = number_in(j, "waiting", 0);
    s.predicted = number_in(j, "predicted");
    s.resident = number_in(j, "resident", 0);
    s.arena = number_in(j, "arena", 0);
    const auto numbers = [&](const char* key, auto add) {
      if (j.contains(key) && j[key].is_object())
        for (const auto& [name, x] : j[key].items()) add(name, x);
    };
    numbers("received", [&](const std::string& name, const auto& x) { s.received.emplace_back(id(name), number_in(x)); });
    numbers("values", [&](const std::string& name, const auto& x) {
      if (is_first("value ", name, process)) s.values.emplace_back(id(name), number_in(x));
    });
    numbers("lists", [&](const std::string& name, const auto& list) {
      if (!list.is_array() || !is_first("list ", name, process)) return;
      auto& numbers_of = s.lists.emplace_back(id(name), std::vector<float>()).second;
      for (const auto& x : list) numbers_of.push_back(float(number_in(x)));
    });
    return s;
  }

  std::uint16_t id(const std::string& name) {
    const auto [it, is_new] = ids_.try_emplace(name, std::uint16_t(found.names.size()));
    if (is_new && found.names.size() == 65535) throw error("telemetry: there are more than 65535 names");
    if (is_new) found.names.push_back(name);
    return it->second;
  }
  bool is_first(const char* what, const std::string& name, int process) {
    return givers_.try_emplace(what + name, process).first->second == process;
  }
  void start(const nlohmann::ordered_json& j, int process) {
    start_history s;
    s.time = number_in(j, "time", 0);
    s.process = process;
    s.processes = std::max(1, integer_in(j, "processes", 1));
    s.host = text_in(j, "host");
    s.version = text_in(j, "version");
    if (j.contains("mesh") && j["mesh"].is_object())
      for (const auto& [axis, extent] : j["mesh"].items()) s.mesh.emplace_back(axis, integer_in(j["mesh"], axis.c_str(), 0));
    found.starts.push_back(std::move(s));
  }
};

}  // namespace detail

/// Reads the files telemetry-*.jsonl and events-*.jsonl of a directory. The run may still be in progress. Incomplete lines are left out.
/// Memory does not grow with the number of steps. Throws `gshard::error` if a file cannot be read, or if there is none.
inline run_history read_run_history(const std::string& directory) {
  std::map<int, std::string> telemetry, logs;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(detail::checked_path(directory), code)) {
    const std::string name = entry.path().filename().string();
    char kind[16] = {}, rest[8] = {};
    int process = 0;
    if (std::sscanf(name.c_str(), "%15[a-z]-%9d.%7s", kind, &process, rest) != 3 || std::string_view(rest) != "jsonl") continue;
    if (process < 0 || process >= 1 << 20) continue;
    const std::string path = directory + "/" + name;
    if (std::string_view(kind) == "telemetry") telemetry[process] = path;
    if (std::string_view(kind) == "events") logs[process] = path;
  }
  if (code) throw error(directory + ": cannot be read: " + code.message());
  if (telemetry.empty() && logs.empty()) throw error(directory + ": has no telemetry-*.jsonl or events-*.jsonl");
  detail::history_reader reader;
  for (const auto& [process, path] : telemetry) reader.scan(path, process);
  for (const auto& [process, path] : logs) reader.log(path, process);
  reader.begin();
  for (const auto& [process, path] : telemetry) reader.telemetry(path, process);
  std::stable_sort(reader.found.starts.begin(), reader.found.starts.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return std::move(reader.found);
}

}}  // namespace gshard::v0
