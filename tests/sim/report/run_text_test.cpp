// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/run_text.hpp>

#include "../../complaint.hpp"
#include "sample_run.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;

TEST_CASE("a run as tables: seconds, parts, operations, memory, what was assumed") {
  const gs::run_record& run = sample::small().record;
  const std::string text = gs::describe(run, sample::plan);
  INFO(text);
  CHECK(text.starts_with("a step of a mixture of experts takes " + gs::describe_seconds(run.seconds) +
                         " on 16 devices (data=2, expert=8) of TPU v3, torus of 4x2 chips\n"));
  CHECK(contains(text, "  devices 0-14: computing " + gs::describe_seconds(run.tracks[0].compute)));
  CHECK(contains(text, "  devices 15: computing " + gs::describe_seconds(run.tracks[1].compute)));
  CHECK(contains(text, "\n  received by each of 2 devices: 12 B at least, 34 B at most\nparts of the step, on the devices named first\n"));
  CHECK(contains(text, "\n  waiting "));
  CHECK(contains(text, "does not wait: together " + gs::describe_seconds(gs::seconds_of_steps(run)) + "\n  operation  "));
  CHECK(contains(text, "\n  dispatch/combine "));
  CHECK_FALSE(contains(text, "\n  attention "));  // takes no time
  CHECK(contains(text, "\n  all_to_all                 3       0 flop         0 B"));
  CHECK(contains(text, "memory of the fullest device: " + gs::describe_bytes(run.memory.peak) + " of 16.0 GiB, at step "));
  CHECK(contains(text, "\n  optimizer state "));
  CHECK(contains(text, " f32[E@expert,M,F] moe.wi\n"));
  CHECK(contains(text, "assumed\n  A link carries 70 GB/s"));
  CHECK(text.ends_with("source: made up for a test\n"));
}

TEST_CASE("a run with numbers prints the predicted and the measured seconds of each kind") {
  gs::run_record run = sample::small().record;
  CHECK_FALSE(contains(gs::describe(run, sample::plan), "predicted and measured"));
  run.seconds = 3;
  run.measured_seconds = 4;
  for (gs::step_record& s : run.steps) s.measured = s.seconds / 2;
  const std::string text = gs::describe(run, sample::plan);
  CHECK(contains(text, "\n  the run                        3 s         4 s    -25.0 %\n"));
  CHECK(contains(text, "    100.0 %\n"));
}

TEST_CASE("a run that needs more memory than there is prints that") {
  gs::run_record run = sample::small().record;
  run.memory.limit = run.memory.peak - 1;
  CHECK(contains(gs::describe(run, sample::plan), ": exceeds the limit"));
}

TEST_CASE("a run whose parts overlap says what they add up to") {
  gs::run_record run = sample::small().record;
  double whole = run.tracks[0].wait;
  for (const double part : run.parts) whole += part;
  run.seconds = whole / 2;
  CHECK(contains(gs::describe(run, sample::plan), "first, some at the same time: together " + gs::describe_seconds(whole) + "\n"));
  run.tracks.clear();
  const std::string alone = gs::describe(run, sample::plan);
  CHECK(contains(alone, "\nparts, some at the same time"));
  CHECK_FALSE(contains(alone, "\n  waiting "));
}

TEST_CASE("a run of which little is known is told, too") {
  CHECK(gs::describe(gs::run_record{}, gs::plan_view{}).starts_with("a step takes 0 ns on 1 devices ()\nparts\n"));
}

TEST_CASE("devices and amounts as text") {
  CHECK(gs::detail::devices_text({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(gs::detail::devices_text(std::vector<int>()) == "");
  CHECK(gs::detail::devices_text({0, 2, 4, 6, 8, 10, 12, 14}) == "0,2,4,6,8,10,12,14");
  CHECK(gs::detail::devices_text({0, 2, 4, 6, 8, 10, 12, 14, 16, 17}) == "0,2,4,6,8,10,12,14,...");
  CHECK(gs::describe_flops(0) == "0 flop");
  CHECK(gs::describe_flops(1500) == "1.5 kflop");
  CHECK(gs::describe_flops(2e18) == "2e+03 Pflop");
  CHECK(gs::detail::name_of_value(sample::plan, sample::plan.parameters[0].value) == sample::plan.parameters[0].name.view());
  CHECK(gs::detail::name_of_value(sample::plan, sample::plan.inputs[0].value) == "GSM");
  CHECK(gs::detail::name_of_value(sample::plan, sample::plan.parameters[0].updated) == sample::plan.parameters[0].name.view());
}
