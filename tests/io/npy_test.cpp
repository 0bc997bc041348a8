// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/npy.hpp>

#include "../complaint.hpp"
#include "scratch.hpp"
#include "tensor_cases.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
using namespace tensor_cases;

namespace {

template <class T>
std::string file_of(const numbers& extents) {
  return gs::npy_header_text(gs::dtype_of<T>, extents) + bytes_of<T>(extents);
}
/// The same array in column-major order.
template <class T>
std::string turned_file_of(numbers extents) {
  std::string text = gs::npy_header_text(gs::dtype_of<T>, extents), data = bytes_of<T>(extents), turned = data;
  text.replace(text.find("False"), 5, "True ");
  numbers at(extents.size(), 0);
  for (std::size_t i = 0; i < data.size() / sizeof(T); ++i) {
    std::size_t to = 0;
    for (std::size_t d = extents.size(); d-- > 0;) to = to * std::size_t(extents[d]) + std::size_t(at[d]);
    std::copy_n(data.data() + i * sizeof(T), sizeof(T), turned.data() + to * sizeof(T));
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == extents[d];) at[d] = 0;
  }
  return text + turned;
}

}  // namespace

TEST_CASE("npy: every sharding writes the same file and reads it, in both orders, on 1 to 8 devices") {
  const scratch dir;
  for (const std::vector<int>& shape : meshes(8)) {
    const auto on = gs::simulate<mesh>(shape);
    CAPTURE(gs::detail::mesh_text(shape));
    each_tensor([&]<class T, class Spec>(std::type_identity<gs::tensor<T, Spec>>, const numbers& extents) {
      gs::tensor<T, Spec> t(on, extents);
      fill(t);
      gs::save_npy(dir / "f.npy", t);
      CHECK(content_of(dir / "f.npy") == file_of<T>(extents));
      const auto back = gs::load_npy<T, Spec>(on, dir / "f.npy");
      CHECK(std::ranges::equal(back.extents(), extents));
      CHECK(wrong(back) == 0);
      set_content(dir / "turned.npy", turned_file_of<T>(extents));
      CHECK(wrong(gs::load_npy<T, Spec>(on, dir / "turned.npy")) == 0);
    });
  }
  CHECK(dir.entries() == 2);
}

TEST_CASE("npy: device orders, and one device") {
  const scratch dir;
  using ordered = P<"x", "y", gs::device_order<2, 0, 3, 1>>;
  const auto on = gs::simulate<mesh>({2, 2});
  gs::tensor<float, ordered> t(on, {5, 7});
  fill(t);
  gs::save_npy(dir / "f.npy", t);
  CHECK(content_of(dir / "f.npy") == file_of<float>({5, 7}));
  CHECK(wrong(gs::load_npy<float, ordered>(on, dir / "f.npy")) == 0);
  CHECK(wrong(gs::load_npy<float, P<"y", none>>(gs::on_one_device<mesh>(), dir / "f.npy")) == 0);
}

TEST_CASE("npy: arrays that are larger than a piece and runs that are far apart, in both orders") {
  const scratch dir;
  const numbers extents{3, 700, 9001};
  const auto on = gs::simulate<mesh>({2, 2});
  {
    gs::tensor<float, P<none, "x", "y">> t(on, extents);
    fill(t);
    gs::save_npy(dir / "f.npy", t);
  }
  CHECK(wrong(gs::load_npy<float, P<none, "y", "x">>(on, dir / "f.npy")) == 0);
  set_content(dir / "f.npy", turned_file_of<float>(extents));
  CHECK(wrong(gs::load_npy<float, P<"x", none, "y">>(on, dir / "f.npy")) == 0);
  CHECK(wrong(gs::load_npy<float, P<none, "x", none>>(on, dir / "f.npy")) == 0);
}

TEST_CASE("npy: if writing fails, the old file stays and nothing else") {
  const scratch dir;
  set_content(dir / "f.npy", "old");
  const auto on = gs::simulate<mesh>({2, 2});
  gs::tensor<float, P<none, "x">> t(on, {9, 5});
  fill(t);
  const std::size_t bytes = file_of<float>({9, 5}).size();
  for (const std::size_t room : {std::size_t(0), std::size_t(20), std::size_t(100), bytes - 1}) {
    std::optional<small_disk> disk(room);
    const std::string said = complaint([&] { gs::save_npy(dir / "f.npy", t); });
    disk.reset();
    CHECK(contains(said, (dir / "f.npy") + ": "));
    CHECK(contains(said, "File too large"));
    CHECK(content_of(dir / "f.npy") == "old");
    CHECK(dir.entries() == 1);
  }
  CHECK(contains(complaint([&] { gs::save_npy(dir / "none/f.npy", t); }), "No such file or directory"));
  gs::save_npy(dir / "f.npy", t);
  CHECK(content_of(dir / "f.npy").size() == bytes);
  CHECK(dir.entries() == 1);
}

TEST_CASE("npy: files that do not fit are refused with one sentence") {
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 2});
  const auto said = [&](const std::string& content) {
    set_content(dir / "f.npy", content);
    return complaint([&] { gs::load_npy<float, P<"x", none>>(on, dir / "f.npy"); });
  };
  const std::string good = file_of<float>({3, 5});
  CHECK(said(good).empty());
  CHECK(said(file_of<double>({3, 5})) == (dir / "f.npy") + ": has 2 dims of double, not the tensor's 2 of float");
  CHECK(said(file_of<float>({3, 5, 1})) == (dir / "f.npy") + ": has 3 dims of float, not the tensor's 2 of float");
  CHECK(said(good.substr(0, good.size() - 1)) == (dir / "f.npy") + ": is truncated: it has 59 bytes of elements, its header says 60");
  CHECK(said(good + "more") == (dir / "f.npy") + ": does not fit its header: it has 64 bytes of elements, its header says 60");
  CHECK(said("text") == (dir / "f.npy") + ": is not a .npy file");
  CHECK(contains(complaint([&] { gs::load_npy<float, P<none>>(on, dir / "none.npy"); }), "No such file or directory"));
}

TEST_CASE("npy: NumPy opens what is written, and what it writes is opened") {
  const std::string python = python_with("numpy");
  if (python.empty()) {
    MESSAGE("skipped: Python's numpy is not installed");
    return;
  }
  const scratch dir;
  const auto on = gs::simulate<mesh>({2, 3});
  gs::tensor<float, P<"x", "y">> floats(on, {5, 7});
  gs::tensor<double, P<"y">> doubles(on, {11});
  gs::tensor<std::int32_t, P<none, axes<"x", "y">, none>> ints(on, {2, 7, 3});
  gs::tensor<double, P<>> scalar(on, {});
  gs::tensor<float, P<"x", none>> empty(on, {0, 4});
  gs::tensor<std::complex<double>, P<"y", "x">> complex(on, {4, 5});
  gs::tensor<std::int64_t, P<"x">> longs(on, {5});
  gs::tensor<gs::half, P<"x">> halves(on, {5});
  gs::tensor<bool, P<"y">> masks(on, {5});
  const auto count = []<class T, class Spec>(gs::tensor<T, Spec>& t) {
    gs::for_each_local_shard(t, [](gs::shard_view<T> s) {
      gs::kernel::for_each_element(
          s.at, [&](std::size_t global, std::size_t local) { s.data[local] = gs::detail::element_from<T>(double(global)); });
    });
  };
  const auto counts = []<class T, class Spec>(const gs::tensor<T, Spec>& t) {
    bool all = true;
    gs::for_each_local_shard(t, [&](gs::shard_view<const T> s) {
      gs::kernel::for_each_element(
          s.at, [&](std::size_t global, std::size_t local) { all = all && s.data[local] == gs::detail::element_from<T>(double(global)); });
    });
    return all;
  };
  const auto others = [&](auto f) { f("complex", complex), f("longs", longs), f("halves", halves), f("masks", masks); };
  others([&](const std::string& name, auto& t) {
    count(t);
    gs::save_npy(dir / (name + ".npy"), t);
  });
  count(floats);
  count(doubles);
  count(ints);
  count(scalar);
  gs::save_npy(dir / "floats.npy", floats);
  gs::save_npy(dir / "doubles.npy", doubles);
  gs::save_npy(dir / "ints.npy", ints);
  gs::save_npy(dir / "scalar.npy", scalar);
  gs::save_npy(dir / "empty.npy", empty);
  const std::string begin = "import numpy as n; d = '" + (dir / "") + "'\n";
  CHECK(runs(python, begin + R"(
def same(name, a):
  b = n.load(d + name + '.npy')
  assert b.dtype == a.dtype and b.shape == a.shape and (b == a).all() and b.flags.c_contiguous, (name, b)
same('floats', n.arange(35, dtype='f4').reshape(5, 7))
same('doubles', n.arange(11, dtype='f8'))
same('ints', n.arange(42, dtype='i4').reshape(2, 7, 3))
same('scalar', n.array(0.0))
same('empty', n.zeros((0, 4), 'f4'))
same('complex', n.arange(20, dtype='c16').reshape(4, 5))
same('longs', n.arange(5, dtype='i8'))
same('halves', n.arange(5, dtype='f2'))
same('masks', n.arange(5).astype('?'))
for t in 'c8', 'c16', 'i8', 'f2', '?':
  n.save(d + t[0] + t[-1] + '.npy', n.arange(5).astype(t))
)"));
  CHECK(counts(gs::load_npy<std::complex<float>, P<"x">>(on, dir / "c8.npy")));
  CHECK(counts(gs::load_npy<std::complex<double>, P<"y">>(on, dir / "c6.npy")));
  CHECK(counts(gs::load_npy<std::int64_t, P<"x">>(on, dir / "i8.npy")));
  CHECK(counts(gs::load_npy<gs::half, P<"x">>(on, dir / "f2.npy")));
  CHECK(counts(gs::load_npy<bool, P<axes<"x", "y">>>(on, dir / "??.npy")));
  CHECK(runs(python, begin + R"(
for order in 'CF':
  for version in (1, 0), (2, 0), (3, 0):
    for t in 'f4', 'f8', 'i4':
      a = n.asarray(n.arange(42, dtype=t).reshape(2, 7, 3), order=order)
      n.lib.format.write_array(open(d + order + str(version[0]) + t, 'wb'), a, version)
n.save(d + 'scalar', n.array(0.0))
n.save(d + 'empty', n.zeros((0, 4), 'f4'))
n.save(d + 'big', n.zeros((2, 2, 2), '>f4'))
n.save(d + 'unsigned', n.zeros((2, 2, 2), 'u4'))
n.save(d + 'objects', n.array([[[None]]]))
)"));
  using spec = P<none, "y", "x">;
  for (const std::string order : {"C", "F"})
    for (const std::string version : {"1", "2", "3"}) {
      CHECK(counts(gs::load_npy<float, spec>(on, dir / (order + version + "f4"))));
      CHECK(counts(gs::load_npy<double, spec>(on, dir / (order + version + "f8"))));
      CHECK(counts(gs::load_npy<std::int32_t, spec>(on, dir / (order + version + "i4"))));
    }
  CHECK(gs::load_npy<double, P<>>(on, dir / "scalar.npy").item() == 0);
  CHECK(gs::load_npy<float, P<"x", none>>(on, dir / "empty.npy").extent(1) == 4);
  for (const std::string type : {"big", "unsigned", "objects"})
    CHECK(contains(complaint([&] { gs::load_npy<float, spec>(on, dir / (type + ".npy")); }), "which is not one of <f4, <f8, <i4"));
}
