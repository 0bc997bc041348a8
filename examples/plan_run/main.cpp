// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a training step of a mixture-of-experts Transformer for a mesh of TPU cores: how long it takes, where the time goes, what a core
// holds, what the training costs, and which meshes are cheaper. Nothing is computed; the plan is what MPI ranks would run. See --help.

#include "command_line.hpp"
#include "print.hpp"
#include "sweep.hpp"

#include <gshard/report/page.hpp>
#include <gshard/report/run_json.hpp>
#include <gshard/report/timeline.hpp>

#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace plan_run;

void write(const std::string& file, const std::string& text) {
  std::ofstream to(file, std::ios::binary);
  if (!(to << text) || !to.flush()) throw gs::error("cannot write " + file);
  std::cout << "wrote " << file << '\n';
}

void run(const command_line& c) {
  gs::hardware on = gs::parse_hardware(c.mesh);
  if (c.link_bytes > 0) on.topology.link_bytes = on.device.link_bytes = c.link_bytes;
  const gs::nn::translation_model model = with_groups(c.model, on.devices());
  planner plans;
  const bound_plan plan = plans.plan(model, c.axes_on(on.devices()));
  gs::dry_run_options options = c.run;
  options.links = !c.json.empty() || !c.html.empty();
  gs::run_record r = gs::dry_run(plan.view(), plan.sizes, on, options);
  r.program = c.plan;
  std::cout << c.plan << ": " << about(model) << "\n\n" << gs::describe(r, plan.view()) << '\n' << training(r, model, on.devices()) << '\n';

  std::vector<gs::sweep_row> rows;
  if (c.sweep) {
    rows = mesh_sweep(plans, c.model, c.run).run(on);
    std::cout << '\n' << table(rows, 12);
  }
  if (!c.json.empty()) write(c.json, gs::run_json(r, plan.view(), plan.sizes, rows).dump());
  if (!c.html.empty()) write(c.html, gs::run_page(r, plan.view(), plan.sizes, rows));
  if (!c.timeline.empty()) write(c.timeline, gs::timeline_json(r, plan.view()));
}

}  // namespace

int main(int argc, char** argv) {
  command_line c;
  command_parser parser(c);
  try {
    parser.parse(argc, argv);
    run(c);
    return 0;
  } catch (const CLI::Error& e) {
    return parser.exit(e);
  } catch (const std::exception& e) {
    std::cerr << "plan-run: " << e.what() << '\n';
    return 1;
  }
}
