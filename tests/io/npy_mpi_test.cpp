// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/io/npy.hpp>

#include "../complaint.hpp"
#include "shared_scratch.hpp"
#include "tensor_cases.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
using namespace tensor_cases;
using mpi_world::rank, mpi_world::ranks;

namespace {

bool last() { return rank() == ranks() - 1; }

}  // namespace

TEST_CASE("npy, mpi: every sharding writes the same file, and any other mesh reads it") {
  const shared_scratch dir;
  for (const std::vector<int>& shape : {gs::balanced_extents(ranks(), std::vector(2, gs::dynamic)), std::vector{1, ranks()}}) {
    const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, shape);
    CAPTURE(gs::detail::mesh_text(shape));
    each_tensor([&]<class T, class Spec>(std::type_identity<gs::tensor<T, Spec>>, const numbers& extents) {
      gs::tensor<T, Spec> t(on, extents);
      fill(t);
      gs::save_npy(dir / "f.npy", t);
      CHECK(content_of(dir / "f.npy") == gs::npy_header_text(gs::dtype_of<T>, extents) + bytes_of<T>(extents));
      CHECK(wrong(gs::load_npy<T, Spec>(on, dir / "f.npy")) == 0);
      if (rank() == 0) {
        CHECK(wrong(gs::load_npy<T, Spec>(gs::simulate<mesh>({2, 3}), dir / "f.npy")) == 0);
        gs::tensor<T, Spec> simulated(gs::simulate<mesh>({3, 2}), extents);
        fill(simulated);
        gs::save_npy(dir / "g.npy", simulated);
      }
      CHECK(wrong(gs::load_npy<T, Spec>(on, dir / "g.npy")) == 0);
    });
  }
  if (rank() == 0) CHECK(dir.entries() == 2);
}

TEST_CASE("npy, mpi: if one rank cannot write, all say so, and the old file stays") {
  const shared_scratch dir;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {ranks(), 1});
  gs::tensor<float, P<"x">> t(on, {64});
  fill(t);
  if (rank() == 0) set_content(dir / "f.npy", "old");
  std::optional<small_disk> disk;
  if (last()) disk.emplace(150);
  const std::string said = complaint([&] { gs::save_npy(dir / "f.npy", t); });
  disk.reset();
  CHECK(contains(said, "File too large"));
  CHECK(said.starts_with("rank " + std::to_string(ranks() - 1) + " failed: ") == !last());
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(content_of(dir / "f.npy") == "old");
  if (rank() == 0) CHECK(dir.entries() == 1);
  CHECK(contains(complaint([&] { gs::save_npy(dir / "none/f.npy", t); }), "No such file or directory"));
  gs::save_npy(dir / "f.npy", t);
  CHECK(wrong(gs::load_npy<float, P<"y">>(on, dir / "f.npy")) == 0);
}

TEST_CASE("npy, mpi: ranks whose path is another file are told") {
  if (ranks() == 1) return;
  const shared_scratch dir;
  const scratch mine;
  const std::filesystem::path before = std::filesystem::current_path();
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {ranks(), 1});
  gs::tensor<float, P<"x">> t(on, {64});
  fill(t);
  if (last()) std::filesystem::current_path(mine / "");
  else std::filesystem::current_path(dir / "");
  const std::string saved = complaint([&] { gs::save_npy("f.npy", t); });
  CHECK(contains(saved, "f.npy: is not the leader's file on this process; the path must name the same file on all processes"));
  CHECK(mine.entries() == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) CHECK(dir.entries() == 0);

  const std::string content = gs::npy_header_text(gs::dtype::f32, numbers{64}) + bytes_of<float>({64});
  if (rank() == 0) set_content("f.npy", content);
  CHECK(contains(complaint([&] { gs::load_npy<float, P<"x">>(on, "f.npy"); }), "f.npy: cannot be opened: No such file or directory"));
  if (last()) set_content("f.npy", content);
  CHECK(wrong(gs::load_npy<float, P<"x">>(on, "f.npy")) == 0);  // a copy
  if (last()) set_content("f.npy", content.substr(0, content.size() - 1) + "?");
  const std::string loaded = complaint([&] { gs::load_npy<float, P<"x">>(on, "f.npy"); });
  CHECK(contains(loaded,
                 "load_npy of f.npy: the processes disagree on the file, whose path must name the same content on all processes: rank"));
  CHECK(contains(loaded, ", rank " + std::to_string(ranks() - 1) + " has 384 bytes with hash "));
  std::filesystem::current_path(before);
}

TEST_CASE("npy, mpi: ranks with other paths, extents or files that do not fit are told") {
  if (ranks() == 1) return;
  const shared_scratch dir;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {ranks(), 1});
  gs::tensor<float, P<"x">> t(on, {64}), other(on, {65});
  fill(t);
  CHECK(contains(complaint([&] { gs::save_npy(dir / (last() ? "g.npy" : "f.npy"), t); }), "the processes make different calls: rank"));
  CHECK(contains(complaint([&] { gs::save_npy(dir / "f.npy", last() ? other : t); }),
                 ": the processes disagree on the extents of the tensor: rank"));
  gs::save_npy(dir / "f.npy", t);
  CHECK(contains(complaint([&] { gs::load_npy<float, P<"x">>(on, dir / (last() ? "g.npy" : "f.npy")); }),
                 "the processes make different calls: rank"));
  CHECK(contains(complaint([&] { gs::load_npy<double, P<"x">>(on, dir / "f.npy"); }), "has 1 dims of float, not the tensor's 1 of double"));
  const std::string said = complaint([&] {
    if (last()) gs::load_npy<float, P<"x">>(on, dir / "f.npy");
    else gs::load_npy<float, P<none>>(on, dir / "f.npy");
  });
  CHECK(contains(said, ": the processes disagree on the first elements of the shards: rank"));
}
