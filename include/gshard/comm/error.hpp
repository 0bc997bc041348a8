// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The exception of the library, gshard::error.

#include <gshard/base/exceptions.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace gshard { inline namespace v0 {

/// An error that gshard can only find at run time. The text names the operation, tensor, dims or devices, so that it can be shown to users
/// unchanged.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {
/// Calls f and returns the text of its exception, or an empty string. For errors that must be reported to other processes.
template <class F>
std::string problem_of(F f) {
  std::string text;
  try {
    f();
    return text;
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  return text.empty() ? "an exception without a text" : text;
}
}  // namespace detail

}}  // namespace gshard::v0
