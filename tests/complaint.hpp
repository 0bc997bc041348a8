// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/process/error.hpp>

#include <string>

/// The text of the error that f throws, or nothing.
template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const gshard::error& e) {
    return e.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
