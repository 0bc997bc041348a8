// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/plan.hpp>
#include <gshard/tensor/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Offsets of blocks in one piece of memory: takes the first gap that is large enough.
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

/// Where every value of a plan lies in an arena: two values share bytes only if their lifetimes do not meet. Entries of values that
/// live elsewhere (parameters) or share another's storage are left at -1.
struct memory_map {
  std::vector<std::int64_t> offset;
  std::int64_t size = 0;
};

inline memory_map lay_out(const plan_view& plan, std::span<const std::int64_t> bytes) {
  memory_map m;
  m.offset.assign(plan.values.size(), -1);
  const auto has_own = [&](std::int32_t v) {
    const lifetime& l = plan.lifetimes[std::size_t(v)];
    return l.root == v && !l.persistent;
  };
  first_fit memory;
  const auto take = [&](std::int32_t v) {
    if (has_own(v)) m.offset[std::size_t(v)] = memory.take(bytes[std::size_t(v)]);
  };
  std::vector<std::vector<std::int32_t>> ending(plan.steps.size() + 1);
  for (std::size_t v = 0; v < plan.values.size(); ++v)
    if (has_own(std::int32_t(v))) ending[std::size_t(plan.lifetimes[v].last < 0 ? 0 : plan.lifetimes[v].last)].push_back(std::int32_t(v));
  for (const port& p : plan.inputs) take(p.value);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const node& step = plan.steps[i];
    for (int o = 0; o < step.outputs; ++o) take(step.output(o));
    for (const std::int32_t v : ending[i]) memory.give_back(m.offset[std::size_t(v)], bytes[std::size_t(v)]);
  }
  m.size = memory.size();
  return m;
}

}}}  // namespace gshard::v0::detail
