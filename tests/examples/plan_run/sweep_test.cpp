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
  const gs::nn::translation_model model = *pr::find_model("12.5B");
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x8");
  pr::planner plans;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<gs::sweep_row> rows = pr::mesh_sweep(plans, model, {}).run(on);
  const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(rows.size());
  MESSAGE(rows.size(), " meshes, ", each, " s each");
  CHECK(each < 0.05);
  REQUIRE(rows.size() > 10);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(rows[i - 1].fits >= rows[i].fits);
    if (rows[i - 1].fits == rows[i].fits) CHECK(rows[i - 1].core_years <= rows[i].core_years);
  }
  for (const gs::sweep_row& r : rows) CHECK(r.fits == (r.peak <= r.capacity));
  const auto has = [&](const char* mesh, const char* hardware) {
    return std::any_of(rows.begin(), rows.end(), [&](const gs::sweep_row& r) { return r.mesh == mesh && r.mapping == hardware; });
  };
  CHECK(has("expert=128", "tpu-v3:8x8"));
  CHECK(has("expert=64", "tpu-v3:4x8"));
  CHECK(has("expert=128", "tpu-v3:8x8, by index"));
  CHECK(has("expert=128", "tpu-v3:8x8, overlapped"));
  const std::string table = pr::table(rows, 3);
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(table.find(rows[0].mesh) != std::string::npos);
}

TEST_CASE("plan a run: what a training costs") {
  gs::nn::translation_model m = *pr::find_model("600B");
  CHECK(pr::core_years(1 / 0.72, m, 2048) == doctest::Approx(22.4).epsilon(0.05));  // as the paper has it
  gs::run_record r;
  r.seconds = 1 / 0.72;
  CHECK(pr::training(r, m, 2048).find("238419 steps, 3.83 days, 21.4") != std::string::npos);
  CHECK(pr::about(m).find("619.") != std::string::npos);
}

TEST_CASE("plan a run: every device has a group of tokens, whose sentences are not longer") {
  const gs::nn::translation_model m = pr::with_groups(*pr::find_model("37B"), 2048);
  CHECK(m.groups == 2048);
  CHECK(m.sequence * m.sentences() * m.groups * 2 == m.tokens);
  CHECK_THROWS_AS(pr::with_groups(m, m.tokens), gs::error);
}
