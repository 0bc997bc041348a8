// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/shapes.hpp"

#include "requests.hpp"

#include <random>

using namespace requests;

TEST_CASE("plan: transposed") {
  CHECK(output("transpose --mesh x=2 --in 8@x,6,5") == "5,6,8@x");
  CHECK(output("transpose --mesh x=2 --in 8@x,6,5 --perm 1,-1,0") == "6,5,8@x");
  CHECK(right("transpose --mesh x=3,y=2 --in 7@x,5@y,2 --perm 2,0,1 --out 2,7@y,5"));
  CHECK(refusal_of("transpose --mesh x=2 --in 8,6 --perm 0") == "--perm 0 has 1 dims: name all 2");
  CHECK(refusal_of("transpose --mesh x=2 --in 8,6 --perm 0,0") == "--perm 0,0 names dim 0 twice: name it once");
}

TEST_CASE("plan: a reshape that keeps blocks where they are moves nothing") {
  for (const char* options : {"--in 6@x,4 --out 24@x", "--in 24@x --out 6@x,4", "--in 6@x,4 --out 6@x,2,2", "--in 1,6@x --out 6@x",
                              "--in 6@x --out 6@x,1", "--in 6@x,4 --out 1,6@x,1,4", "--in 6@x,4 --out 12@x,2",
                              "--in 3,6@x,4 --out 3,12@x,2", "--in 6@x,4 --to 24", "--in 6@x,4 --to 2,-1"}) {
    CAPTURE(options);
    CHECK(facts(std::string("reshape --mesh x=2 ") + options).bytes == 0);
    CHECK(right(std::string("reshape --mesh x=2 ") + options));
  }
  CHECK(output("reshape --mesh x=2 --in 6@x,4 --to 24") == "24@x");
  CHECK(output("reshape --mesh x=2 --in 6@x,4 --to 2,-1") == "2@x,12");
  CHECK(output("reshape --mesh x=2 --in 1@x --to scalar") == "scalar");
}

TEST_CASE("plan: where blocks of the dims differ, their borders are exchanged") {
  CHECK(kinds("reshape --mesh x=4 --in 6@x,4 --out 24@x") == "reshape collective_permute");
  CHECK(facts("reshape --mesh x=4 --in 6@x,4 --out 24@x").bytes == 6 * 4);
}

TEST_CASE("plan: any shape to any other") {
  std::mt19937 gen(3);
  const auto random_shape = [&](std::int64_t elements) {
    std::vector<std::int64_t> extents(1 + gen() % 8, 1);
    for (const std::int64_t prime : {2, 2, 2, 3, 3, 5})
      if (elements % prime == 0) {
        extents[gen() % extents.size()] *= prime;
        elements /= prime;
      }
    pl::shape s{extents, gs::sharding::replicated(int(extents.size()))};
    for (int a = 0; a < 2; ++a)
      if (const auto d = int(gen() % unsigned(s.rank() + 1)); d < s.rank()) s.layout[d].push_back(a);
    return s;
  };
  const gs::mesh_shape mesh = pl::parse_mesh("x=3,y=2");
  for (int i = 0; i < 150; ++i) {
    const std::int64_t elements = 1 << gen() % 4 << (gen() % 2);
    const pl::shape from = random_shape(elements * 9), to = random_shape(elements * 9);
    if (pl::detail::elements_of(from.extents) != pl::detail::elements_of(to.extents)) continue;
    CHECK(right("reshape --mesh x=3,y=2 --in " + pl::text_of(from, mesh) + " --out " + pl::text_of(to, mesh)));
  }
}

TEST_CASE("plan: a reshape that is refused") {
  const auto said = [](const std::string& options) { return refusal_of("reshape --mesh x=2 " + options); };
  CHECK(said("--in 6,4 --out 23") == "\"6,4\" has 24 elements, \"23\" has not: give both as many");
  CHECK(said("--in 6,4 --to 5,-1") == "\"6,4\" has 24 elements, \"5,-1\" has not: give both as many");
  CHECK(said("--in 6,4 --to 99999999999,99999999999") == "\"6,4\" has 24 elements, \"99999999999,99999999999\" has not: give both as many");
  CHECK(said("--in 6,4 --to -1,-1") == "--to -1,-1: extents are at least 1, but for one that may be -1");
  CHECK(said("--in 6,4 --to 24@x").starts_with("malformed --to \"24@x\" at column 2"));
  CHECK(said("--in 6,4 --to 1,1,1,1,1,1,1,1,24").find("at most 8 dims") != std::string::npos);
  const std::string either = "say either --to 24, for a layout that comes cheapest, or --out 24@x";
  CHECK(said("--in 6,4") == either);
  CHECK(said("--in 6,4 --to 24 --out 24") == either);
}

TEST_CASE("plan: a reshard to another pending reduction is refused") {
  CHECK(refusal_of("reshard --mesh x=2 --from 8+max(x) --to 8+partial(x)").starts_with("what is pending in \"8+max(x)\""));
}
