// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/tensor_differences.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
using gs::detail::described_tensor, gs::detail::tensor_differences;

TEST_CASE("tensor_differences: what is missing, what differs, and what the store does not know") {
  const std::vector<described_tensor> here{{"a", "F32[2]"}, {"b", "F32[3]"}, {"c", "F32[4]", "[4]", " of parameter \"p\""}};
  CHECK(tensor_differences(here, {{"c", "BF16[4]", "[4]"}, {"b", "F32[3]"}, {"a", "F32[2]"}}).empty());
  CHECK(tensor_differences({}, {}).empty());
  CHECK(tensor_differences(here, {{"a", "F64[2]", "", " in f"}, {"b", "F32[3]", "", " in f"}}) ==
        "\"a\" is F64[2] in f and F32[2] here, \"c\" of parameter \"p\" is missing");
  CHECK(tensor_differences(here, {{"c", "BF16[5]", "[5]", " in f"}, {"b", "F32[3]"}, {"a", "F32[2]"}, {"d", "F32[1]", "", " in g"}}) ==
        "\"c\" of parameter \"p\" is BF16[5] in f and F32[4] here, \"d\" in g is unknown to the store; all programs must be bound to the "
        "store before it is loaded");
}

TEST_CASE("tensor_differences: eight are told, and how many more there are") {
  std::vector<described_tensor> here;
  for (int i = 0; i < 8; ++i) here.push_back({std::to_string(i), "F32[]"});
  CHECK(tensor_differences(here, {}).ends_with("\"7\" is missing"));
  here.push_back({"8", "F32[]"});
  CHECK(tensor_differences(here, {}).ends_with("\"7\" is missing, and 1 more"));
}
