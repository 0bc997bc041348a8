// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The exception of the library, and numbers as text for its messages.

#include <gshard/base/exceptions.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace gshard { inline namespace v0 {

/// Every error that gshard can only find at run time. The text names what was asked for and by whom
/// (operation, tensor, dims, devices), so that it can be shown to a user as it is.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {
/// The text of what f throws, or nothing: for errors that other processes must be told of.
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
