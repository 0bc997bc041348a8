// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/io/hdf5.hpp>

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

[[maybe_unused]] bool last() { return rank() == ranks() - 1; }
gs::cluster<mesh> on_world() { return gs::on_mpi<mesh>(MPI_COMM_WORLD, {ranks(), 1}); }

}  // namespace

#ifdef H5_HAVE_PARALLEL

TEST_CASE("hdf5, mpi: every sharding writes its hyperslabs, and any other mesh reads the same bits") {
  const shared_scratch dir;
  for (const std::vector<int>& shape : {gs::balanced_extents(ranks(), std::vector(2, gs::dynamic)), std::vector{1, ranks()}}) {
    const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, shape);
    CAPTURE(gs::detail::mesh_text(shape));
    each_tensor([&]<class T, class Spec>(std::type_identity<gs::tensor<T, Spec>>, const numbers& extents) {
      gs::tensor<T, Spec> t(on, extents);
      fill(t);
      gs::save_hdf5(dir / "f.h5", "u", t);
      CHECK(wrong(gs::load_hdf5<T, Spec>(on, dir / "f.h5", "u")) == 0);
      if (rank() == 0) {
        CHECK(wrong(gs::load_hdf5<T, Spec>(gs::simulate<mesh>({2, 3}), dir / "f.h5", "u")) == 0);
        gs::tensor<T, Spec> simulated(gs::simulate<mesh>({3, 2}), extents);
        fill(simulated);
        gs::save_hdf5(dir / "g.h5", "u", simulated);
      }
      CHECK(wrong(gs::load_hdf5<T, Spec>(on, dir / "g.h5", "u")) == 0);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank() == 0) {
        CHECK(dir.entries() == 2);
        std::filesystem::remove(dir / "f.h5");
        std::filesystem::remove(dir / "g.h5");
      }
      MPI_Barrier(MPI_COMM_WORLD);
    });
  }
}

TEST_CASE("hdf5, mpi: a part of the processes; datasets are added and replaced; h5py opens them") {
  const shared_scratch dir;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, -rank(), &half);
  {
    const auto on = gs::on_mpi<mesh>(half);
    const std::string path = dir / (rank() % 2 ? "odd.h5" : "even.h5");
    gs::tensor<float, P<"x", "y">> u(on, {5, 7});
    gs::tensor<double, P<none, "x">> v(on, {9, 4}), w(on, {3, 50});
    for (auto* t : {&v, &w}) fill(*t);
    fill(u);
    gs::save_hdf5(path, "u", u);
    gs::save_hdf5(path, "steps/1/v", v);
    gs::save_hdf5(path, "steps/1/v", w);
    gs::save_hdf5(path, "steps/2/v", v);
    CHECK(wrong(gs::load_hdf5<float, P<"y", "x">>(on, path, "u")) == 0);
    CHECK(wrong(gs::load_hdf5<double, P<"y", "x">>(on, path, "steps/2/v")) == 0);
    const auto back = gs::load_hdf5<double, P<"x", none>>(on, path, "steps/1/v");
    CHECK(back.extent(1) == 50);
    CHECK(wrong(back) == 0);
    gs::for_each_local_shard(v, [](gs::shard_view<double> s) {
      gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t local) { s.data[local] = double(global); });
    });
    gs::save_hdf5(path, "counted", v);
  }
  MPI_Comm_free(&half);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() != 0) return;
  const std::string python = python_with("h5py");
  if (python.empty()) MESSAGE("skipped: Python's h5py is not installed");
  else
    CHECK(runs(python, "import h5py, numpy as n\nf = h5py.File('" + (dir / "even.h5") + R"(', 'r')
assert (f['counted'][()] == n.arange(36.0).reshape(9, 4)).all() and f['steps/1/v'].shape == (3, 50) and f['u'].dtype == 'f4'
)"));
}

TEST_CASE("hdf5, mpi: if the leader cannot write, all say so, and the old file stays") {
  const shared_scratch dir;
  const auto on = on_world();
  gs::tensor<double, P<"x">> t(on, {20000});
  fill(t);
  const auto fails = [&](const std::string& name, std::size_t room) {
    std::optional<small_disk> disk;
    if (rank() == 0) disk.emplace(room);
    const std::string said = complaint([&] { gs::save_hdf5(dir / name, "u", t); });
    disk.reset();
    CAPTURE(said);
    CHECK(contains(said, (dir / name) + ": cannot have "));
    MPI_Barrier(MPI_COMM_WORLD);
  };
  CHECK(contains(complaint([&] { gs::save_hdf5(dir / "none/f.h5", "u", t); }), "No such file or directory"));
  gs::tensor<float, P<"x">> old(on, {500});
  fill(old);
  gs::save_hdf5(dir / "f.h5", "u", old);
  fails("new.h5", 10000);
  fails("f.h5", 10000);
  CHECK(wrong(gs::load_hdf5<float, P<"x">>(on, dir / "f.h5", "u")) == 0);
  gs::save_hdf5(dir / "f.h5", "u", t);
  CHECK(wrong(gs::load_hdf5<double, P<"x">>(on, dir / "f.h5", "u")) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) CHECK(dir.entries() == 1);
}

TEST_CASE("hdf5, mpi: ranks whose path is another file, or that differ in the call, are told") {
  if (ranks() == 1) return;
  const shared_scratch dir;
  const scratch mine;
  const std::filesystem::path before = std::filesystem::current_path();
  const auto on = on_world();
  gs::tensor<float, P<"x">> t(on, {64}), other(on, {65});
  fill(t);
  if (last()) std::filesystem::current_path(mine / "");
  else std::filesystem::current_path(dir / "");
  const std::string not_ours = "f.h5: is not the leader's file on this process; the path must name the same file on all processes";
  CHECK(contains(complaint([&] { gs::save_hdf5("f.h5", "u", t); }), not_ours));
  MPI_Barrier(MPI_COMM_WORLD);
  gs::save_hdf5(dir / "f.h5", "u", t);
  if (last()) std::filesystem::copy_file(dir / "f.h5", mine / "f.h5");
  CHECK(wrong(gs::load_hdf5<float, P<"x">>(on, "f.h5", "u")) == 0);  // a copy
  CHECK(contains(complaint([&] { gs::save_hdf5("f.h5", "v", t); }), not_ours));
  MPI_Barrier(MPI_COMM_WORLD);
  if (last()) set_content("f.h5", content_of("f.h5") + "more");
  CHECK(contains(complaint([&] { gs::load_hdf5<float, P<"x">>(on, "f.h5", "u"); }),
                 "the processes disagree on the file, whose path must name"));
  if (rank() == 0) CHECK(dir.entries() == 1);
  std::filesystem::current_path(before);

  CHECK(contains(complaint([&] { gs::save_hdf5(dir / "f.h5", last() ? "u" : "v", t); }), "the processes make different calls: rank"));
  CHECK(contains(complaint([&] { gs::save_hdf5(dir / "f.h5", "v", last() ? other : t); }),
                 "the processes disagree on the extents of the tensor"));
  CHECK(contains(complaint([&] { gs::load_hdf5<float, P<"x">>(on, dir / "f.h5", "v"); }), "has no dataset v"));
  CHECK(contains(complaint([&] { gs::load_hdf5<double, P<"x">>(on, dir / "f.h5", "u"); }), "has 32-bit floats, the tensor 64-bit floats"));
  if (rank() == 0) set_content(dir / "text.h5", "text");
  CHECK(contains(complaint([&] { gs::load_hdf5<float, P<"x">>(on, dir / "text.h5", "u"); }), "cannot be opened as an HDF5 file"));
  CHECK(wrong(gs::load_hdf5<float, P<"x">>(on, dir / "f.h5", "u")) == 0);
}

#else

TEST_CASE("hdf5, mpi: an HDF5 without MPI serves one process, and is an error for several") {
  const shared_scratch dir;
  const auto on = on_world();
  gs::tensor<float, P<"x">> t(on, {64});
  fill(t);
  const std::string said = complaint([&] {
    gs::save_hdf5(dir / "f.h5", "u", t);
    CHECK(wrong(gs::load_hdf5<float, P<"x">>(on, dir / "f.h5", "u")) == 0);
  });
  CHECK(said == (ranks() == 1 ? "" : "hdf5: files of several processes need an HDF5 with MPI (Debian: libhdf5-openmpi-dev)"));
}

#endif
