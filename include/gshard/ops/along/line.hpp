// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The dim along which an operation of one dim computes.

#include <gshard/core/trace/builder.hpp>

#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// A dim of x. Negative numbers count from the back.
constexpr int dim_from(symbol x, int dim) { return x.owner->failed() || dim >= 0 ? dim : dim + x.rank(); }

/// True if x is a tensor of real numbers with this dim; reports if not.
constexpr bool check_along(symbol x, int at, std::string_view operation) {
  return require_real(*x.owner, operation, {x}) && check_dim(x, at, operation);
}

}  // namespace detail

}}  // namespace gshard::v0
