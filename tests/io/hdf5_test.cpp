// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hdf5.hpp>

#include "../complaint.hpp"
#include "scratch.hpp"
#include "tensor_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
using namespace tensor_cases;

namespace {

/// A number per element that Python can compute as well.
template <class T, class Spec>
gs::tensor<T, Spec> counted(const gs::any_cluster& on, const numbers& extents) {
  gs::tensor<T, Spec> t(on, extents);
  gs::for_each_local_shard(t, [](gs::shard_view<T> s) {
    gs::kernel::for_each_element(
        s.at, [&](std::size_t global, std::size_t local) { s.data[local] = gs::detail::element_from<T>(double(global)); });
  });
  return t;
}
template <class T, class Spec>
bool counts(const gs::tensor<T, Spec>& t) {
  bool all = true;
  gs::for_each_local_shard(t, [&](gs::shard_view<const T> s) {
    gs::kernel::for_each_element(
        s.at, [&](std::size_t global, std::size_t local) { all = all && s.data[local] == gs::detail::element_from<T>(double(global)); });
  });
  return all;
}

}  // namespace

TEST_CASE("hdf5: every sharding writes, and any other mesh and sharding reads the same bits") {
  const scratch dir;
  const auto one = gs::on_one_device<mesh>();
  for (const std::vector<int>& shape : meshes(8)) {
    const auto on = gs::simulate<mesh>(shape);
    CAPTURE(gs::detail::mesh_text(shape));
    each_tensor([&]<class T, class Spec>(std::type_identity<gs::tensor<T, Spec>>, const numbers& extents) {
      gs::tensor<T, Spec> t(on, extents);
      fill(t);
      gs::save_hdf5(dir / "f.h5", "u", t);
      const auto back = gs::load_hdf5<T, Spec>(on, dir / "f.h5", "u");
      CHECK(std::ranges::equal(back.extents(), extents));
      CHECK(wrong(back) == 0);
      CHECK(wrong(gs::load_hdf5<T, Spec>(one, dir / "f.h5", "u")) == 0);
      CHECK(wrong(gs::load_hdf5<T, Spec>(gs::simulate<mesh>({3, 2}), dir / "f.h5", "u")) == 0);
      std::filesystem::remove(dir / "f.h5");
    });
  }
  CHECK(dir.entries() == 0);
}

TEST_CASE("hdf5: datasets are added to a file, replaced with other extents and types, and in groups") {
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 2});
  gs::save_hdf5(dir / "f.h5", "u", counted<float, P<"x", "y">>(on, {5, 7}));
  gs::save_hdf5(dir / "f.h5", "step/1/v", counted<double, P<"x">>(on, {9}));
  gs::save_hdf5(dir / "f.h5", "step/2/v", counted<std::int32_t, P<"y">>(on, {9}));
  const auto all = [&] {
    return counts(gs::load_hdf5<float, P<none, "x">>(on, dir / "f.h5", "u")) &&
           counts(gs::load_hdf5<double, P<"y">>(on, dir / "f.h5", "step/1/v"));
  };
  CHECK(all());
  CHECK(counts(gs::load_hdf5<std::int32_t, P<"x">>(on, dir / "f.h5", "step/2/v")));
  for (int i = 0; i < 3; ++i) {
    gs::save_hdf5(dir / "f.h5", "step/2/v", counted<double, P<none, "y">>(on, {3, 4 + i}));
    CHECK(gs::load_hdf5<double, P<"x", none>>(on, dir / "f.h5", "step/2/v").extent(1) == 4 + i);
    CHECK(all());
  }
  CHECK(dir.entries() == 1);

  const auto u = counted<float, P<"x", "y">>(on, {5, 7});
  CHECK(complaint([&] { gs::save_hdf5(dir / "f.h5", "step/1", u); }) == (dir / "f.h5") + ": step/1 is a group, not a dataset");
  CHECK(contains(complaint([&] { gs::save_hdf5(dir / "f.h5", "u/v", u); }), (dir / "f.h5") + ": "));
  for (const std::string name : {"", "/", "/u", "u/", "a//b", ".", "a/./b"})
    CHECK(contains(complaint([&] { gs::save_hdf5(dir / "f.h5", name, u); }), "a dataset has a name such as u or group/u"));
  CHECK(all());
}

TEST_CASE("hdf5: what cannot be read is one sentence, and HDF5 prints nothing and keeps its settings") {
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 2});
  gs::save_hdf5(dir / "f.h5", "g/u", counted<float, P<"x", "y">>(on, {5, 7}));
  const auto said = [&](const std::string& file, const std::string& name) {
    return complaint([&] { gs::load_hdf5<float, P<"x", none>>(on, dir / file, name); });
  };
  CHECK(said("f.h5", "g/u").empty());
  CHECK(said("f.h5", "v") == (dir / "f.h5") + ": has no dataset v");
  CHECK(said("f.h5", "h/v") == (dir / "f.h5") + ": has no dataset h/v");
  CHECK(said("f.h5", "g") == (dir / "f.h5") + ": g is a group, not a dataset");
  CHECK(contains(said("none.h5", "u"), "No such file or directory"));
  CHECK(complaint([&] { gs::load_hdf5<double, P<"x", none>>(on, dir / "f.h5", "g/u"); }) ==
        (dir / "f.h5") + ": dataset g/u has 32-bit floats, the tensor 64-bit floats");
  CHECK(complaint([&] { gs::load_hdf5<std::int32_t, P<"x", none>>(on, dir / "f.h5", "g/u"); }) ==
        (dir / "f.h5") + ": dataset g/u has 32-bit floats, the tensor 32-bit integers");
  CHECK(complaint([&] { gs::load_hdf5<float, P<"x">>(on, dir / "f.h5", "g/u"); }) ==
        (dir / "f.h5") + ": dataset g/u has 2 dims, the tensor 1 dims");
  set_content(dir / "text.h5", "text");
  CHECK(said("text.h5", "u").starts_with((dir / "text.h5") + ": cannot be opened as an HDF5 file: "));
  CHECK(complaint([&] { gs::save_hdf5(dir / "text.h5", "u", counted<float, P<"x">>(on, {5})); })
            .starts_with((dir / "text.h5") + ": cannot be opened as an HDF5 file: "));
  CHECK(content_of(dir / "text.h5") == "text");
  const std::string whole = content_of(dir / "f.h5");
  for (std::size_t n = 0; n < whole.size(); n += 97) {
    set_content(dir / "cut.h5", whole.substr(0, n));
    CHECK(said("cut.h5", "g/u").starts_with((dir / "cut.h5") + ": "));
  }
  H5E_auto2_t print = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &print, &data);
  CHECK((print != nullptr));
}

TEST_CASE("hdf5: if writing fails, the old file stays, and the old dataset") {
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 2});
  const auto t = counted<double, P<none, "x">>(on, {100, 100});
  const auto fails = [&](const std::string& name, std::size_t room) {
    std::optional<small_disk> disk(room);
    const std::string said = complaint([&] { gs::save_hdf5(dir / name, "u", t); });
    disk.reset();
    CAPTURE(said);
    CHECK(said.starts_with((dir / name) + ": "));
  };
  for (const std::size_t room : {std::size_t(0), std::size_t(1000), std::size_t(40000), std::size_t(80000)}) {
    fails("new.h5", room);
    CHECK(dir.entries() == 0);
  }
  CHECK(contains(complaint([&] { gs::save_hdf5(dir / "none/f.h5", "u", t); }), "No such file or directory"));
  gs::save_hdf5(dir / "f.h5", "u", counted<float, P<"x">>(on, {1000}));
  for (const std::size_t room : {std::size_t(6000), std::size_t(40000), std::size_t(80000)}) {
    fails("f.h5", room);
    CHECK(counts(gs::load_hdf5<float, P<"y">>(on, dir / "f.h5", "u")));
  }
  gs::save_hdf5(dir / "f.h5", "u", t);
  CHECK(counts(gs::load_hdf5<double, P<"y", none>>(on, dir / "f.h5", "u")));
  CHECK(dir.entries() == 1);
}

TEST_CASE("hdf5: h5py opens what is written, and what it writes is opened") {
  const std::string python = python_with("h5py");
  if (python.empty()) {
    MESSAGE("skipped: Python's h5py is not installed");
    return;
  }
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 3});
  gs::save_hdf5(dir / "f.h5", "floats", counted<float, P<"x", "y">>(on, {5, 7}));
  gs::save_hdf5(dir / "f.h5", "group/doubles", counted<double, P<"y">>(on, {11}));
  gs::save_hdf5(dir / "f.h5", "ints", counted<std::int32_t, P<none, axes<"x", "y">, none>>(on, {2, 7, 3}));
  gs::save_hdf5(dir / "f.h5", "scalar", counted<double, P<>>(on, {}));
  gs::save_hdf5(dir / "f.h5", "empty", counted<float, P<"x", none>>(on, {0, 4}));
  gs::save_hdf5(dir / "f.h5", "complex", counted<std::complex<double>, P<"y", "x">>(on, {4, 5}));
  gs::save_hdf5(dir / "f.h5", "narrow", counted<std::complex<float>, P<"x">>(on, {5}));
  gs::save_hdf5(dir / "f.h5", "longs", counted<std::int64_t, P<"x">>(on, {5}));
  gs::save_hdf5(dir / "f.h5", "halves", counted<gs::half, P<"x">>(on, {5}));
  gs::save_hdf5(dir / "f.h5", "masks", counted<bool, P<"y">>(on, {5}));
  gs::save_hdf5(dir / "f.h5", "bfloats", counted<gs::bfloat16, P<"y">>(on, {5}));
  CHECK(counts(gs::load_hdf5<gs::bfloat16, P<"x">>(on, dir / "f.h5", "bfloats")));
  const std::string begin = "import h5py, numpy as n; d = '" + (dir / "") + "'\n";
  CHECK(runs(python, begin + R"(
f = h5py.File(d + 'f.h5', 'r')
def same(name, a):
  b = f[name][()]
  assert b.dtype == a.dtype and b.shape == a.shape and n.all(b == a), (name, b)
same('floats', n.arange(35, dtype='f4').reshape(5, 7))
same('group/doubles', n.arange(11, dtype='f8'))
same('ints', n.arange(42, dtype='i4').reshape(2, 7, 3))
same('scalar', n.array(0.0))
same('empty', n.zeros((0, 4), 'f4'))
same('complex', n.arange(20, dtype='c16').reshape(4, 5))
same('narrow', n.arange(5, dtype='c8'))
same('longs', n.arange(5, dtype='i8'))
same('halves', n.arange(5, dtype='f2'))
same('masks', n.arange(5).astype('?'))
)"));
  CHECK(runs(python, begin + R"(
f = h5py.File(d + 'g.h5', 'w')
for t in '<f4', '<f8', '<i4', '<i8', '<c8', '<c16', '<f2', '>f4', '>f8', '>i4', '>i8', '>c8', '>c16', '>f2', 'u4', '?', 'S3':
  a = n.arange(42).astype(t).reshape(2, 7, 3)
  f[t] = a
  f['fortran/' + t] = n.asfortranarray(a)
  f.create_dataset('chunks/' + t, data=a, chunks=(1, 3, 2), compression='gzip')
f['scalar'] = 0.0
f['empty'] = n.zeros((0, 4), 'f4')
f['null'] = h5py.Empty('f4')
)"));
  using spec = P<none, "y", "x">;
  for (const std::string kind : {"", "fortran/", "chunks/"})
    for (const std::string order : {"<", ">"}) {
      CHECK(counts(gs::load_hdf5<float, spec>(on, dir / "g.h5", kind + order + "f4")));
      CHECK(counts(gs::load_hdf5<double, spec>(on, dir / "g.h5", kind + order + "f8")));
      CHECK(counts(gs::load_hdf5<std::int32_t, spec>(on, dir / "g.h5", kind + order + "i4")));
      CHECK(counts(gs::load_hdf5<std::int64_t, spec>(on, dir / "g.h5", kind + order + "i8")));
      CHECK(counts(gs::load_hdf5<std::complex<float>, spec>(on, dir / "g.h5", kind + order + "c8")));
      CHECK(counts(gs::load_hdf5<std::complex<double>, spec>(on, dir / "g.h5", kind + order + "c16")));
      CHECK(counts(gs::load_hdf5<gs::half, spec>(on, dir / "g.h5", kind + order + "f2")));
      CHECK(counts(gs::load_hdf5<bool, spec>(on, dir / "g.h5", kind + "?")));
    }
  CHECK(gs::load_hdf5<double, P<>>(on, dir / "g.h5", "scalar").item() == 0);
  CHECK(gs::load_hdf5<float, P<"x", none>>(on, dir / "g.h5", "empty").extent(1) == 4);
  const auto said = [&](const std::string& name) { return complaint([&] { gs::load_hdf5<std::int32_t, spec>(on, dir / "g.h5", name); }); };
  CHECK(contains(said("u4"), "has 32-bit unsigned integers, the tensor 32-bit integers"));
  CHECK(contains(said("<f2"), "has 16-bit floats with 10 bits of mantissa, the tensor 32-bit integers"));
  CHECK(contains(said("<c8"), "has complex numbers of 32-bit floats, the tensor 32-bit integers"));
  CHECK(contains(said("S3"), "has elements that are not numbers"));
  CHECK(contains(complaint([&] { gs::load_hdf5<float, P<none>>(on, dir / "g.h5", "null"); }), "has no elements, the tensor 1 dims"));
}
