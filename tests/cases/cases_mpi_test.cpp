// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cases of docs/bugs.md on MPI ranks, with some of the shardings: the same bits as on simulated devices.
#include "../exec/on_ranks.hpp"
#include "run_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

TEST_CASE("mpi: cases have the bits of simulated devices") {
  const int ranks = mpi_world::ranks();
  std::vector<std::vector<int>> meshes{{ranks}};
  if (ranks == 4) meshes.push_back({2, 2});
  const std::string page = (std::filesystem::path(__FILE__).parent_path() / "../../docs/bugs.md").string();
  int runs = 0;
  for (const cases::text_case& c : cases::read_cases(page)) {
    if (!cases::expected_error(c).empty()) continue;  // the case is refused before it runs
    for (const auto& sizes : c.sizes) {
      const cases::prepared_case p = cases::prepare(c, sizes);
      for (const std::vector<int>& mesh : meshes) {
        std::vector<cases::gt::setting> tried = cases::settings(c, p, mesh);
        std::shuffle(tried.begin(), tried.end(), std::mt19937(3));
        if (tried.size() > 3) tried.resize(3);
        for (const cases::gt::setting& s : tried) {
          std::string said;
          try {
            on_ranks::both program({.program = p.program, .setting = s, .sources = p.sources}, ++runs % 2 == 0);
            program.run();
            said = program.difference();
          } catch (const std::exception& e) {
            said = e.what();
          }
          if (said = on_ranks::of_all_ranks(said); !said.empty()) FAIL_CHECK(c.place() << ": " << cases::gt::text_of(s) << ": " << said);
        }
      }
    }
  }
  CHECK((ranks == 1 || on_ranks::received > 0));
}
