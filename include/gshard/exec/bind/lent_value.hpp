// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Memory of the caller for an input or output of a plan.

#include <gshard/core/base/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// An input or output in memory of the caller.
struct lent_value {
  std::string name;                ///< "input 0"
  std::int32_t value = -1;         ///< of the plan
  bool is_output = false;
  std::vector<std::byte*> shards;  ///< one per held device: contiguous, row-major; empty: the caller copies
};

/// "input 0, output 1", or "none".
inline std::string names_of(std::span<const lent_value> lent) {
  std::string names;
  for (const lent_value& l : lent) names.append(names.empty() ? "" : ", ").append(l.name);
  return names.empty() ? "none" : names;
}

}}}  // namespace gshard::v0::detail
