// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The time to simulate a training step of 600 billion weights on 2048 cores: its plan made at run time, one point of a sweep over meshes,
// and the load of every link. The last case has 4096 cores that all exchange data.
// usage: bench_dry_run [rounds]
#include <gshard/sim/network/link_loads.hpp>
#include <gshard/sim/run/dry_run.hpp>

#include "plan_run/translation_model.hpp"
#include "timing.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace gs = gshard;

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 9;
  const plan_run::translation_model model;
  gs::mesh_shape mesh;
  mesh.push_back("expert", 2048);
  const auto planned = [&] { return plan_run::plan_of(model, mesh); };
  const gs::hardware pod = gs::parse_hardware("tpu-v3:32x32"), two_pods = gs::parse_hardware("tpu-v3:64x32");
  const gs::plan_tables plan = planned();
  const gs::extents sizes = plan.view().bind(model.dims(), std::array{2048});
  gs::run_record step;
  double busiest = 0;
  const auto sides = bench::compare(
      "dry run",
      {{"plan and step",
        [&] {
          const gs::plan_tables p = planned();
          step = gs::dry_run(p.view(), p.view().bind(model.dims(), std::array{2048}), pod);
        }},
       {"sweep point", [&] { step = gs::dry_run(plan.view(), sizes, pod); }},
       {"link loads of 4096 cores",
        [&] {
          const gs::link_loads loads(gs::torus_mesh(two_pods.topology), [](int from, int to) { return from == to ? 0.0 : 1e3; });
          busiest = loads.busiest();
        }}},
      rounds, false);
  std::printf("{\"case\": \"dry run\", \"side\": \"gshard\", \"ms for plan and step of 600B on 2048 cores\": %.1f, "
              "\"ms for a point of a sweep\": %.1f, \"ms for link loads of 4096 cores\": %.1f, \"simulated s of the step\": %.3f, "
              "\"simulated us of the busiest link\": %.1f}\n",
              1e3 * bench::median(sides[0].seconds), 1e3 * bench::median(sides[1].seconds), 1e3 * bench::median(sides[2].seconds),
              step.seconds, 1e6 * busiest);
}
