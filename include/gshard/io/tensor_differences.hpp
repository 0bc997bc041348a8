// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The text of errors about files that do not fit a store: tensors that are missing, differ, or are unknown.

#include <gshard/io/safetensors_header.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A tensor of a file or of a store, for error texts.
struct described_tensor {
  std::string name;
  std::string is;          // "F32[2,3]"
  std::string compared{};  // The text that must be equal in file and store; empty: `is`.
  std::string whose{};     // " in model.safetensors", " of parameter "w""

  const std::string& key() const { return compared.empty() ? is : compared; }
};

/// The differences between the tensors of a store, `here`, and of its files, `there`, as text; empty if there are none. Lists at most
/// eight.
inline std::string tensor_differences(const std::vector<described_tensor>& here, const std::vector<described_tensor>& there) {
  std::map<std::string_view, const described_tensor*> found;
  for (const described_tensor& t : there) found[t.name] = &t;
  std::vector<std::string> lines;
  for (const described_tensor& t : here) {
    const auto at = found.find(t.name);
    const std::string name = in_quotes(t.name) + t.whose;
    if (at == found.end()) {
      lines.push_back(name + " is missing");
      continue;
    }
    if (const described_tensor& other = *at->second; other.key() != t.key())
      lines.push_back(name + " is " + other.is + other.whose + " and " + t.is + " here");
    found.erase(at);
  }
  for (const described_tensor& t : there)
    if (found.contains(t.name)) lines.push_back(in_quotes(t.name) + t.whose + " is unknown to the store");
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, lines.size()); ++i) text += (i == 0 ? "" : ", ") + lines[i];
  if (lines.size() > 8) text += ", and " + std::to_string(lines.size() - 8) + " more";
  return found.empty() ? text : text + "; all programs must be bound to the store before it is loaded";
}

}}}  // namespace gshard::v0::detail
