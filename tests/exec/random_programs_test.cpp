// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs and their gradients, in random layouts on random meshes, against one device.
#include "random_program_shrink.hpp"
#include "random_program_text.hpp"
#include "random_program_writer.hpp"

#include <array>
#include <cstdlib>
#include <string>

namespace gs = gshard;
using gs::symbol;

namespace {

std::uint32_t environment(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::uint32_t(std::strtoul(text, nullptr, 10)) : otherwise;
}

}  // namespace

TEST_CASE("random programs and their gradients are the same on every mesh") {
  const std::uint32_t first = environment("GSHARD_RANDOM_FIRST", 0), seeds = environment("GSHARD_RANDOM_SEEDS", 300);
  std::array<int, std::size_t(random_program::verb::count_)> uses{};
  int failures = 0;
  for (std::uint32_t seed = first; seed < first + seeds && failures < 10; ++seed) {
    CAPTURE(seed);
    const random_program::recipe r = random_program::written(seed);
    for (const random_program::step& s : r.steps) ++uses[std::size_t(s.what)];
    const std::string said = random_program::failure(r);
    if (said.empty()) continue;
    ++failures;
    const random_program::recipe small = random_program::shrunk(r, random_program::failure);
    FAIL_CHECK("seed " << seed << ": " << said << "\nsmall program: " << random_program::failure(small) << "\n" << random_program::code_of(small));
  }
  if (seeds >= 300)
    for (std::size_t v = 0; v < uses.size(); ++v) CHECK_MESSAGE(uses[v] > 0, "verb ", v, " was never written");
}

TEST_CASE("pending sums do not run together with other pending reductions") {
  CHECK(on_mesh::failure({.mesh = {2}, .dims = {{'A', 1}, {'B', 1}}},
                         {{{"A"}, on_mesh::layout_of(gs::P<"x">{}), 1}, {{"B"}, on_mesh::layout_of(gs::P<"x">{}), 2}},
                         [](const gs::parameter_scope&, std::span<const symbol> x) {
                           return gs::list<symbol>{gs::sum<"a->">(x[0]) + gs::reduce_max<"a->">(x[1])};
                         }) == "");
}

TEST_CASE("a failure is made small and printed as code") {
  // As if a cumsum were wrong in programs with annotations.
  const auto wrong = [](const random_program::recipe& r) -> std::string {
    const std::string said = random_program::failure(r);
    for (const random_program::step& s : r.steps)
      if (s.what == random_program::verb::cumsum)
        for (const random_program::step& a : r.steps)
          if (a.what == random_program::verb::annotate && a.layout.used()) return "wrong";
    return said;
  };
  int found = 0;
  for (std::uint32_t seed = 0; found < 5; ++seed) {
    const random_program::recipe r = random_program::written(seed);
    if (wrong(r).empty()) continue;
    ++found;
    CAPTURE(seed);
    const random_program::recipe small = random_program::shrunk(r, wrong);
    CHECK(wrong(small) == "wrong");
    CHECK(small.steps.size() <= 4);
    CHECK(small.on.mesh == std::vector{1});
    for (std::size_t i = 0; i < small.on.dims.count; ++i) CHECK(small.on.dims.entries[i].extent <= 1);
    CHECK(small.results.size() + small.gradients.size() <= 3);
    const std::string code = random_program::code_of(small);
    CHECK(code.find("gs::cumsum(v") != std::string::npos);
    CHECK(code.find("gs::annotate(v") != std::string::npos);
    CHECK(code.find(".mesh = {1}") != std::string::npos);
  }
}

TEST_CASE("a dim whose extent is not known does not make an exchange look empty") {
  CHECK(on_mesh::failure({.mesh = {1, 1, 2}, .dims = {{'A', 2}, {'B', 1}, {'L', 1}}, .known_axes = "z", .known_dims = "AB", .keep_pending = false},
      {{{"BA"}, on_mesh::layout_of(gs::P<gs::none, gs::none>{}), 2963406}, {{"LA"}, on_mesh::layout_of(gs::P<gs::none, gs::none>{}), 6593024}},
      []([[maybe_unused]] const gs::parameter_scope& m, std::span<const symbol> x) {
    return gs::list<symbol>{gs::annotate(gs::roll(gs::conv<"PQ,pZ->ZP">(x[0], x[1], {{1, 0, 0, 1, 1}}), 0, 1), gs::P<"z", gs::none>{})};
  }) == "");
}
