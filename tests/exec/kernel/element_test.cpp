// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/element.hpp>

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

static_assert(std::is_same_v<gs::detail::element_of<dtype::c128>, std::complex<double>>);
