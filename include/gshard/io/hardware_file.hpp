// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Hardware files: the measured times of a cluster as JSON, written by gshard-calibrate.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/all_operations.hpp>
#include <gshard/core/cost/measured_times.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/json_field.hpp>
#include <gshard/sim/run/presets.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

inline constexpr std::string_view hardware_format = "gshard hardware 1";
inline constexpr std::array<std::string_view, std::size_t(group_reach::count_)> reach_names{"node", "one device per node", "nodes"};

/// The lists `x` and `y` of a row as the points of a curve. `inverse`: y holds rates, and the curve their inverses.
inline measured_curve curve_of(const json_field& row, const char* x, const char* y, bool inverse = false) {
  const json_field at = row[x], value = row[y];
  const std::size_t n = at.size();
  if (n == 0 || n > std::size_t(measured_curve::most))
    at.fail("has " + std::to_string(n) + " points, not 1 to " + std::to_string(measured_curve::most));
  if (value.size() != n) value.fail("has " + std::to_string(value.size()) + " numbers, " + std::string(x) + " has " + std::to_string(n));
  measured_curve c;
  for (std::size_t i = 0; i < n; ++i) {
    const double here = at[i].number();
    if (i > 0 && here <= c.at[i - 1]) at[i].fail("is not more than the number before it");
    c.add(here, inverse ? 1 / value[i].rate() : value[i].rate());
  }
  return c;
}

/// The collective, or the operation on one device, with the field's name.
inline op_ref op_of_name(const json_field& f, bool collective) {
  std::vector<op_ref> operations;
  std::vector<std::string_view> names;
  for (const op_ref o : all_operations) {
    const bool is_measured_collective = o->move > 0 && o->move <= int(measured_times::kinds);
    if (collective ? !is_measured_collective : o->collective) continue;
    operations.push_back(o);
    names.push_back(o->name);
  }
  return operations[f.one_of(names)];
}

inline nlohmann::ordered_json curve_json(nlohmann::ordered_json row, const char* x, const char* y, const measured_curve& c,
                                         bool inverse = false) {
  row[x] = row[y] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < std::size_t(c.count); ++i) {
    row[x].push_back(c.at[i]);
    row[y].push_back(inverse ? 1 / c.value[i] : c.value[i]);
  }
  return row;
}

}  // namespace detail

/// A cluster of `nodes` nodes with `device.node_devices` devices each.
inline hardware make_cluster(std::string name, int nodes, const machine& device) {
  hardware h;
  h.name = std::move(name);
  h.of = {.name = "measured", .source = "measured by gshard-calibrate",
          .doubts = "times hold for the nodes, the ranks per node and the libraries of the calibration"};
  h.chips = {nodes * device.node_devices};
  h.device = device;
  return h;
}

/// A measured cluster as the JSON document of a hardware file: seconds, bytes, and operations per second. Tables without an entry are left
/// out.
inline nlohmann::ordered_json hardware_json(const hardware& h) {
  using json = nlohmann::ordered_json;
  const machine& m = h.device;
  const measured_times& t = m.measured;
  const auto network = [](double start, double rate) { return json{{"start", start}, {"bytes_per_second", rate}}; };
  json file{{"format", detail::hardware_format},
            {"name", h.name},
            {"nodes", h.devices() / m.node_devices},
            {"ranks_per_node", m.node_devices},
            {"between_nodes", network(m.start, m.link_bytes)},
            {"within_node", network(m.node_start, m.node_bytes)},
            {"memory", {{"bytes", h.memory}, {"bytes_per_second", m.memory_bytes}}},
            {"flops", m.flops},
            {"run_start", t.run_start},
            {"hidden", t.hidden}};
  file["products"] = file["operations"] = file["collectives"] = json::array();
  for (const bool batched : {false, true})
    if (const measured_curve& c = batched ? t.batched_product : t.product; c.known())
      file["products"].push_back(detail::curve_json({{"batched", batched}}, "smallest_extent", "flops", c, true));
  for (const op_ref kind : all_operations)
    if (const operation_time& time = t.operations[std::size_t(kind->id)]; time.known())
      file["operations"].push_back({{"kind", kind->name}, {"start", time.start}, {"seconds_per_byte", time.per_byte}});
  for (std::size_t k = 0; k < measured_times::kinds; ++k)
    for (std::size_t r = 0; r < detail::reach_names.size(); ++r)
      if (const measured_curve& c = t.collectives[k][r]; c.known())
        file["collectives"].push_back(detail::curve_json(
            {{"kind", move_operations[k + 1]->name}, {"over", detail::reach_names[r]}}, "bytes", "seconds", c));
  return file;
}

/// Parses the text of a hardware file; `file` is its name in messages. Throws `gshard::error` that names file and field.
inline hardware parse_hardware_file(std::string_view text, const std::string& file) {
  const auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  const detail::json_field root(document, "hardware file '" + file + "'");
  if (document.is_discarded()) root.fail("is not JSON");
  root["format"].one_of(std::array{detail::hardware_format});
  machine m;
  m.node_devices = root["ranks_per_node"].count();
  m.start = root["between_nodes"]["start"].number();
  m.link_bytes = root["between_nodes"]["bytes_per_second"].rate();
  m.node_start = root["within_node"]["start"].number();
  m.node_bytes = root["within_node"]["bytes_per_second"].rate();
  m.memory_bytes = root["memory"]["bytes_per_second"].rate();
  m.flops = root["flops"].rate();
  measured_times& t = m.measured;
  t.run_start = root["run_start"].number();
  t.hidden = root["hidden"].share();
  const detail::json_field products = root["products"], operations = root["operations"], collectives = root["collectives"];
  for (std::size_t i = 0; i < products.size(); ++i)
    (products[i]["batched"].flag() ? t.batched_product : t.product) = detail::curve_of(products[i], "smallest_extent", "flops", true);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const detail::json_field row = operations[i];
    const op_ref kind = detail::op_of_name(row["kind"], false);
    t.operations[std::size_t(kind->id)] = {row["start"].number(), row["seconds_per_byte"].number()};
  }
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const detail::json_field row = collectives[i];
    const op_ref kind = detail::op_of_name(row["kind"], true);
    t.collective(kind, group_reach(row["over"].one_of(detail::reach_names))) = detail::curve_of(row, "bytes", "seconds");
  }
  const int nodes = root["nodes"].count();
  if (std::int64_t(nodes) * m.node_devices > INT_MAX / 64) root["nodes"].fail("gives too many devices");
  hardware h = make_cluster(root["name"].text(), nodes, m);
  h.memory = std::int64_t(root["memory"]["bytes"].number());
  return h;
}

/// Reads a hardware file: hardware for `dry_run` and `run_clock`. Its `device` is the machine of `search_options` and `price`.
/// Throws `gshard::error` that names file and field.
/// @see hardware_json, parse_hardware
inline hardware read_hardware(const std::string& path) {
  std::ifstream in(detail::checked_path(path), std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw error("hardware file '" + path + "': cannot be read");
  return parse_hardware_file(text.str(), path);
}

}}  // namespace gshard::v0
