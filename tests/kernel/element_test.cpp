// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/kernel/element.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

namespace gs = gshard;
using gs::dtype;

TEST_CASE("with_element: the type of every element type") {
  for (int t = 0; t < gs::element_types; ++t) {
    CAPTURE(gs::name(dtype(t)));
    CHECK(gs::detail::with_element(dtype(t), []<class T>(T*) { return gs::dtype_of<T>; }) == dtype(t));
    CHECK(gs::detail::with_element(dtype(t), []<class T>(T*) { return sizeof(T); }) == std::size_t(gs::size_of(dtype(t))));
  }
}

TEST_CASE("with_addends: complex numbers are added part by part") {
  const auto addend = [](dtype type) {
    return gs::detail::with_addends(type, []<class T>(T*) {
      if constexpr (std::is_same_v<T, gs::detail::bf16>) return dtype::bf16;
      else return gs::dtype_of<T>;
    });
  };
  for (const dtype type : {dtype::f32, dtype::f64, dtype::i32, dtype::i64, dtype::bf16}) CHECK(addend(type) == type);
  CHECK(addend(dtype::c64) == dtype::f32);
  CHECK(addend(dtype::c128) == dtype::f64);
}

static_assert(std::is_same_v<gs::detail::element_of<dtype::c128>, std::complex<double>>);
