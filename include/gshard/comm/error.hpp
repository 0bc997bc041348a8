// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>
#include <string>

namespace gshard { inline namespace v0 {

/// Every error that gshard can only find at run time. The text names what was asked for and by whom
/// (operation, tensor, dims, devices), so that it can be shown to a user as it is.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}}  // namespace gshard::v0
