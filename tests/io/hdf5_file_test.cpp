// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hdf5_file.hpp>

#include <gshard/exec/backend/loopback.hpp>

#include "../complaint.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::detail::hdf5_file, gs::detail::hdf5_id;

namespace {

/// A backend of several processes that does not use MPI.
class elsewhere : public gs::backend {
 public:
  elsewhere() : backend({2}, {0}) {}
  int processes() const override { return 2; }

 private:
  std::size_t do_start(std::uint32_t, std::span<const gs::exchange_part>, const gs::exchange_bounds&, bool) override { return 0; }
  void do_finish(std::size_t) override {}
  void do_all_gather(std::uint32_t, std::span<const gs::gather_part>) override {}
};

gs::detail::file_shards shards_of(std::vector<float>& data) {
  gs::detail::file_shards all{gs::dtype::f32, {std::int64_t(data.size())}, {}, {}};
  const gs::kernel::index_array extent{std::int64_t(data.size())};
  all.mine.push_back({reinterpret_cast<std::byte*>(data.data()), gs::kernel::whole(1, extent), true});
  return all;
}

}  // namespace

TEST_CASE("hdf5_id: closes what it owns once") {
  hid_t raw = -1;
  {
    hdf5_id first(H5Screate(H5S_SCALAR), H5Sclose);
    raw = first.get();
    hdf5_id second = std::move(first);
    CHECK(first.get() < 0);
    CHECK(second.get() == raw);
    CHECK(H5Iis_valid(raw) > 0);
    first = std::move(second);
    CHECK(first.close() >= 0);
    CHECK(H5Iis_valid(raw) <= 0);
    CHECK(first.close() == 0);
  }
}

TEST_CASE("hdf5_reason: the innermost reason of the last failure") {
  const gs::detail::hdf5_quiet quiet;
  H5Fopen("/nowhere/f.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  CHECK(contains(gs::detail::hdf5_reason(), ": unable to open file: name = '/nowhere/f.h5'"));
}

TEST_CASE("hdf5: names of types and datasets") {
  CHECK(gs::detail::text_of_hdf5_type(gs::detail::hdf5_type_of(gs::dtype::f32).in_file.get()) == "32-bit floats");
  CHECK(gs::detail::text_of_hdf5_type(gs::detail::hdf5_type_of(gs::dtype::f64).in_memory.get()) == "64-bit floats");
  CHECK(gs::detail::text_of_hdf5_type(gs::detail::hdf5_type_of(gs::dtype::i32).in_file.get()) == "32-bit integers");
  const auto text = [](gs::dtype t) { return gs::detail::text_of_hdf5_type(gs::detail::hdf5_type_of(t).in_file.get()); };
  CHECK(text(gs::dtype::i64) == "64-bit integers");
  CHECK(text(gs::dtype::c64) == "complex numbers of 32-bit floats");
  CHECK(text(gs::dtype::boolean) == "booleans");
  CHECK(text(gs::dtype::f16) == "16-bit floats with 10 bits of mantissa");
  CHECK(text(gs::dtype::bf16) == "16-bit floats with 7 bits of mantissa");
  CHECK(gs::detail::text_of_hdf5_type(H5T_STD_U8BE) == "8-bit unsigned integers");
  CHECK(gs::detail::text_of_hdf5_type(H5T_C_S1) == "elements that are not numbers");
  for (const std::string name : {"u", "a/b/c", ".hidden", "x.y"}) gs::detail::check_dataset_name(name);
  for (const std::string& name : {std::string(), std::string("/"), std::string("a/"), std::string("./a"), std::string("a\0b", 3)})
    CHECK(contains(complaint([&] { gs::detail::check_dataset_name(name); }), "such as u or group/u"));
}

TEST_CASE("hdf5_file: a dataset is made, found and read; a backend of processes without MPI is refused") {
  const gs::detail::hdf5_quiet quiet;
  const scratch dir;
  const std::string path = dir / "f.h5";
  gs::loopback on(1);
  const hdf5_id access = gs::detail::hdf5_access(on);
  std::vector<float> data{1, 2, 3}, back(3);
  {
    hdf5_file file(on, path, "shown", hdf5_file::mode::make, access);
    file.write("g/u", shards_of(data));
    CHECK(complaint([&] { file.write("g", shards_of(data)); }) == "shown: g is a group, not a dataset");
    file.close();
  }
  hdf5_file file(on, path, "shown", hdf5_file::mode::read, access);
  CHECK(complaint([&] { file.find("v", gs::dtype::f32, 1); }) == "shown: has no dataset v");
  CHECK(file.find("g/u", gs::dtype::f32, 1) == std::vector<std::int64_t>{3});
  file.read(shards_of(back));
  CHECK(back == data);
  CHECK(contains(complaint([&] { file.write("v", shards_of(data)); }), "shown: dataset v cannot be made: "));
  CHECK(contains(complaint([] { gs::detail::hdf5_access(elsewhere()); }), "an HDF5 with MPI"));
}
