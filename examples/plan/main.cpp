// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans one operation on a mesh from the command line, with the planner that the compiler runs. Reads plan files. See --help.

#include "check.hpp"
#include "command_line.hpp"
#include "draw.hpp"
#include "facts.hpp"
#include "json.hpp"
#include "print.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cstddef>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace planning;

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
    const bool colors = isatty(STDOUT_FILENO) == 1;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) std::cout << draw("input " + std::to_string(i), f.inputs[i], f.mesh, colors);
    for (const tensor_facts& o : f.outputs) std::cout << draw("output", o, f.mesh, colors);
  }
  std::cout << to_text(f);
  if (!checked) return;
  std::cout << "check  largest error " << checked->largest_error;
  if (checked->allowed > 0) std::cout << ", allowed " << checked->allowed;
  std::cout << (checked->equal() ? "" : ": differs") << "  received " << bytes_text(checked->received) << '\n';
}

/// Returns the exit status: 0 if the result on the mesh equals the result on one device.
int run(const command_line& c) {
  if (c.action) return c.action();
  const request r = c.make();
  const planned p = make_plan(r, [&](std::string_view pass, const gs::plan_view& program) {
    if (c.passes) std::cout << "after " << pass << ": " << gs::describe(program);
  });
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
  command_parser parser;
  bool checks = false;
  try {
    const command_line& c = parser.parse({argv + 1, argv + argc});
    checks = c.check;
    return run(c);
  } catch (const CLI::Success& e) {
    return parser.exit(e);
  } catch (const CLI::RequiredError& e) {
    const std::string what = e.what();
    if (what.find("subcommand") != std::string::npos)
      return refuse((argc > 1 && argv[1][0] != '-' ? "there is no subcommand \"" + std::string(argv[1]) + "\": " : "") +
                    "name a subcommand, such as einsum or conv: gshard-plan --help lists them");
    return refuse(what + "; see gshard-plan SUBCOMMAND --help");
  } catch (const CLI::ParseError& e) {
    return refuse(std::string(e.what()) + "; see gshard-plan --help, and --help of its subcommands");
  } catch (const refusal& e) {
    return refuse(e.what());
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory for this plan: make the extents or the mesh smaller");
  } catch (const std::exception& e) {
    return refuse("this plan cannot be " + std::string(checks ? "checked: " : "made: ") + e.what());
  }
}
