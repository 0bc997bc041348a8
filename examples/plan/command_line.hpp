// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "commands.hpp"
#include "plan_files.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Parses the command line, for the program and for code that writes requests as command lines.
namespace planning {

namespace detail {

inline const std::string about_all =
    "A shape is written 4@x,24,100@(y,z)+partial(w): extents, the mesh axes that shard them, major to minor, and the axes over which a sum is\n"
    "still pending (or +max(w), +min(w), +prod(w)); a tensor without dims is a scalar. Extents need not divide: blocks are rounded up. 8@x+order(1,0)\n"
    "is on the devices in this order instead of the mesh's.\n"
    "One line per step: its name, how its axes move, the shapes and the largest shards before and after, the bytes that the device receives\n"
    "that receives most (exactly on at most 256 devices; beyond, exactly where the extents divide), and the groups that communicate. Flops\n"
    "are 2 for every product of an einsum or a convolution, and 1 for every element of the other operations that compute.\n"
    "Dims, devices and columns count from 0. The options before the subcommand may also stand behind it.\n"
    "The exit status is 1 where a check differs or the request is refused.";
inline const std::string about_one =
    "--mesh x=2,y=4 is required; --dtype, --check, --json, --draw, --passes, --keep-partial and --loop-above are options of every subcommand: gshard-plan --help.\n"
    "A shape is written 4@x,24,100@(y,z)+partial(w), see there.";

}  // namespace detail

/// A parsed command line.
struct command_line {
  std::string mesh, type = "f32";
  bool json = false, check = false, draw = false, passes = false, keep_partial = false;
  std::int64_t loop_above = setting{}.loop_above;
  const command* chosen = nullptr;
  std::function<int()> action;  ///< Of a subcommand that reads plan files, in place of `chosen`.
  arguments given;

  request make() const {
    if (mesh.empty()) throw refusal("--mesh is missing: name the axes and their extents, as in --mesh x=2,y=4");
    arguments a = given;
    a.on = {parse_mesh(mesh), type == "f64" ? gs::dtype::f64 : gs::dtype::f32, keep_partial, loop_above};
    return chosen->make(a);
  }
};

/// Reads command lines of gshard-plan, one after the other.
class command_parser {
 public:
  command_parser() {
    app_.footer(detail::about_all + example_of(all_[0]));
    app_.fallthrough();
    app_.require_subcommand(1);
    app_.add_option("--mesh", line_.mesh, "axes of the mesh with their extents, such as x=2,y=4; required");
    app_.add_option("--dtype", line_.type, "element type")->check(CLI::IsMember({"f32", "f64"}))->capture_default_str();
    CLI::Option* json = app_.add_flag("--json", line_.json, "print the plan as JSON");
    app_.add_flag("--check", line_.check, "run it on simulated devices and on one, and compare");
    app_.add_flag("--draw", line_.draw, "draw the shardings of inputs and outputs")->excludes(json);
    app_.add_flag("--passes", line_.passes, "print the program before the first pass of the planner and after each")->excludes(json);
    app_.add_flag("--keep-partial", line_.keep_partial, "without --out: leave partial sums pending");
    app_.add_option("--loop-above", line_.loop_above, "einsums gather operands, and scatter sums, of more bytes per device block by block")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    for (const command& c : all_) add(c);
    add_file_commands(app_, line_.action);
  }
  command_parser(const command_parser&) = delete;
  command_parser& operator=(const command_parser&) = delete;

  /// Throws CLI::Success if help was requested, and CLI::ParseError if the words are invalid.
  const command_line& parse(std::vector<std::string> words) {
    // "-inf" is a number, not options.
    for (std::size_t i = words.size(); i-- > 1;)
      if (words[i].starts_with("-i") && words[i - 1].starts_with("--")) {
        words[i - 1] += "=" + words[i];
        words.erase(words.begin() + std::ptrdiff_t(i));
      }
    std::reverse(words.begin(), words.end());  // the order that CLI11 expects
    line_ = {};
    app_.parse(std::move(words));
    return line_;
  }
  /// Prints the message of such an error, and returns the exit status.
  int exit(const CLI::Error& e) const { return app_.exit(e); }

 private:
  std::vector<command> all_ = commands();
  command_line line_;
  CLI::App app_{"Plans one operation on a mesh of devices: what each of them computes, sends and receives.", "gshard-plan"};

  static std::string example_of(const command& c) { return "\n\nExample:\n  gshard-plan " + c.name + " " + c.example + " --check"; }

  void add(CLI::App& app, const option& o) {
    const auto take = [this, key = o.key()](const std::vector<std::string>& texts) {
      for (const std::string& t : texts) line_.given.add(key, t);
      return true;
    };
    if (o.kind == option::takes::nothing) {
      app.add_flag(o.names, o.what)->each([this, key = o.key()](const std::string& t) { line_.given.add(key, t); });
      return;
    }
    CLI::Option* added = app.add_option(o.names, take, o.what)->required(o.required)->expected(1)->take_all();
    if (added->get_positional()) return;
    added->allow_extra_args(false);
  }
  /// Adds a subcommand with its options. Its help ends with the example.
  void add(const command& c) {
    CLI::App* sub = app_.add_subcommand(c.name, c.what);
    for (const option& o : c.options) add(*sub, o);
    sub->footer(detail::about_one + example_of(c));
    sub->callback([this, &c] { line_.chosen = &c; });
  }
};

}  // namespace planning
