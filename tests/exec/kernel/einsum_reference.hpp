// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernel/gemm/factors.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace einsum_reference {

namespace ks = gshard::kernel;

using extents = std::map<char, std::int64_t>;

inline ks::operand_dims operand(const std::string& letters, const extents& sizes) {
  ks::operand_dims dims;
  dims.rank = static_cast<int>(letters.size());
  for (std::size_t d = 0; d < letters.size(); ++d) {
    dims.factor[d] = static_cast<int>(std::distance(sizes.begin(), sizes.find(letters[d])));
    dims.extent[d] = sizes.at(letters[d]);
  }
  return dims;
}

inline std::int64_t count(const std::string& letters, const extents& sizes) {
  std::int64_t n = 1;
  for (char c : letters) n *= sizes.at(c);
  return n;
}

inline std::size_t position(const std::string& letters, const extents& sizes, const extents& index) {
  std::int64_t at = 0;
  for (char c : letters) at = at * sizes.at(c) + index.at(c);
  return static_cast<std::size_t>(at);
}

/// Calls f(index) for every assignment of all letters.
template <class F>
void for_each_index(const extents& sizes, F f) {
  extents index;
  std::int64_t n = 1;
  for (const auto& [letter, size] : sizes) {
    index[letter] = 0;
    n *= size;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i;
    for (auto& [letter, value] : index) {
      value = rest % sizes.at(letter);
      rest /= sizes.at(letter);
    }
    f(index);
  }
}

template <class T>
std::vector<double> einsum(const std::string& a, const std::string& b, const std::string& out,
                           const extents& sizes, const std::vector<T>& x, const std::vector<T>& y,
                           double alpha) {
  std::vector<double> result(static_cast<std::size_t>(count(out, sizes)));
  for_each_index(sizes, [&](const extents& index) {
    result[position(out, sizes, index)] += alpha * static_cast<double>(x[position(a, sizes, index)]) *
                                           static_cast<double>(y[position(b, sizes, index)]);
  });
  return result;
}

}  // namespace einsum_reference
