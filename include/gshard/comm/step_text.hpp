// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// A step of a plan in messages: "512 all_to_all at moe.hpp:38"
inline std::string step_text(const plan_view& plan, std::int32_t i) {
  const node& n = plan.steps[std::size_t(i)];
  std::string s = std::to_string(i) + " " + std::string(name(n.kind));
  if (!n.place.file) return s;
  std::string_view file(n.place.file);
  if (const std::size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return s + " at " + std::string(file) + ":" + std::to_string(n.place.line) + (n.place.gradient ? " (its gradient)" : "");
}

}}}  // namespace gshard::v0::detail
