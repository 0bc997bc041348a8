// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks with different rounding, or different flushing of subnormal numbers, do not diverge silently.
#include <gshard/exec/process/float_environment.hpp>

#include <gshard/cluster/mpi.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"
#include "../backend/float_modes.hpp"

#include <doctest/doctest.h>

#include <cfenv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using float_modes::mode;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi: a cluster of ranks in different floating-point environments is refused on all; in one environment it is not") {
  std::vector<std::pair<int, unsigned>> modes{{FE_UPWARD, 0}, {FE_DOWNWARD, 0}, {FE_TOWARDZERO, 0}};
  if (float_modes::can_flush) modes.emplace_back(FE_TONEAREST, float_modes::flush_results | float_modes::flush_operands);
  if (float_modes::flushes_apart) modes.emplace_back(FE_TONEAREST, float_modes::flush_results);
  if (float_modes::flushes_apart) modes.emplace_back(FE_TONEAREST, float_modes::flush_operands);
  for (const auto& [rounding, flush] : modes) {
    std::string text;
    for (const int odd : {0, ranks() - 1}) {
      std::optional<mode> here;
      if (rank() == odd) here.emplace(rounding, flush);
      const std::string said = complaint([&] { gs::mpi_backend(MPI_COMM_WORLD, {ranks()}); });
      CAPTURE(said);
      if (ranks() == 1) CHECK(said.empty());
      else CHECK(contains(said, "making a cluster of MPI processes: the processes disagree on the floating-point environment: "));
      here.emplace(rounding, flush);
      text = gs::detail::float_environment::here().text();
      if (ranks() > 1) CHECK(contains(said, "rank " + std::to_string(odd) + " has " + text));
    }
    const mode same(rounding, flush);
    gs::mpi_backend on(MPI_COMM_WORLD, {ranks()});
    CHECK(on.changed_environment().empty());
    const mode before(FE_TONEAREST);
    CHECK((rounding == FE_TONEAREST || contains(on.changed_environment(), "it was " + text + ", it is rounding to nearest")));
  }
}
