// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Block-cyclic matrices of ScaLAPACK become tensors.
#include "../../complaint.hpp"

#include <gshard/exec/tensor/local_blocks.hpp>
#include <gshard/exec/tensor/scalapack.hpp>

#include <doctest/doctest.h>

#include <array>

namespace gs = gshard;

TEST_CASE("local blocks: a block-cyclic matrix of ScaLAPACK") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({2, 2});
  const std::int64_t m = 11, n = 7, mb = 2, nb = 3;
  const int first_row = 1, first_column = 0;
  std::vector<std::vector<double>> memory(4);
  std::vector<gs::local_block<double>> blocks;
  for (int p = 0; p < 4; ++p) {
    const int row = p / 2, column = p % 2;
    const auto owned = [](std::int64_t extent, std::int64_t block, int at, int first) {  // indices of a process, as numroc counts them
      std::vector<std::int64_t> all;
      for (std::int64_t i = 0; i < extent; ++i)
        if ((int(i / block) + first) % 2 == at) all.push_back(i);
      return all;
    };
    const auto rows = owned(m, mb, row, first_row), columns = owned(n, nb, column, first_column);
    const auto leading = std::int64_t(rows.size()) + 1;
    memory[std::size_t(p)].assign(std::size_t(leading) * columns.size(), -1);
    for (std::size_t j = 0; j < columns.size(); ++j)
      for (std::size_t i = 0; i < rows.size(); ++i)
        memory[std::size_t(p)][i + j * std::size_t(leading)] = double(rows[i] * n + columns[j]);
    const std::array<int, 9> descriptor{1, 0, int(m), int(n), int(mb), int(nb), first_row, first_column, int(leading)};
    for (auto& b : gs::scalapack_blocks(memory[std::size_t(p)].data(), descriptor, {2, 2, row, column})) {
      b.device = std::size_t(p);
      blocks.push_back(b);
    }
  }
  const auto t = gs::from_local_blocks<gs::P<"x", "y">>(on, {m, n}, blocks);
  gs::for_each_local_shard(t, [](const gs::shard_view<const double>& s) {
    gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t local) { CHECK(s.data[local] == double(global)); });
  });
  const int large = 2147483647;  // grids and blocks whose sum overflows int
  CHECK(gs::scalapack_blocks(memory[0].data(), std::array{1, 0, large, 5, large, large, 0, 0, large}, {large, large, 1, 1}).empty());
  std::array<int, 9> wrong{1, 0, 4, 4, 2, 2, 0, 0, 1};
  CHECK(gs::scalapack_blocks(static_cast<double*>(nullptr), wrong, {-1, -1, -1, -1}).empty());  // a process outside the grid
  double one = 0;
  CHECK(complaint([&] { gs::scalapack_blocks(&one, wrong, {1, 1, 0, 0}); }) ==
        "scalapack_blocks: the leading dimension is 1, this process has 4 rows");
  wrong[0] = 501;
  CHECK(complaint([&] { gs::scalapack_blocks(&one, wrong, {1, 1, 0, 0}); }) ==
        "scalapack_blocks: a descriptor of type 501; dense matrices have type 1");
}
