// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Verbs on tensors outside of programs, over shardings and meshes: all give the same numbers as one device.

#include <gshard/eager/reshard.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace every_spec {

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
inline const std::vector<std::vector<int>> meshes{{1, 1}, {2, 1}, {1, 3}, {2, 3}};

/// The numbers 0, 1/2, ..., 5 in some order: sums of some of them are exact.
template <class T>
std::vector<T> numbers(std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = T(double(i * 37 % 11) / 2);
  return v;
}
template <>
inline std::vector<std::int32_t> numbers<std::int32_t>(std::size_t n) {
  std::vector<std::int32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::int32_t(i * 5 % 4);
  return v;
}

/// An operand: its extents, and the specs to try.
template <class T, class... Specs>
struct operand {
  using element = T;
  std::vector<std::int64_t> extents;
  std::vector<T> values{};

  std::vector<T> all() const {
    std::size_t n = 1;
    for (const std::int64_t e : extents) n *= std::size_t(e);
    return values.empty() ? numbers<T>(n) : values;
  }
};

/// Calls f(tensors...) for all specs of all operands.
template <class F, class T, class... Specs, class... Rest>
void for_each_spec(const F& f, const auto& on, const operand<T, Specs...>& first, const Rest&... rest) {
  const auto with = [&](const auto& t) {
    const auto next = [&](const auto&... more) { f(t, more...); };
    if constexpr (sizeof...(Rest) > 0) for_each_spec(next, on, rest...);
    else next();
  };
  (with(gs::from_global<T, Specs>(on, first.extents, first.all())), ...);
}

/// Checks that verb(operands...), which returns a tensor, is `expected` on all meshes with all specs, to the last bit.
template <class Expected, class F, class... Operands>
void check(const std::vector<Expected>& expected, const F& verb, const Operands&... operands) {
  for (const std::vector<int>& e : meshes) {
    const auto on = gs::simulate<mesh>(e);
    for_each_spec(
        [&](const auto&... x) {
          const std::vector<Expected> whole = gs::to_global(verb(x...));
          REQUIRE(whole.size() == expected.size());
          CAPTURE(e[0]);
          CAPTURE(e[1]);
          for (std::size_t i = 0; i < whole.size(); ++i) {
            CAPTURE(i);
            if (whole[i] != expected[i]) CHECK(whole[i] == expected[i]);
          }
          CHECK(whole == expected);
        },
        on, operands...);
  }
}

}  // namespace every_spec
