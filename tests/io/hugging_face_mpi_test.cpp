// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/io/hugging_face.hpp>

#include "../complaint.hpp"
#include "mixtral.hpp"
#include "shared_scratch.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gs = gshard;
using mpi_world::rank, mpi_world::ranks;

namespace {

constexpr mixtral::config small;

bool last() { return rank() == ranks() - 1; }

gs::parameter_store store_on_ranks(std::uint64_t seed, const std::vector<stores::tensor_case>& tensors = mixtral::parameters(small)) {
  const std::vector<int> shape{1, ranks()};
  const gs::any_cluster on{stores::shape_of(shape), std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, shape)};
  gs::parameter_store store = stores::make(on, tensors, seed);
  stores::clear(store);
  return store;
}
gs::parameter_store simulated_store() {
  gs::parameter_store store = stores::make(stores::simulated({2, 2}), mixtral::parameters(small), 1);
  stores::clear(store);
  return store;
}

}  // namespace

TEST_CASE("hugging_face, mpi: every rank reads its shards, and the saved file is that of simulated devices") {
  const shared_scratch dir;
  const mixtral::weights all = mixtral::make(small);
  if (rank() == 0) set_content(dir / "model.safetensors", mixtral::file_of(all, "BF16"));
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    gs::parameter_store store = store_on_ranks(seed);
    gs::load_hugging_face(store, dir / "");
    CHECK(mixtral::wrong(store, small, all) == 0);
    gs::save_hugging_face(store, dir / "one");
    if (seed == 0) gs::save_hugging_face(store, dir / "several", {.type = gs::dtype::bf16, .file_bytes = 2000});
    if (rank() != 0) continue;
    gs::parameter_store simulated = simulated_store();
    gs::load_hugging_face(simulated, dir / "several");
    CHECK(mixtral::wrong(simulated, small, all) == 0);
    gs::save_hugging_face(simulated, dir / "simulated");
    CHECK(content_of(dir / "one/model.safetensors") == content_of(dir / "simulated/model.safetensors"));
  }
}

TEST_CASE("hugging_face, mpi: if files or tensors differ between ranks, or one rank fails, all say so, and nothing is loaded") {
  if (ranks() == 1) return;
  const shared_scratch dir;
  const scratch mine;
  const std::filesystem::path before = std::filesystem::current_path();
  mixtral::weights all = mixtral::make(small);
  gs::parameter_store store = store_on_ranks(1);
  std::filesystem::current_path(mine / "");
  const auto loading = [&](const std::string& path) {
    const std::string said = complaint([&] { gs::load_hugging_face(store, path); });
    CHECK(stores::written(store) == 0);
    return said;
  };
  if (!last()) set_content("f", mixtral::file_of(all));
  CHECK(contains(loading("f"), "f: cannot be opened: No such file or directory"));
  if (last()) all.at("lm_head.weight").data[3] = 7;
  set_content("f", mixtral::file_of(all));
  CHECK(contains(loading("f"), "the processes disagree on the file f, whose path must name the same content on all processes: rank"));
  CHECK(contains(loading(last() ? "f" : "g"), "the processes make different calls: rank"));

  std::vector<stores::tensor_case> tensors = mixtral::parameters(small);
  if (last()) tensors.push_back({"model.layers.0.block_sparse_moe.bi", gs::dtype::f32, {4, 10}});
  gs::parameter_store other = store_on_ranks(1, tensors);
  CHECK(contains(complaint([&] { gs::save_hugging_face(other, dir / "saved"); }), "files of Hugging Face's Mixtral have no place for it"));
  CHECK(contains(complaint([&] { gs::save_hugging_face(store, dir / "saved", {.file_bytes = last() ? 1 : 2}); }),
                 "the processes disagree on hugging_face_options::file_bytes: rank"));
  CHECK(contains(complaint([&] { gs::save_hugging_face(store, dir / "none/saved"); }), "cannot be made: No such file or directory"));
  if (rank() == 0) CHECK(dir.entries() == 0);
  std::filesystem::current_path(before);
}
