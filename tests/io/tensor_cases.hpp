// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tensors of every sharding for tests of files. Their bits depend only on the global index.

#include <gshard/core/base/hash.hpp>
#include <gshard/exec/backend/balanced_extents.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <Eigen/Core>

#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace tensor_cases {

namespace gs = gshard;
using gs::axes, gs::none, gs::P;
using numbers = std::vector<std::int64_t>;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

/// The bits of an element, which may be those of a NaN.
template <class T>
T element(std::int64_t index) {
  const std::uint64_t bits = gs::fnv1a<std::uint64_t>().add(std::uint64_t(index) + 17).value();
  if constexpr (std::is_same_v<T, bool>) {
    return bits % 2 == 1;
  } else {
    std::array<std::uint64_t, 2> all{bits, ~bits};
    T x;
    std::memcpy(static_cast<void*>(&x), all.data(), sizeof x);
    return x;
  }
}
template <class T, class Spec>
void fill(gs::tensor<T, Spec>& t) {
  gs::for_each_local_shard(t, [](gs::shard_view<T> s) {
    gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t local) {
      const T x = element<T>(std::int64_t(global));
      std::memcpy(static_cast<void*>(s.data + local), &x, sizeof x);  // a copy of a double may change a NaN
    });
  });
}
/// The number of elements of this process that differ from `fill`.
template <class T, class Spec>
int wrong(const gs::tensor<T, Spec>& t) {
  int n = 0;
  gs::for_each_local_shard(t, [&](gs::shard_view<const T> s) {
    gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t local) {
      const T x = element<T>(std::int64_t(global));
      n += std::memcmp(s.data + local, &x, sizeof x) != 0;
    });
  });
  return n;
}
/// The elements of the complete array.
template <class T>
std::string bytes_of(const numbers& extents) {
  std::int64_t count = 1;
  for (const std::int64_t e : extents) count *= e;
  std::string bytes(std::size_t(count) * sizeof(T), '\0');
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = element<T>(i);
    std::memcpy(bytes.data() + std::size_t(i) * sizeof x, &x, sizeof x);
  }
  return bytes;
}

template <class T, class... Specs, class F>
void each(const std::vector<numbers>& shapes, F f) {
  for (const numbers& extents : shapes) (f(std::type_identity<gs::tensor<T, Specs>>(), extents), ...);
}
/// Calls f(std::type_identity<tensor<T, Spec>>, extents) for every sharding of up to two dims on two axes, and some of three dims, with
/// uneven extents and extents of 0.
template <class F>
void each_tensor(F f) {
  each<double, P<>>({{}}, f);
  each<float, P<none>, P<"x">, P<"y">, P<axes<"x", "y">>, P<axes<"y", "x">>>({{7}, {0}, {1}, {16}}, f);
  each<float, P<none, none>, P<"x", none>, P<"y", none>, P<none, "x">, P<none, "y">, P<"x", "y">, P<"y", "x">, P<axes<"x", "y">, none>,
       P<axes<"y", "x">, none>, P<none, axes<"x", "y">>, P<none, axes<"y", "x">>>({{5, 7}, {8, 3}, {1, 9}, {0, 4}, {3, 0}}, f);
  each<double, P<"y", none, "x">, P<none, axes<"y", "x">, none>>({{3, 4, 5}, {2, 1, 7}}, f);
  each<std::int32_t, P<none, "x", "y">, P<none, none, none>>({{3, 4, 5}, {2, 0, 7}}, f);
  each<std::int64_t, P<"x", "y">>({{5, 7}}, f);
  each<std::complex<float>, P<none, "x">>({{5, 7}}, f);
  each<std::complex<double>, P<"y", "x">>({{5, 7}, {0, 4}}, f);
  each<bool, P<"x", "y">>({{5, 7}}, f);
  each<gs::half, P<axes<"x", "y">>>({{16}}, f);
}
/// Meshes of up to `most` devices.
inline std::vector<std::vector<int>> meshes(int most) {
  std::vector<std::vector<int>> all;
  for (int devices = 1; devices <= most; ++devices) all.push_back(gs::balanced_extents(devices, std::vector(2, gs::dynamic)));
  all.push_back({1, most / 2});
  return all;
}

/// A Python interpreter with the module, or an empty text. The user's Python may hide the system's.
inline std::string python_with(const std::string& module) {
  for (const std::string name : {"python3", "/usr/bin/python3"})
    if (std::system((name + " -c 'import " + module + "' 2>/dev/null").c_str()) == 0) return name;
  return {};
}
/// Runs a Python program without double quotes. The program fails by an exception.
inline bool runs(const std::string& python, const std::string& program) {
  return std::system((python + " -c \"" + program + "\"").c_str()) == 0;
}

}  // namespace tensor_cases
