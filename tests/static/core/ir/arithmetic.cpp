// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/arithmetic.hpp>

#include <complex>
#include <cstdint>
#include <limits>

namespace gs = gshard;
namespace arithmetic = gs::detail::arithmetic;
using complex = std::complex<double>;

namespace {

static_assert(gs::detail::product(complex(1, 2), complex(3, 4)) == complex(-5, 10));
static_assert(gs::detail::conjugate_of(complex(1, 2)) == complex(1, -2) && gs::detail::conjugate_of(3.0) == 3.0);
// Integers are computed modulo 2^n: an overflow is not undefined behavior.
static_assert(arithmetic::add{}(std::numeric_limits<std::int64_t>::max(), std::int64_t(1)) == std::numeric_limits<std::int64_t>::lowest());
static_assert(arithmetic::multiply{}(std::int32_t(1) << 30, std::int32_t(4)) == 0);
static_assert(arithmetic::subtract{}(std::int32_t(3), std::int32_t(5)) == -2);
static_assert(arithmetic::choose{}(0.0, 1.0, 2.0) == 2.0 && arithmetic::choose{}(-1, 1, 2) == 1);
static_assert(arithmetic::less{}(1, 2) == 1 && arithmetic::at_most{}(2, 2) == 1 &&
              arithmetic::equal{}(complex(1, 1), complex(1, 0)) == complex(0));
static_assert(arithmetic::both{}(true, false) == false && arithmetic::either{}(true, false) && arithmetic::negation{}(false));
// Quotients are rounded towards zero, remainders have the sign of the divisor, and neither is an error for 0 or the smallest number.
static_assert(arithmetic::quotient{}(7, -2) == -3 && arithmetic::quotient{}(-7, 2) == -3 && arithmetic::quotient{}(7, 0) == 0);
static_assert(arithmetic::quotient{}(std::numeric_limits<std::int32_t>::lowest(), -1) == std::numeric_limits<std::int32_t>::lowest());
static_assert(arithmetic::modulo{}(7, -3) == -2 && arithmetic::modulo{}(-7, 3) == 2 && arithmetic::modulo{}(6, 3) == 0);
static_assert(arithmetic::modulo{}(7, 0) == 0 && arithmetic::modulo{}(std::numeric_limits<std::int64_t>::lowest(), std::int64_t(-1)) == 0);

// Every function has its own number.
static_assert([] {
  int n = 0;
  bool counted = true;
  arithmetic::for_each_function([&]<class F>(F) { counted = counted && arithmetic::number_of<F> == n++; });
  return counted && n > 20;
}());
static_assert(arithmetic::number_of<int> == -1);

}  // namespace
