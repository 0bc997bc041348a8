// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A pointer to a function, or none, that the compiler can test.

#include <gshard/core/base/compiler.hpp>

namespace gshard { inline namespace v0 {

/// A pointer to a function, or none. g++ 12 under -fsanitize=undefined does not compare the address of a function at compile time.
template <class Function>
class optional_function;

template <class Result, class... Parameters>
class optional_function<Result(Parameters...)> {
 public:
  using pointer = Result (*)(Parameters...);

  constexpr optional_function() = default;
  constexpr optional_function(pointer function) : function_(function), exists_(true) {}

  constexpr explicit operator bool() const { return exists_; }
  constexpr Result operator()(Parameters... arguments) const { return function_(arguments...); }

 private:
  pointer function_ = nullptr;
  bool exists_ = false;
};

}}  // namespace gshard::v0
