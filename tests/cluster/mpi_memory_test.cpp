// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../mpi_world.hpp"

#include <gshard/cluster/mpi.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {
gs::mpi_backend on_all(bool shared) { return {MPI_COMM_WORLD, {mpi_world::ranks()}, gs::mpi_options{.shared_memory = shared}}; }
}  // namespace

TEST_CASE("mpi: memory is shared where it is asked for, by processes of one node") {
  CHECK(!on_all(false).shares_memory());
  CHECK(on_all(true).shares_memory());  // all ranks of tests are on one node
}

TEST_CASE("mpi: every process reads what the others wrote, and writes over it after all have met") {
  gs::mpi_backend b = on_all(true);
  const int n = mpi_world::ranks(), me = mpi_world::rank();
  std::int64_t elsewhere = 0;
  for (const std::int64_t bytes : {0, 8, 1000, 100000}) {
    const std::int64_t mine = bytes * (me + 1);
    const std::shared_ptr<std::byte> memory = b.share(mine);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
    const std::vector<const std::byte*> asked{memory.get() + mine, reinterpret_cast<const std::byte*>(&elsewhere), memory.get(), nullptr};
    const std::vector<const std::byte*> all = b.find_shared(asked);
    REQUIRE(all.size() == std::size_t(4 * n));
    for (int turn = 0; turn < 20; ++turn) {
      std::memset(memory.get(), me + turn, std::size_t(mine));
      b.barrier(1);
      for (int rank = 0; rank < n; ++rank) {
        const std::byte* const first = all[std::size_t(4 * rank + 2)];
        CHECK(all[std::size_t(4 * rank)] == first + bytes * (rank + 1));
        CHECK(all[std::size_t(4 * rank + 1)] == nullptr);
        CHECK(all[std::size_t(4 * rank + 3)] == nullptr);
        std::int64_t wrong = 0;
        for (std::int64_t k = 0; k < bytes * (rank + 1); ++k) wrong += first[k] != std::byte(rank + turn);
        CHECK(wrong == 0);
      }
      b.barrier(1);
    }
  }
}

TEST_CASE("mpi: more memory than the node has is an error on all processes, which can go on") {
  gs::mpi_backend b = on_all(true);
  if (mpi_world::ranks() == 1) return;  // then it uses no shared memory
  CHECK_THROWS_WITH_AS(b.share(std::int64_t(1) << (mpi_world::rank() == 0 ? 45 : 10)), doctest::Contains("there is no shared memory for"),
                       gs::error);
  CHECK(b.share(100) != nullptr);
}

TEST_CASE("mpi: memory given back is taken again; what is in use anywhere is not") {
  gs::mpi_backend b = on_all(true);
  const int me = mpi_world::rank();
  std::shared_ptr<std::byte> first = b.share(5000);
  std::byte* const where = first.get();
  const std::shared_ptr<std::byte> second = b.share(4000);
  CHECK(second.get() != where);
  first.reset();
  first = b.share(3000 + me);
  CHECK(first.get() == where);
  if (me == mpi_world::ranks() - 1) first.reset();
  const std::shared_ptr<std::byte> third = b.share(10);
  CHECK((third.get() != where || mpi_world::ranks() == 1));
  CHECK(third.get() != second.get());
}

TEST_CASE("mpi: random lifetimes never share bytes") {
  gs::mpi_backend b = on_all(true);
  std::mt19937 gen(5), mine(std::uint32_t(mpi_world::rank() + 1));
  struct block {
    std::shared_ptr<std::byte> memory;
    std::size_t bytes = 0;
    int mark = 0;
  };
  std::vector<block> blocks;
  for (int turn = 0; turn < 200; ++turn) {
    const auto bytes = std::size_t(gen() % 3000);
    blocks.push_back({b.share(std::int64_t(bytes)), bytes, turn % 251});
    std::memset(blocks.back().memory.get(), turn % 251, bytes);
    while (blocks.size() > 1 && mine() % 2) blocks.erase(blocks.begin() + std::ptrdiff_t(mine() % blocks.size()));  // differs by rank
    for (const block& k : blocks)
      for (std::size_t i = 0; i < k.bytes; i += 97) CHECK(k.memory.get()[i] == std::byte(k.mark));
  }
}
