// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/windows.hpp"

#include "requests.hpp"

#include <gshard/testing/all_shardings.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace requests;

TEST_CASE("plan: slices") {
  CHECK(output("slice --mesh x=2 --in 8@x,6 --start 0,2 --stop 8,6 --stride 3,1") == "3@x,4");
  CHECK(output("slice --mesh x=2 --in 8@x,6 --start -4 --stop -1 --dim 1") == "8@x,3");
  CHECK(kinds("slice --mesh x=2 --in 8@x,6 --start 2 --dim 1") == "strided_slice");
  CHECK(kinds("slice --mesh x=2 --in 8@x,6").empty());
  const pl::plan_facts f = facts("slice --mesh x=2 --in 8@x,6 --start 2 --dims 0");
  CHECK(kinds(f) == "collective_permute strided_slice");
  CHECK(f.steps[0].out[0].local == std::vector<std::int64_t>{3, 6});
  CHECK(f.bytes == 6 * 4);
  for (const char* options : {"--start 1,0 --stop 7,5", "--start 5,0 --stop 6,5 --out 1@x,5", "--stride 3,2",
                              "--start 1 --dims 0 --out 6,5@(y,x)", "--start 6 --dims 0", "--stop 1,1 --out 1,1@x"})
    CHECK(right(std::string("slice --mesh x=3,y=2 --in 7@x,5@y ") + options));
  const auto said = [](const std::string& options) { return refusal_of("slice --mesh x=2 --in 8@x,6 " + options); };
  CHECK(said("--start 2") == "--start 2: give one number per dim, or say with --dims which dim it is for");
  CHECK(said("--stop 8,7") == "--stop 7 of dim 1, whose extent is 6, is outside it");
  CHECK(said("--start 3,3 --stop 3,6") == "--start 3 of dim 0, whose extent is 8, leaves nothing before --stop 3");
  CHECK(said("--start 1,2,3").starts_with("--start 1,2,3 has 3 numbers for 2 dims"));
}

TEST_CASE("plan: padding") {
  CHECK(output("pad --mesh x=2 --in 8@x,6 --low 1,0 --high 1,2 --interior 2,0") == "24@x,8");
  CHECK(output("pad --mesh x=2 --in 8@x,6 --low 1 --high -1 --dim -1") == "8@x,6");
  CHECK(kinds("pad --mesh x=2 --in 8@x,6").empty());
  for (const char* options : {"--low 1,2 --high 1,0 --value 2.5", "--low -1,0 --high 3,-2", "--interior 1,2 --value -inf",
                              "--low 9 --dims 0 --out 16,5@x", "--low 1,1 --high 1,1 --out 9@(y,x),7"})
    CHECK(right(std::string("pad --mesh x=3,y=2 --in 7@x,5@y ") + options));
  CHECK(refusal_of("pad --mesh x=2 --in 4 --low -2 --high -2").starts_with("dim 0 of the result is empty"));
  CHECK(refusal_of("pad --mesh x=2 --in 4 --interior -1") == "--interior -1: expected a number from 0 to 999999999");
}

TEST_CASE("plan: reversed and rolled") {
  for (const char* what : {"reverse", "reverse --dims 0", "reverse --dims 1 --out 7,5@x", "roll --shift 3 --dims 0", "roll --shift -9,1",
                           "roll --shift 2 --dims 1 --out 7@(x,y),5", "roll --shift 1 --dims 0,1"})
    CHECK(right(std::string(what) + " --mesh x=3,y=2 --in 7@x,5@y"));
  CHECK(kinds("roll --mesh x=2 --in 8@x --shift 16").empty());
  CHECK(facts("roll --mesh x=4 --in 8@x,3 --dims 0 --shift 1").bytes == 3 * 4);
  CHECK(facts("reverse --mesh x=4 --in 8@x,3 --dims 0").bytes == 2 * 3 * 4);
  CHECK(refusal_of("roll --mesh x=2 --in 8@x,3 --shift 1").find("say with --dims") != std::string::npos);
}

namespace {

/// The bytes of its shard of the reversed tensor that a device lacks, on the device that lacks most.
std::int64_t lacking_when_reversed(const pl::request& r, const std::vector<bool>& reversed) {
  const std::vector<int> mesh(r.mesh.extents.begin(), r.mesh.extents.begin() + r.mesh.rank());
  const auto block = [&](const pl::shape& s, int d, int device) {
    const auto at = std::find(s.order.begin(), s.order.end(), device);
    const int position = s.order.empty() ? device : int(at - s.order.begin());
    return gs::block_of(s.extents[std::size_t(d)], s.layout[d], mesh, gs::coordinates_of(mesh, position));
  };
  std::int64_t most = 0;
  for (int device = 0; device < gs::device_count(mesh); ++device) {
    std::int64_t wanted = 1, there = 1;
    for (int d = 0; d < r.output->rank(); ++d) {
      const std::int64_t extent = r.output->extents[std::size_t(d)];
      gs::interval reads = block(*r.output, d, device);
      if (reversed[std::size_t(d)]) reads = {extent - reads.end, extent - reads.begin};
      wanted *= reads.size();
      there *= reads.common(block(r.inputs[0].is, d, device)).size();
    }
    most = std::max(most, (wanted - there) * gs::size_of(r.inputs[0].type));
  }
  return most;
}

bool has_empty_shards(const pl::shape& s, const pl::request& r) {
  for (int d = 0; d < s.rank(); ++d) {
    std::int64_t pieces = 1;
    for (int i = 0; i < s.layout[d].size(); ++i) pieces *= r.mesh.extents[std::size_t(s.layout[d][i])];
    const std::int64_t extent = s.extents[std::size_t(d)], block = (extent + pieces - 1) / pieces;
    if (block * (pieces - 1) >= extent && pieces > 1) return true;
  }
  return false;
}

/// True if a reversal is a single exchange of only the missing elements, or nothing.
bool moves_once(const pl::request& r, const std::vector<bool>& reversed) {
  CAPTURE(pl::text_of(r.inputs[0].is, r.mesh));
  CAPTURE(pl::text_of(*r.output, r.mesh));
  const pl::plan_facts f = facts(r);
  CAPTURE(kinds(f));
  int exchanges = 0;
  for (const pl::step_facts& step : f.steps) exchanges += step.bytes > 0;
  // The planner prices gathers by blocks of one size. If blocks are empty, they look too cheap compared with an exchange for another
  // layout.
  const pl::shape &from = r.inputs[0].is, &to = *r.output;
  const bool looks_cheap = !from.layout.same_layout(to.layout) && (has_empty_shards(from, r) || has_empty_shards(to, r));
  if (looks_cheap) CHECK(f.bytes >= lacking_when_reversed(r, reversed));
  else CHECK(f.bytes == lacking_when_reversed(r, reversed));
  CHECK(exchanges == (f.bytes > 0));
  return right(r);
}

}  // namespace

TEST_CASE("plan: reversed onto devices in another order: one exchange of what is lacking") {
  CHECK(facts("reverse --mesh x=2 --in 3@x --out 3@x+order(1,0)").bytes == 4);
  CHECK(facts("reverse --mesh x=2 --in 4@x --out 4@x+order(1,0)").bytes == 0);
  CHECK(facts("reverse --mesh x=4 --in 5@x+order(3,2,1,0) --out 5@x").bytes == 8);  // of blocks of 2, 2, 1 and 0
  std::mt19937 gen(1);
  const auto pick = [&](std::size_t n) { return gen() % n; };
  for (int i = 0; i < 3000; ++i) {
    const bool plane = pick(2) != 0;
    const std::string a = std::to_string(1 + pick(9)), shape = a + "," + std::to_string(1 + pick(5));
    const char* const dims[] = {"0", "1", "0,1"};
    const auto which = pick(3);
    const std::string mesh = plane ? "x=2,y=2" : "x=3";
    pl::request r = request_of("reverse --mesh " + mesh + " --in " + shape + " --out " + shape + " --dims " + dims[which]);
    const std::vector<gs::sharding> all = gshard::testing::all_shardings(2, r.mesh.rank(), false);
    const auto lay = [&](pl::shape& s) {
      s.layout = all[pick(all.size())];
      if (!s.layout.used() || pick(3) == 0) return;
      s.order.resize(plane ? 4 : 3);
      std::iota(s.order.begin(), s.order.end(), 0);
      if (pick(2)) std::reverse(s.order.begin(), s.order.end());
      else std::shuffle(s.order.begin(), s.order.end(), gen);
      if (std::is_sorted(s.order.begin(), s.order.end())) s.order.clear();
    };
    lay(r.inputs[0].is);
    lay(*r.output);
    constexpr gs::dtype types[] = {gs::dtype::f32, gs::dtype::f64, gs::dtype::i32};
    r.inputs[0].type = types[pick(3)];
    r.inputs[0].below = 100;
    CHECK(moves_once(r, {which != 1, which != 0}));
  }
}

TEST_CASE("plan: concatenated") {
  CHECK(output("concat --mesh x=2 --in 4@x,6 --in 4@x,2 --dim -1") == "4@x,8");
  CHECK(kinds("concat --mesh x=2 --in 4@x,6 --in 4@x,2 --dim 1") == "concat");
  for (const char* options :
       {"--in 7@x,5@y --in 2@x,5", "--in 7@x,5@y --in 1,5 --in 7@(y,x),5 --out 15@x,5", "--in 3,4 --in 2@x,4 --out 5,4@y", "--in 3@x,4"})
    CHECK(right(std::string("concat --mesh x=3,y=2 ") + options));
  const auto said = [](const std::string& options) { return refusal_of("concat --mesh x=2 " + options); };
  CHECK(said("--in 4,6 --in 4,5") == "dim 1 of \"4,5\" differs from that of the first operand: only dim 0 may");
  CHECK(said("--in 4,6 --in 4").find("give all operands the same number of dims") != std::string::npos);
  CHECK(said("--in 1 --in 1 --in 1 --in 1 --in 1 --in 1 --in 1 --in 1") == "concat takes at most 7 operands, not 8");
  CHECK(said("--in scalar").find("a scalar has no dim") != std::string::npos);
}
