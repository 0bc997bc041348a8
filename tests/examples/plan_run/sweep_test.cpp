// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_run/print.hpp"
#include "plan_run/sweep.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace gs = gshard;
namespace pr = plan_run;

TEST_CASE("plan a run: other meshes, the cheapest that fit first") {
  const plan_run::translation_model model = *pr::find_model("12.5B");
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x8");
  pr::planner plans;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<gs::sweep_row> rows = pr::mesh_sweep(plans, model, {}).run(on, pr::default_axes(model, on.devices()));
  const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(rows.size());
  MESSAGE(rows.size(), " meshes, ", each, " s each");
  REQUIRE(rows.size() > 10);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(rows[i - 1].fits >= rows[i].fits);
    if (rows[i - 1].fits == rows[i].fits) CHECK(rows[i - 1].core_years <= rows[i].core_years);
  }
  for (const gs::sweep_row& r : rows) CHECK(r.fits == (r.peak <= r.limit));
  const auto has = [&](const char* mesh, const char* hardware) {
    return std::any_of(rows.begin(), rows.end(), [&](const gs::sweep_row& r) { return r.mesh == mesh && r.mapping == hardware; });
  };
  CHECK(has("expert=128", "tpu-v3:8x8"));
  CHECK(has("expert=64", "tpu-v3:4x8"));
  CHECK(has("expert=128", "tpu-v3:8x8, by index"));
  CHECK(has("expert=128", "tpu-v3:8x8, overlapped"));
  CHECK(has("expert=128", "tpu-v3:4x16"));
  CHECK(has("expert=128", "tpu-v3:16x4"));
  CHECK(has("expert=128", "tpu-v3:32x2"));
  const std::string table = pr::table(rows, 3);
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(table.find(rows[0].mesh) != std::string::npos);
  CHECK(table.starts_with(std::to_string(rows.size()) + " ways tried, the best 3, the cheapest first "));
  CHECK(table.find(' ' + gs::describe_seconds(rows[0].seconds) + ' ') != std::string::npos);  // as printed for the run itself
  CHECK(pr::table(rows, rows.size()).starts_with(std::to_string(rows.size()) + " ways tried, the cheapest first "));
}

TEST_CASE("plan a run: changed hardware stays changed in all rows") {
  const plan_run::translation_model model = *pr::find_model("12.5B");
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x8");
  gs::hardware slow = on;
  slow.topology.link_bytes /= 10;
  pr::planner plans;
  const pr::mesh_axes axes = pr::default_axes(model, on.devices());
  const auto fast_rows = pr::mesh_sweep(plans, model, {}).run(on, axes), slow_rows = pr::mesh_sweep(plans, model, {}).run(slow, axes);
  REQUIRE(fast_rows.size() == slow_rows.size());
  int halves = 0;
  for (const gs::sweep_row& f : fast_rows)
    for (const gs::sweep_row& s : slow_rows)
      if (f.mesh == s.mesh && f.mapping == s.mapping && f.mapping == "tpu-v3:4x8") {
        CHECK(s.seconds > 1.5 * f.seconds);
        ++halves;
      }
  CHECK(halves > 0);
}

TEST_CASE("plan a run: a row that cannot run says why, the last of all") {
  plan_run::translation_model model = *pr::find_model("12.5B");
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x8");
  gs::dry_run_options options;
  options.faults.stragglers = {{100, 2.0}};  // of 128 devices: a half has no such device
  pr::planner plans;
  const auto rows = pr::mesh_sweep(plans, model, options).run(on, pr::default_axes(model, on.devices()));
  REQUIRE(rows.front().problem.empty());
  CHECK(rows.back().problem == "faults: straggler 100 is not one of 32 devices");
  CHECK(!rows.back().fits);
  CHECK(pr::table(rows, 3).find(rows.back().problem) != std::string::npos);
}

TEST_CASE("plan a run: the order of axes, and other shapes of the torus, are other mappings") {
  const plan_run::translation_model model = *pr::find_model("12.5B");
  pr::mesh_axes axes = pr::make_axes(8, 16, 1);
  pr::planner plans;
  const auto rows = pr::mesh_sweep(plans, model, {}).run(gs::parse_hardware("tpu-v3:8x8"), axes);
  const auto row = [&](const char* mesh, const char* hardware) {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.mesh == mesh && r.mapping == hardware; });
    return at == rows.end() ? gs::sweep_row{} : *at;
  };
  CHECK(row("data=8, expert=16", "tpu-v3:8x8").seconds > 0);
  CHECK(row("expert=16, data=8", "tpu-v3:8x8").seconds > 0);
  CHECK(row("data=8, expert=16", "tpu-v3:4x16").seconds > 0);
  CHECK(row("data=8, expert=16", "tpu-v3:4x16").seconds != row("data=8, expert=16", "tpu-v3:8x8").seconds);
}

TEST_CASE("plan a run: the error of the simulation is printed with the cost") {
  pr::planner plans;
  const pr::paper_fit fit = pr::fit_to_paper(plans, {});
  MESSAGE("fit ", fit.factor, ", after it ", fit.least, " to ", fit.most);
  CHECK(fit.least >= 0.5);
  CHECK(fit.least < 1);
  CHECK(fit.most > 1);
  CHECK(fit.most <= 2);
  gs::dry_run_options slow;
  slow.share.products /= 2;
  slow.faults.stragglers = {{2047, 2.0}};  // faults do not count
  CHECK(pr::fit_to_paper(plans, slow).factor > fit.factor);
}

TEST_CASE("plan a run: what a training costs") {
  plan_run::translation_model m = *pr::find_model("600B");
  CHECK(pr::core_years(1 / 0.72, m, 2048) == doctest::Approx(22.4).epsilon(0.05));  // as in the paper
  gs::run_record r;
  r.seconds = 1 / 0.72;
  const gs::hardware on = gs::parse_hardware("tpu-v3:32x32");
  const std::string plain = pr::training(r, m, on, {});
  CHECK(plain.find("238419 steps, 3.83 days, 21.4") != std::string::npos);
  CHECK(plain.find(" core-years (a core: one of the 2 cores of a chip of tpu-v3)\n") != std::string::npos);
  CHECK(pr::what_a_core_is(gs::parse_hardware("tpu-v4:4x4x4")) == "a chip of tpu-v4");
  CHECK(pr::what_a_core_is(gs::parse_hardware("aries:8")) == "a device of aries");
  const std::string fitted = pr::training(r, m, on, {0.5, 0.7, 1.8});
  CHECK(fitted.find("take 0.500 of the time that it measured, each 0.70 to 1.80 times that") != std::string::npos);
  CHECK(fitted.find("by this fit 7.67 days") != std::string::npos);
  CHECK(pr::about(m).find("619.") != std::string::npos);
  m.layers = 7;
  CHECK(pr::about(m).starts_with("7 layers, 3 of them in the encoder, 2048 experts in 3 layers"));
}

TEST_CASE("plan a run: which of the numbers are fitted") {
  gs::efficiency share;
  CHECK(pr::fitted(share) == "how often routing goes over its tensors, and the share of the memory's rate: both fitted, not physical");
  share.memory = 0.5;  // set by the user
  CHECK(pr::fitted(share) == "how often routing goes over its tensors: fitted, not physical");
}

TEST_CASE("plan a run: every device has a group of tokens, whose sentences are not longer") {
  const plan_run::translation_model m = pr::with_groups(*pr::find_model("37B"), 2048);
  CHECK(m.groups == 2048);
  CHECK(m.sequence * m.sentences() * m.groups * 2 == m.tokens);
  CHECK_THROWS_AS(pr::with_groups(m, m.tokens), gs::error);
}
