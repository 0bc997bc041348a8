// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Assigns each value of a plan an offset in one block of memory, by lifetimes.

#include <gshard/core/plan/lifetime.hpp>
#include <gshard/exec/tensor/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A first-fit allocator of offsets in one block of memory.
class first_fit {
 public:
  std::int64_t take(std::int64_t bytes) {
    bytes = rounded(bytes);
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second < bytes) continue;
      const auto [offset, length] = *gap;
      gaps_.erase(gap);
      if (length > bytes) gaps_[offset + bytes] = length - bytes;
      return offset;
    }
    const std::int64_t offset = size_;
    size_ += bytes;
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    if (bytes == 0) return;
    auto gap = gaps_.emplace(offset, rounded(bytes)).first;
    const auto next = std::next(gap);
    if (next != gaps_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap != gaps_.begin()) {
      const auto before = std::prev(gap);
      if (before->first + before->second == gap->first) {
        before->second += gap->second;
        gaps_.erase(gap);
      }
    }
  }
  std::int64_t size() const { return size_; }

 private:
  std::map<std::int64_t, std::int64_t> gaps_;  // offset -> length
  std::int64_t size_ = 0;

  static std::int64_t rounded(std::int64_t bytes) {
    constexpr auto unit = std::int64_t(buffer::alignment);
    return (bytes + unit - 1) / unit * unit;
  }
};

/// The offset of every value in an arena. Two values share bytes only if their lifetimes do not overlap. The offset is -1 for parameters,
/// which have their own memory, and for values that share the storage of another.
struct memory_map {
  std::vector<std::int64_t> offset;
  std::int64_t size = 0;
};

/// `life`, `bytes`: by value. Only the lifetimes of roots count.
inline memory_map lay_out(std::span<const lifetime> life, std::size_t steps, std::span<const std::int64_t> bytes) {
  memory_map m;
  m.offset.assign(life.size(), -1);
  std::vector<std::vector<std::size_t>> beginning(steps + 1), ending(steps + 1);  // entry 0: values that begin before the first step
  for (std::size_t v = 0; v < life.size(); ++v) {
    if (life[v].root != std::int32_t(v) || life[v].persistent) continue;
    beginning[std::size_t(life[v].first + 1)].push_back(v);
    ending[std::size_t(life[v].last < 0 ? 0 : life[v].last)].push_back(v);
  }
  first_fit memory;
  const auto take = [&](const std::vector<std::size_t>& those) {
    for (const std::size_t v : those) m.offset[v] = memory.take(bytes[v]);
  };
  take(beginning[0]);
  for (std::size_t i = 0; i < steps; ++i) {
    take(beginning[i + 1]);
    for (const std::size_t v : ending[i]) memory.give_back(m.offset[v], bytes[v]);
  }
  m.size = memory.size();
  return m;
}

}}}  // namespace gshard::v0::detail
