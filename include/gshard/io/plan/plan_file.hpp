// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plan files: plans as JSON, to keep, compare, price and run.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/version.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/digest.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/json_field.hpp>
#include <gshard/io/plan/plan_json.hpp>
#include <gshard/io/plan/plan_reader.hpp>
#include <gshard/runtime/plan_functions.hpp>
#include <gshard/runtime/runtime_plan.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

inline constexpr std::string_view plan_format = "gshard plan 1";
/// The lists of a plan file, each with one row per line.
inline constexpr std::array<const char*, 9> plan_lists{"mesh",   "dims",       "windows", "orders", "values",
                                                       "parameters", "inputs", "outputs", "steps"};

/// The digest of a document: of its rows, however they are laid out.
inline std::string digest_of_plan(const nlohmann::ordered_json& document) {
  digest d;
  for (const char* const name : plan_lists) {
    d.add(std::string_view(name));
    if (const auto list = document.find(name); list != document.end() && list->is_array())
      for (const auto& row : *list) d.add("\n" + row.dump());
  }
  return d.hex();
}

}  // namespace detail

/// A plan as the text of a plan file. Equal plans have equal texts. Throws `gshard::error` if a function of the plan has no name.
inline std::string plan_text(const plan_view& plan, const plan_functions& functions = {}) {
  using json = nlohmann::ordered_json;
  const detail::plan_json rows(plan, functions);
  json document;
  for (const char* const name : detail::plan_lists) document[name] = json::array();
  for (int a = 0; a < plan.mesh.rank(); ++a) document["mesh"].push_back(rows.axis(a));
  const auto add = [&](const char* name, const auto& all, std::size_t from = 0) {
    for (std::size_t i = from; i < all.size(); ++i) document[name].push_back(rows.row(all[i]));
  };
  add("dims", plan.dims);
  add("windows", plan.windows, 1);
  const auto devices = std::size_t(plan.mesh.static_devices());
  for (std::size_t i = 0; i < plan.orders.size(); i += devices) {
    json& row = document["orders"].emplace_back(json::array());
    for (std::size_t k = i; k < i + devices; ++k) row.push_back(plan.orders[k]);
  }
  add("values", plan.values);
  add("parameters", plan.parameters);
  add("inputs", plan.inputs);
  add("outputs", plan.outputs);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) document["steps"].push_back(rows.step(i));

  const auto line = [](const char* name, std::string_view text) { return "\"" + std::string(name) + "\": " + json(text).dump(); };
  std::string text = "{\n" + line("format", detail::plan_format) + ",\n" + line("library", version) + ",\n" +
                     line("digest", detail::digest_of_plan(document));
  for (const char* const name : detail::plan_lists) {
    text.append(",\n\"").append(name).append("\": [");
    std::size_t n = 0;
    for (const json& row : document[name]) text.append(n++ ? ",\n" : "\n").append(row.dump());
    text += n ? "\n]" : "]";
  }
  return text + "\n}\n";
}

/// Whether `read_plan` refuses a plan whose digest is not that of its rows, because somebody has changed them.
enum class plan_digest { checked, ignored };

/// Reads the text of a plan file; `file`: its name in messages. @see read_plan
inline runtime_plan parse_plan(std::string_view text, const std::string& file, const plan_functions& functions = {},
                               plan_digest digest = plan_digest::checked) {
  using json = nlohmann::ordered_json;
  const std::string name = "plan file '" + file + "'";
  const auto check_depth = [&](int depth, json::parse_event_t, json&) {  // before code that recurses
    if (depth > 5) throw error(name + ": is nested too deep");
    return true;
  };
  const json document = json::parse(text, check_depth, false);
  const detail::json_field root(document, name);
  if (document.is_discarded()) root.fail("is not JSON");
  root["format"].one_of(std::array{detail::plan_format});
  root.only({"format", "library", "digest", "mesh", "dims", "windows", "orders", "values", "parameters", "inputs", "outputs", "steps"});
  if (digest == plan_digest::checked && root["digest"].text() != detail::digest_of_plan(document))
    root["digest"].fail("is not that of the rows: the file was changed after it was written");
  return runtime_plan(detail::plan_reader(root, functions).take());
}

/// Writes a plan to a file, which is replaced atomically. The plan is that of a `program` or of a `runtime_program`.
///
///     gs::save_plan("layer.plan", gs::program<layer, mesh, gs::in<"GSM">>::plan);
///
/// Communicates: nothing. One process writes the file.
/// Throws `gshard::error` if the file cannot be written; if a function of the plan has no name.
/// @see read_plan, plan_functions
inline void save_plan(const std::string& path, const plan_view& plan, const plan_functions& functions = {}) {
  atomic_file file(path, 0644);
  const std::string text = plan_text(plan, functions);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

/// Reads a plan from a file. `runtime_executable` runs it, reports describe and price it.
///
/// Every row is checked: the plan refers to nothing that it does not have, and its steps are in an order in which they can run. A plan is a
/// program: as with a program, run those of people whom you trust.
/// Communicates: nothing. Every process reads the file; they compare their plans before the first step that communicates.
/// Throws `gshard::error` that names the file and the field: if it cannot be read, has an unknown format, was changed after it was written,
/// or if `functions` does not have one of its functions.
/// @see save_plan, runtime_executable
inline runtime_plan read_plan(const std::string& path, const plan_functions& functions = {}, plan_digest digest = plan_digest::checked) {
  const input_file file(path);
  std::string text(std::size_t(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return parse_plan(text, path, functions, digest);
}

}}  // namespace gshard::v0
