// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes to stderr, for reports that the user did not direct elsewhere.

#include <gshard/core/base/compiler.hpp>

#include <unistd.h>

#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// Writes a text by one system call, so that lines of several processes do not mix. Any thread may call it.
inline void write_to_stderr(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}}}  // namespace gshard::v0::detail
