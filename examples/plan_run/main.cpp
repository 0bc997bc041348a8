// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a training step of a mixture-of-experts Transformer on a mesh of TPU cores: its time and where it is spent, the memory of a core,
// the cost of the training, and cheaper meshes. Nothing is computed. MPI ranks would run the same plan. See --help.

#include "command_line.hpp"
#include "print.hpp"
#include "sweep.hpp"

#include <gshard/io/report/page.hpp>
#include <gshard/io/report/run_json.hpp>
#include <gshard/io/report/timeline.hpp>
#include <gshard/sim/report/link_map.hpp>

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
  const gs::hardware on = c.network.of(gs::parse_hardware(c.mesh));
  if (!on.is_torus() && !(c.links_svg + c.links_csv).empty())
    throw gs::error("--links-svg, --links-csv: " + on.name + " has no links to draw");
  const translation_model model = with_groups(c.model, on.devices());
  const mesh_axes axes = c.axes_on(on.devices());
  planner plans;
  const bound_plan plan = plans.plan(model, axes);
  gs::dry_run_options options = c.run;
  options.links = !(c.json + c.html + c.links_svg + c.links_csv).empty();
  gs::run_record r = simulate(plan, on, axes, options);
  r.program = c.plan;
  r.assumptions.push_back(fitted(c.run.share));
  std::cout << c.plan << ": " << about(model) << "\n\n" << gs::describe(r, plan.view()) << '\n'
            << training(r, model, on, fit_to_paper(plans, c.run)) << '\n';

  std::vector<gs::sweep_row> rows;
  if (c.sweep) {
    rows = mesh_sweep(plans, c.model, c.run).run(on, axes);
    std::cout << '\n' << table(rows, 12);
  }
  if (!c.json.empty()) write(c.json, gs::run_json(r, plan.view(), plan.sizes, rows).dump());
  if (!c.html.empty()) write(c.html, gs::run_page(r, plan.view(), plan.sizes, rows));
  if (!c.timeline.empty()) write(c.timeline, gs::timeline_json(r, plan.view()));
  if (!c.links_svg.empty()) write(c.links_svg, gs::link_map_svg(r));
  if (!c.links_csv.empty()) write(c.links_csv, gs::link_map_csv(r));
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
    std::cerr << "gshard-plan-run: " << e.what() << '\n';
    return 1;
  }
}
