// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mesh.hpp"
#include "refusal.hpp"
#include "scanner.hpp"

#include <gshard/io/plan/plan_file.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/report/run_text.hpp>
#include <gshard/sim/run/dry_run.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The subcommands that read plan files: show, diff, price and check.
namespace planning {

namespace detail {

inline gs::runtime_plan read(const std::string& path, gs::plan_digest digest = gs::plan_digest::checked) {
  return gs::read_plan(path, gs::plan_functions::of_any_name(), digest);
}

/// The lines of a plan without the numbers of values, in order.
inline std::vector<std::string> lines_of(const gs::plan_view& plan) {
  std::vector<std::string> lines(1);
  bool in_number = false;
  for (const char c : gs::describe(plan)) {
    in_number = c == '%' || (in_number && c >= '0' && c <= '9');
    if (c == '\n') lines.emplace_back();
    else if (!in_number) lines.back() += c;
  }
  lines.pop_back();
  return lines;
}

/// The extents of letters: `G=16,S=64`.
inline gs::dims parse_sizes(std::string_view text) {
  gs::dims sizes;
  if (text.empty()) return sizes;
  scanner in("sizes", text, "G=16,S=64");
  do {
    const std::string_view letter = in.axis();
    if (letter.size() != 1 || !gs::is_letter(letter[0])) in.fail("expected a letter");
    in.expect("=");
    sizes.set(letter[0], in.extent(std::numeric_limits<std::int64_t>::max()));
  } while (in.accept(","));
  in.expect_end();
  return sizes;
}

/// The extents of a plan: those that it states, and the given ones.
inline gs::extents bound_extents(const gs::plan_view& plan, const gs::dims& sizes, const gs::mesh_shape& given) {
  std::vector<int> axes;
  for (int a = 0; a < given.rank(); ++a)
    if (const std::string name(given.name(a)); plan.mesh.find(name) < 0)
      throw refusal("the plan has no axis \"" + name + "\": it has " + names_of(plan.mesh));
  for (int a = 0; a < plan.mesh.rank(); ++a) {
    const int at = given.find(plan.mesh.name(a)), stated = plan.mesh.static_extent(a);
    if (at < 0 && stated == gs::dynamic)
      throw refusal("the axis \"" + std::string(plan.mesh.name(a)) + "\" has no extent: state it, as in --axes " +
                    std::string(plan.mesh.name(a)) + "=8");
    const int extent = at < 0 ? stated : given.static_extent(at);
    if (stated != gs::dynamic && extent != stated)
      throw refusal("the plan is for " + std::string(plan.mesh.name(a)) + "=" + std::to_string(stated) + ": make another for " +
                    std::to_string(extent) + " devices");
    axes.push_back(extent);
  }
  return plan.bind(sizes, axes);
}

}  // namespace detail

/// Prints a plan: its inputs, parameters, steps and outputs, and the reasons of its communication.
inline int show(const std::string& path) {
  std::cout << gs::describe(detail::read(path).plan());
  return 0;
}

/// Prints the lines that only one of two plans has, as `diff` does. Returns 1 if there are any.
inline int diff(const std::string& before, const std::string& after) {
  const auto old_lines = detail::lines_of(detail::read(before).plan()), new_lines = detail::lines_of(detail::read(after).plan());
  std::map<std::string, int> count;  // in the new plan, less those in the old one
  for (const std::string& l : new_lines) ++count[l];
  for (const std::string& l : old_lines) --count[l];
  bool equal = true;
  const auto print = [&](const std::vector<std::string>& lines, int sign, const char* mark) {
    for (const std::string& l : lines)
      if (int& left = count[l]; left * sign > 0) {
        left -= sign;
        equal = false;
        std::cout << mark << l << '\n';
      }
  };
  print(old_lines, -1, "- ");
  print(new_lines, 1, "+ ");
  return equal ? 0 : 1;
}

/// Prints what a plan receives at these sizes, and the time and memory of a step on hardware, if it is given.
inline int price(const std::string& path, const std::string& sizes, const std::string& mesh, const std::string& hardware) {
  const gs::runtime_plan read = detail::read(path);
  const gs::plan_view& plan = read.plan();
  const gs::extents e = detail::bound_extents(plan, detail::parse_sizes(sizes), mesh.empty() ? gs::mesh_shape{} : parse_mesh(mesh));
  std::cout << gs::describe_communication(plan, e);
  if (hardware.empty()) return 0;
  std::cout << gs::describe(gs::dry_run(plan, e, gs::parse_hardware(hardware), {.report_only = true}), plan);
  return 0;
}

/// Checks a plan file. `accept`: writes it again with the digest of its rows, which somebody has changed.
inline int check_file(const std::string& path, bool accept) {
  const gs::runtime_plan read = detail::read(path, accept ? gs::plan_digest::ignored : gs::plan_digest::checked);
  if (accept) {
    const gs::plan_functions functions = gs::plan_functions::of_any_name();
    gs::save_plan(path, gs::read_plan(path, functions, gs::plan_digest::ignored).plan(), functions);
  }
  std::cout << path << ": " << read.plan().steps.size() << " steps, " << read.plan().collectives() << " of them communicate\n";
  return 0;
}

/// Adds the subcommands. The chosen one becomes `action`.
inline void add_file_commands(CLI::App& app, std::function<int()>& action) {
  struct words {
    std::string first, second, sizes, mesh, hardware;
    bool accept = false;
  };
  const auto w = std::make_shared<words>();
  const auto add = [&](const char* name, const char* what) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_option("file", w->first, "a plan file, as save_plan writes it")->required();
    return sub;
  };
  add("show", "print the plan of a file")->callback([&action, w] { action = [w] { return show(w->first); }; });
  CLI::App* const differ = add("diff", "print the lines that only one of two plans has");
  differ->add_option("other", w->second, "the other plan file")->required();
  differ->callback([&action, w] { action = [w] { return diff(w->first, w->second); }; });
  CLI::App* const priced = add("price", "print the bytes that a plan receives at given extents, and its time and memory on hardware");
  priced->add_option("--sizes", w->sizes, "the extents of its letters, such as G=16,S=64");
  priced->add_option("--axes", w->mesh, "the extents of mesh axes that the plan leaves open, such as expert=8");
  priced->add_option("--on", w->hardware, "hardware: a preset and its chips, such as tpu-v3:4x4");
  priced->callback([&action, w] { action = [w] { return price(w->first, w->sizes, w->mesh, w->hardware); }; });
  CLI::App* const checked = add("check", "check the rows of a plan file, and their digest");
  checked->add_flag("--accept", w->accept, "the rows were changed on purpose: check them, and write their digest");
  checked->callback([&action, w] { action = [w] { return check_file(w->first, w->accept); }; });
}

}  // namespace planning
