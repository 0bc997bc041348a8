// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Stores whose content depends only on the step, and the directories of runs.

#include "../io/stores.hpp"

#include <gshard/survive/checkpoint/checkpointer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace run_stores {

namespace gs = gshard;
using texts = std::vector<std::string>;

inline std::vector<stores::tensor_case> tensors() {
  std::vector<stores::tensor_case> all = stores::usual();
  all.push_back({"large", gs::dtype::f32, {300, 7, 31}});
  all.push_back({"adam.m.large", gs::dtype::f32, {300, 7, 31}, false});
  return all;
}
/// An element as `stores::fill` sets it, with the step in its first byte. No element is infinite.
inline void right(std::byte* to, const std::byte* truth, std::size_t size, std::uint32_t step) {
  std::memcpy(to, truth, size);
  to[size - 1] &= std::byte{0x3f};
  to[0] = std::byte(step);
}
inline void set_step(gs::parameter_store& store, std::uint32_t step) {
  stores::for_each_element(store, [&](std::byte* at, const std::byte* truth, std::size_t size) { right(at, truth, size, step); });
  store.set_steps(step);
}
inline bool is_step(const gs::parameter_store& store, std::uint32_t step) {
  bool equal = store.steps() == step;
  stores::for_each_element(store, [&](std::byte* at, const std::byte* truth, std::size_t size) {
    std::byte wanted[8];
    right(wanted, truth, size, step);
    equal = equal && std::memcmp(at, wanted, size) == 0;
  });
  return equal;
}
inline gs::parameter_store make(const gs::any_cluster& on, std::uint64_t seed = 1, std::uint32_t step = 0) {
  gs::parameter_store store = stores::make(on, tensors(), seed);
  set_step(store, step);
  return store;
}

/// The names in a directory except the lock, which exists from the first checkpointer on.
inline texts names_in(const std::string& path) {
  texts names;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().filename() != gs::detail::lock_file) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}
/// Options that append warnings to a list.
inline gs::checkpointer_options telling(texts& said, gs::checkpointer_options options = {}) {
  options.report = [&](const std::string& text) { said.push_back(text); };
  return options;
}

}  // namespace run_stores
