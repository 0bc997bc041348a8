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

#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace planning;

/// Makes the request of the subcommand that was chosen.
using maker = std::function<request(const setting&)>;

void add_einsum(CLI::App& app, maker& chosen) {
  struct texts {
    std::string equation;
    std::vector<std::string> inputs;
    std::optional<std::string> output;
  };
  auto given = std::make_shared<texts>();
  CLI::App* command = app.add_subcommand("einsum", "sums of products of one or two tensors, in numpy's notation");
  command->add_option("equation", given->equation, "such as \"BMK,BNK->BMN\"")->required();
  command->add_option("--in", given->inputs, "shape of an operand; once per operand")
      ->required()
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--out", given->output, "shape of the result; without it, it lies as comes cheapest");
  command->callback([given, &chosen] {
    chosen = [given](const setting& s) { return einsum_request(s, given->equation, given->inputs, given->output); };
  });
}

void add_reshard(CLI::App& app, maker& chosen) {
  struct texts {
    std::string from, to;
  };
  auto given = std::make_shared<texts>();
  CLI::App* command = app.add_subcommand("reshard", "one tensor from one layout to another");
  command->add_option("--from", given->from, "shape before")->required();
  command->add_option("--to", given->to, "shape after")->required();
  command->callback([given, &chosen] { chosen = [given](const setting& s) { return reshard_request(s, given->from, given->to); }; });
}

/// All subcommands: a new one is a function like these and its name here.
constexpr auto subcommands = {add_einsum, add_reshard};

struct command_line {
  std::string mesh, type = "f32";
  bool json = false, check = false, draw = false, keep_partial = false;
  maker make;
};

void print(const plan_facts& f, std::optional<double> error, const command_line& c) {
  if (c.json) {
    nlohmann::ordered_json j = to_json(f);
    if (error) j["check"] = {{"largest_error", *error}, {"equal", *error == 0}};
    std::cout << j.dump(2) << '\n';
    return;
  }
  if (c.draw) {
    const bool colours = isatty(STDOUT_FILENO) == 1;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) std::cout << draw("input " + std::to_string(i), f.inputs[i], f.mesh, colours);
    std::cout << draw("output", f.output, f.mesh, colours);
  }
  std::cout << to_text(f);
  if (error) std::cout << "check  largest error " << *error << '\n';
}

/// The exit status: whether the plan computes what one device does.
int run(const command_line& c) {
  const request r = c.make({parse_mesh(c.mesh), c.type == "f64" ? gs::dtype::f64 : gs::dtype::f32, c.keep_partial});
  const planned p = make_plan(r);
  const std::optional<double> error = c.check ? std::optional(largest_error(r, p)) : std::nullopt;
  print(facts_of(p), error, c);
  return error.value_or(0) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  command_line c;
  CLI::App app("Plans one operation on a mesh of devices: what each of them computes, sends and receives.", "gshard-plan");
  app.footer(
      "A shape is written 4@x,24,100@(y,z)+partial(w): extents, the mesh axes that cut them, major to minor, and the axes over which\n"
      "a sum is still pending. Shards are the largest; bytes are what the planner counts for the device that receives most, exactly where\n"
      "the extents divide. Dims, devices and columns count from 0. The options before the subcommand may also stand behind it.");
  app.fallthrough();
  app.require_subcommand(1);
  app.add_option("--mesh", c.mesh, "axes of the mesh with their extents, such as x=2,y=4")->required();
  app.add_option("--dtype", c.type, "element type")->check(CLI::IsMember({"f32", "f64"}))->capture_default_str();
  CLI::Option* json = app.add_flag("--json", c.json, "print the plan as JSON");
  app.add_flag("--check", c.check, "run it on simulated devices and on one, and compare");
  app.add_flag("--draw", c.draw, "draw how inputs and output lie on the mesh")->excludes(json);
  app.add_flag("--keep-partial", c.keep_partial, "without --out: leave pending sums pending");
  for (const auto add : subcommands) add(app, c.make);
  try {
    app.parse(argc, argv);
    return run(c);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::cerr << "gshard-plan: " << e.what() << '\n';
    return 1;
  }
}
