// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/dtype.hpp>

#include <complex>
#include <type_traits>

namespace gs = gshard;
using gs::dtype;

namespace {

static_assert(gs::dtype_of<float> == dtype::f32 && gs::dtype_of<double> == dtype::f64 && gs::dtype_of<std::int32_t> == dtype::i32);
static_assert(gs::dtype_of<std::int64_t> == dtype::i64 && gs::dtype_of<bool> == dtype::boolean);
static_assert(gs::dtype_of<std::complex<float>> == dtype::c64 && gs::dtype_of<std::complex<double>> == dtype::c128);
static_assert(gs::dtype_of<gs::half> == dtype::f16 && gs::dtype_of<gs::bfloat16> == dtype::bf16);  // without Eigen's headers

// Other types are no elements, not even a struct that resembles a complex number.
template <class T>
struct pair_of {
  T real, imag;
};
static_assert(!gs::detail::is_element<char> && !gs::detail::is_element<pair_of<float>> &&
              !gs::detail::is_element<std::complex<long double>>);

static_assert(gs::size_of(dtype::boolean) == 1 && gs::size_of(dtype::bf16) == 2 && gs::size_of(dtype::c64) == 8 &&
              gs::size_of(dtype::c128) == 16);
static_assert(gs::name(dtype::c64) == "c64" && gs::cpp_name(dtype::i64) == "int64");
static_assert(gs::complex_of(dtype::f32) == dtype::c64 && gs::traits(gs::complex_of(dtype::f64)).part == dtype::f64);
static_assert(gs::is_differentiable(dtype::c128) && !gs::is_differentiable(dtype::i64) && !gs::is_differentiable(dtype::f16));
// Numbers in a program are elements, or errors.
static_assert(gs::can_hold(dtype::i32, -0x1p31) && !gs::can_hold(dtype::i32, 0x1p31) && gs::can_hold(dtype::i64, 0x1p31));
static_assert(!gs::can_hold(dtype::i64, 0.5) && !gs::can_hold(dtype::i64, 0x1p63) && gs::can_hold(dtype::c64, 0.5));
static_assert(gs::can_hold(dtype::boolean, 1) && !gs::can_hold(dtype::boolean, 2) && gs::can_hold(dtype::f16, 0.1));
static_assert(gs::has_sums(dtype::i32) && !gs::has_sums(dtype::boolean) && !gs::has_sums(dtype::bf16));

}  // namespace
