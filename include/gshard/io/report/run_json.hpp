// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A simulated run and its plan as one JSON document.

#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/report/reason.hpp>
#include <gshard/sim/report/roofline.hpp>
#include <gshard/sim/report/run_text.hpp>
#include <gshard/sim/run/sweep_row.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// A document as text. Bytes of names that are not UTF-8 become the replacement character.
inline std::string text_of_json(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

namespace detail {

using ordered_json = nlohmann::ordered_json;

/// A list of the names of an enumeration, each with its amount.
template <class Enum, class List>
ordered_json named_amounts(const char* key, const char* amount, const List& list) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < list.size(); ++i) rows.push_back({{key, name(Enum(i))}, {amount, list[i]}});
  return rows;
}

inline ordered_json json_of(const plan_view& plan, const step_record& s) {
  const node& step = step_of(plan, s.step);
  std::string at = place_text(step.place);
  if (at.starts_with(" at ")) at.erase(0, 4);
  return {{"step", s.step},
          {"kind", kind_text(step)},
          {"text", describe(plan, step)},
          {"at", at},
          {"part", name(s.part)},
          {"flops", s.flops},
          {"bytes_touched", s.bytes_touched},
          {"bytes_received", s.bytes_received},
          {"bytes_between_nodes", s.bytes_between_nodes},
          {"arithmetic", s.arithmetic},
          {"memory", s.memory},
          {"network", s.network},
          {"seconds", s.seconds},
          {"measured", s.measured},
          {"bound", name(s.bound)},
          {"recomputed", s.recomputed},
          {"why", describe_reason(plan, std::size_t(s.step))}};
}

inline ordered_json json_of(const run_record& run, const device_track& t) {
  ordered_json spans = ordered_json::array(), memory = ordered_json::array();
  for (const time_span& s : t.spans) {
    row_of(run, s);
    spans.push_back({{"row", s.row}, {"what", name(s.what)}, {"begin", s.begin}, {"end", s.end}});
  }
  for (const memory_sample& m : t.memory) memory.push_back({{"time", m.time}, {"bytes", m.bytes}});
  return {{"devices", t.devices}, {"compute", t.compute},         {"communicate", t.communicate},
          {"wait", t.wait},       {"spans", std::move(spans)}, {"memory", std::move(memory)}};
}

inline ordered_json json_of(const kind_record& k, double whole) {
  return {{"kind", name(k.kind)},
          {"steps", k.steps},
          {"flops", k.flops},
          {"bytes_touched", k.bytes_touched},
          {"bytes_received", k.bytes_received},
          {"intensity", k.intensity()},
          {"arithmetic", k.arithmetic},
          {"memory", k.memory},
          {"network", k.network},
          {"seconds", k.seconds},
          {"measured", k.measured},
          {"share", whole > 0 ? k.seconds / whole : 0},
          {"bound", name(k.bound)}};
}

inline ordered_json json_of(const plan_view& plan, const extents& sizes, std::int32_t v, const char* role) {
  const value& t = plan.at(v);
  ordered_json sharded_dims = ordered_json::array(), partial = ordered_json::array(), order = ordered_json::array();
  std::int64_t whole = size_of(t.type);
  for (int d = 0; d < t.rank(); ++d) {
    ordered_json axes = ordered_json::array();
    for (int i = 0; i < t.layout[d].size(); ++i) axes.push_back(plan.mesh.name(t.layout[d][i]));
    sharded_dims.push_back({{"name", dim_text(plan, t.dims[d])}, {"extent", sizes.dim(t.dims[d])}, {"axes", std::move(axes)}});
    whole *= sizes.dim(t.dims[d]);
  }
  for (int a = 0; a < plan.mesh.rank(); ++a)
    if (t.layout.is_partial(a)) partial.push_back(plan.mesh.name(a));
  for (const int device : plan.order_of(t.layout)) order.push_back(device);
  return {{"value", v},
          {"name", name_of_value(plan, v)},
          {"role", role},
          {"text", describe(plan, t)},
          {"dims", std::move(sharded_dims)},
          {"partial", std::move(partial)},
          {"order", std::move(order)},
          {"bytes", shard_bytes(plan, v, sizes)},
          {"whole_bytes", whole}};
}

/// Inputs, parameters, optimizer state, outputs, and the largest tensors at the memory peak; each once.
inline ordered_json tensors_of(const run_record& run, const plan_view& plan, const extents& sizes) {
  ordered_json tensors = ordered_json::array();
  std::vector<bool> seen(plan.values.size());
  const auto add = [&](std::int32_t v, const char* role) {
    if (seen[std::size_t(v)]) return;
    seen[std::size_t(v)] = true;
    tensors.push_back(json_of(plan, sizes, v, role));
  };
  for (const port& p : plan.inputs) add(p.value, "input");
  for (const parameter& p : plan.parameters) add(p.value, p.of_optimizer ? "state" : "parameter");
  for (const live_tensor& t : run.memory.largest) add(t.value, "in between");
  for (const port& p : plan.outputs) add(p.value, "output");
  return tensors;
}

inline ordered_json json_of(const plan_view& plan, const memory_record& m) {
  ordered_json largest = ordered_json::array();
  for (const live_tensor& t : m.largest)
    largest.push_back({{"value", t.value},
                       {"name", name_of_value(plan, t.value)},
                       {"text", describe(plan, plan.at(t.value))},
                       {"kind", name(t.kind)},
                       {"bytes", t.bytes}});
  return {{"peak", m.peak},
          {"capacity", m.limit},
          {"padding", m.padding},
          {"step", m.step},
          {"kinds", named_amounts<memory_kind>("kind", "bytes", m.bytes)},
          {"largest", std::move(largest)}};
}

}  // namespace detail

/// A simulated run and its plan, at these extents, as one JSON document. It has all numbers of the record, in seconds and bytes. Every step
/// has its text (`describe`) and, if it communicates, the reason (`describe_reason`). Spans of time have the row of their step in this
/// list. The document also has roofs, kinds of operations, the shardings of tensors and, if given, other runs for comparison. Throws
/// `gshard::error` if the record is not of this plan.
inline nlohmann::ordered_json run_json(const run_record& run, const plan_view& plan, const extents& sizes,
                                       const std::vector<sweep_row>& sweep = {}) {
  using json = nlohmann::ordered_json;
  json mesh = json::array(), steps = json::array(), kinds = json::array(), tracks = json::array(), links = json::array(),
       rows = json::array();
  for (std::size_t a = 0; a < run.axes.size() && a < run.extents.size(); ++a)
    mesh.push_back({{"axis", run.axes[a]}, {"extent", run.extents[a]}});
  const double whole = seconds_of_steps(run);
  double flops = 0;
  std::int64_t touched = 0, received = 0;
  for (const step_record& s : run.steps) {
    steps.push_back(detail::json_of(plan, s));
    flops += s.flops;
    touched += s.bytes_touched;
    received += s.bytes_received;
  }
  for (const kind_record& k : kinds_of(run, plan)) kinds.push_back(detail::json_of(k, whole));
  for (const device_track& t : run.tracks) tracks.push_back(detail::json_of(run, t));
  for (const link_load& l : run.links)
    links.push_back({{"from", l.from}, {"to", l.to}, {"bytes", l.bytes}, {"seconds", l.seconds}});
  for (const sweep_row& r : sweep)
    rows.push_back({{"mesh", r.mesh},
                    {"mapping", r.mapping},
                    {"seconds", r.seconds},
                    {"peak", r.peak},
                    {"capacity", r.limit},
                    {"fits", r.fits},
                    {"core_years", r.core_years},
                    {"problem", r.problem}});
  const roofs roof = roofs_of(run);
  return {{"format", "gshard run 1"},
          {"program", run.program},
          {"network", run.network},
          {"source", run.source},
          {"devices", detail::devices_of(run)},
          {"mesh", std::move(mesh)},
          {"chips", run.chips},
          {"cores_per_chip", run.cores_per_chip},
          {"chip_of", run.chip_of},
          {"seconds", run.seconds},
          {"measured_seconds", run.measured_seconds},
          {"flops", flops},
          {"bytes_touched", touched},
          {"bytes_received", received},
          {"received", run.received},
          {"between_nodes", run.between_nodes},
          {"roofs", {{"flops", roof.flops}, {"memory_bytes", roof.memory_bytes}, {"link_bytes", roof.link_bytes}}},
          {"parts", detail::named_amounts<step_part>("part", "seconds", run.parts)},
          {"kinds", std::move(kinds)},
          {"steps", std::move(steps)},
          {"tracks", std::move(tracks)},
          {"memory", detail::json_of(plan, run.memory)},
          {"links", std::move(links)},
          {"tensors", detail::tensors_of(run, plan, sizes)},
          {"assumptions", run.assumptions},
          {"sweep", std::move(rows)}};
}

}}  // namespace gshard::v0
