// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The history of a run, read from the telemetry and the event logs of all its processes.

#include <gshard/io/file.hpp>
#include <gshard/run/event_log_check.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// One step of one process. Numbers that are not known are NaN.
struct step_history {
  std::uint32_t step = 0;
  double time = 0;  ///< of its end, seconds since 1970
  double seconds = 0, waiting = 0, predicted = std::numeric_limits<double>::quiet_NaN(), resident = 0, arena = 0;
  std::vector<std::pair<std::uint16_t, double>> received;            ///< bytes by kind; the kind is an index of run_history::names
  std::vector<std::pair<std::uint16_t, double>> values;              ///< of the first process that gave this name
  std::vector<std::pair<std::uint16_t, std::vector<float>>> lists;  ///< the same
};

/// A start of a process.
struct start_history {
  double time = 0;
  int process = 0, processes = 1;
  std::string host, version;
  std::vector<std::pair<std::string, int>> mesh;
};

struct event_history {
  double time = 0;
  int process = 0;
  std::string event;
  nlohmann::ordered_json fields;
};

struct run_history {
  std::vector<std::string> names;                ///< of kinds, values and lists
  std::vector<std::vector<step_history>> steps;  ///< by process; each in order of time
  std::vector<start_history> starts;             ///< of all processes, in order of time
  std::vector<event_history> events;             ///< of all processes, in order of time
  std::vector<std::string> logs;                 ///< what the check of each event log found, one sentence each
  bool logs_hold = true;
  std::size_t unread = 0;                        ///< lines that are no records, such as one that a killed process left
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

/// Reads one file, line by line. Lines that are no JSON objects are counted.
template <class F>
void for_each_record(const std::string& path, std::size_t& unread, F f) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw error(path + ": cannot be opened");
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::ordered_json::parse(line, nullptr, false);
    if (record.is_object()) f(record);
    else unread += !line.empty();
  }
}

class history_reader {
 public:
  run_history found;

  void telemetry(const std::string& path, int process) {
    if (found.steps.size() <= std::size_t(process)) found.steps.resize(std::size_t(process) + 1);
    std::vector<step_history>& steps = found.steps[std::size_t(process)];
    for_each_record(path, found.unread, [&](const nlohmann::ordered_json& j) {
      if (j.contains("telemetry")) return start(j, process);
      const double step = number_in(j, "step"), seconds = number_in(j, "seconds");
      if (!(step >= 0 && step < 4e9) || !(seconds >= 0)) {
        ++found.unread;
        return;
      }
      step_history& s = steps.emplace_back();
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
    });
  }
  void log(const std::string& path, int process) {
    const event_log_finding check = check_event_log(path);
    found.logs.push_back(check.text);
    found.logs_hold = found.logs_hold && check.unaltered;
    for_each_record(path, found.unread, [&](const nlohmann::ordered_json& j) {
      const double time = unix_seconds_of(text_in(j, "time"));
      if (std::isfinite(time) && j.contains("fields")) found.events.push_back({time, process, text_in(j, "event"), j["fields"]});
    });
  }

 private:
  std::map<std::string, std::uint16_t> ids_;
  std::map<std::string, int> givers_;  // the first process that gave a value or a list

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

/// Reads the files telemetry-*.jsonl and events-*.jsonl of a directory, which may be of a run that goes on. Incomplete lines are left out.
/// Throws `gshard::error` if a file cannot be read, or if there is none.
inline run_history read_run_history(const std::string& directory) {
  detail::history_reader reader;
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) names.push_back(entry.path().filename().string());
  if (code) throw error(directory + ": cannot be read: " + code.message());
  std::sort(names.begin(), names.end());
  std::size_t files = 0;
  for (const std::string& name : names) {
    char kind[16] = {}, rest[8] = {};
    int process = 0;
    if (std::sscanf(name.c_str(), "%15[a-z]-%9d.%7s", kind, &process, rest) != 3 || std::string_view(rest) != "jsonl") continue;
    if (process < 0 || process >= 1 << 20) continue;
    const std::string path = directory + "/" + name;
    if (std::string_view(kind) == "telemetry") reader.telemetry(path, process);
    else if (std::string_view(kind) == "events") reader.log(path, process);
    else continue;
    ++files;
  }
  if (files == 0) throw error(directory + ": has no telemetry-*.jsonl or events-*.jsonl");
  run_history& found = reader.found;
  const auto by_time = [](const auto& a, const auto& b) { return a.time < b.time; };
  std::stable_sort(found.starts.begin(), found.starts.end(), by_time);
  std::stable_sort(found.events.begin(), found.events.end(), by_time);
  return std::move(reader.found);
}

}}  // namespace gshard::v0
