// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans one operation on a mesh from the command line, with the planner that the compiler runs. See --help.

#include "check.hpp"
#include "commands.hpp"
#include "draw.hpp"
#include "facts.hpp"
#include "json.hpp"
#include "print.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace planning;

struct command_line {
  std::string mesh, type = "f32";
  bool json = false, check = false, draw = false, keep_partial = false;
  std::int64_t loop_above = setting{}.loop_above;
  const command* chosen = nullptr;
  arguments given;
};

void add(CLI::App& app, const option& o, arguments& given) {
  const auto take = [&given, key = o.key()](const std::vector<std::string>& texts) {
    for (const std::string& t : texts) given.add(key, t);
    return true;
  };
  if (o.kind == option::takes::nothing) {
    app.add_flag(o.names, o.what)->each([&given, key = o.key()](const std::string& t) { given.add(key, t); });
    return;
  }
  CLI::Option* added = app.add_option(o.names, take, o.what)->required(o.required)->expected(1)->take_all();
  if (added->get_positional()) return;
  added->allow_extra_args(false);
}

/// A subcommand with its options, and at the end of its help the example.
void add(CLI::App& app, const command& c, command_line& line) {
  CLI::App* sub = app.add_subcommand(c.name, c.what);
  for (const option& o : c.options) add(*sub, o, line.given);
  sub->footer("--mesh x=2,y=4 is required; --dtype, --check, --json, --draw, --keep-partial and --loop-above are options of every subcommand: gshard-plan --help.\n"
              "A shape is written 4@x,24,100@(y,z)+partial(w), see there.\n\nExample:\n  gshard-plan " + c.name + " " + c.example + " --check");
  sub->callback([&] { line.chosen = &c; });
}

void print(const plan_facts& f, const std::optional<comparison>& checked, const command_line& c) {
  if (c.json) {
    nlohmann::ordered_json j = to_json(f);
    if (checked) j["check"] = {{"largest_error", checked->largest_error},
                               {"allowed", checked->allowed},
                               {"equal", checked->equal()},
                               {"bytes_received", checked->received}};
    std::cout << j.dump(2) << '\n';
    return;
  }
  if (c.draw) {
    const bool colours = isatty(STDOUT_FILENO) == 1;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) std::cout << draw("input " + std::to_string(i), f.inputs[i], f.mesh, colours);
    for (const tensor_facts& o : f.outputs) std::cout << draw("output", o, f.mesh, colours);
  }
  std::cout << to_text(f);
  if (!checked) return;
  std::cout << "check  largest error " << checked->largest_error;
  if (checked->allowed > 0) std::cout << ", allowed " << checked->allowed;
  std::cout << (checked->equal() ? "" : ": differs") << "  received " << bytes_text(checked->received) << '\n';
}

/// The exit status: whether the plan computes what one device does.
int run(command_line& c) {
  if (c.mesh.empty()) throw refusal("--mesh is missing: name the axes and their extents, as in --mesh x=2,y=4");
  c.given.on = {parse_mesh(c.mesh), c.type == "f64" ? gs::dtype::f64 : gs::dtype::f32, c.keep_partial, c.loop_above};
  const request r = c.chosen->make(c.given);
  const planned p = make_plan(r);
  const std::optional<comparison> checked = c.check ? std::optional(compare(r, p)) : std::nullopt;
  print(facts_of(p), checked, c);
  return checked.value_or(comparison{}).equal() ? 0 : 1;
}

int refuse(const std::string& why) {
  std::cerr << "gshard-plan: " << why << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<command> all = commands();
  command_line c;
  CLI::App app("Plans one operation on a mesh of devices: what each of them computes, sends and receives.", "gshard-plan");
  app.footer(
      "A shape is written 4@x,24,100@(y,z)+partial(w): extents, the mesh axes that cut them, major to minor, and the axes over which a sum is\n"
      "still pending (or +max(w), +min(w), +prod(w)); a tensor without dims is a scalar. Extents need not divide: blocks are rounded up.\n"
      "One line per step: its name, how its axes move, the shapes and the largest shards before and after, the bytes that the device receives\n"
      "that receives most (exactly on at most 256 devices; beyond, exactly where the extents divide), and the groups that communicate. Flops\n"
      "are 2 for every product of an einsum or a convolution, and 1 for every element of the other operations that compute.\n"
      "Dims, devices and columns count from 0. The options before the subcommand may also stand behind it.\n"
      "The exit status is 1 where a check differs or the request is refused.\n\nExample:\n  gshard-plan " + all[0].name + " " + all[0].example + " --check");
  app.fallthrough();
  app.require_subcommand(1);
  app.add_option("--mesh", c.mesh, "axes of the mesh with their extents, such as x=2,y=4; required");
  app.add_option("--dtype", c.type, "element type")->check(CLI::IsMember({"f32", "f64"}))->capture_default_str();
  CLI::Option* json = app.add_flag("--json", c.json, "print the plan as JSON");
  app.add_flag("--check", c.check, "run it on simulated devices and on one, and compare");
  app.add_flag("--draw", c.draw, "draw how inputs and outputs lie on the mesh")->excludes(json);
  app.add_flag("--keep-partial", c.keep_partial, "without --out: leave pending sums pending");
  app.add_option("--loop-above", c.loop_above, "einsums gather operands, and scatter sums, of more bytes per device block by block")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  for (const command& one : all) add(app, one, c);
  // "-inf" is a number, not options.
  std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = words.size(); i-- > 1;)
    if (words[i].starts_with("-i") && words[i - 1].starts_with("--")) {
      words[i - 1] += "=" + words[i];
      words.erase(words.begin() + std::ptrdiff_t(i));
    }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(words);
    return run(c);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return refuse(std::string(e.what()) + "; see gshard-plan --help, and --help of its subcommands");
  } catch (const refusal& e) {
    return refuse(e.what());
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory for this plan: make the extents or the mesh smaller");
  } catch (const std::exception& e) {
    return refuse("this plan cannot be " + std::string(c.check ? "checked: " : "made: ") + e.what());
  }
}
