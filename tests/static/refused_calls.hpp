// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/ir/fault.hpp>

#include "tracing.hpp"

namespace refused_calls {

/// True if f(m, x, u) compiles and adds no other fault. x is a tensor, and u the result of a refused call.
template <class F>
constexpr bool passes(F f) {
  const auto what = tracing::problem_of([&](gshard::builder& b, auto& m) {
                      const gshard::symbol unknown = gshard::detail::refused(3.0), x = tracing::input(b, "AB");
                      f(m, x, unknown);
                    }).what;
  return what == gshard::fault::refused_call || what == gshard::fault::nothing;
}

}  // namespace refused_calls
