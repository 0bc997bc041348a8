// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs and their gradients, in random layouts on random meshes, against one device.
#include "random_program_shrink.hpp"
#include "random_program_text.hpp"
#include "random_program_writer.hpp"

#include <array>
#include <cstdlib>
#include <set>
#include <string>

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
