// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Messages between devices with their dependencies, as input of the network simulation.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace gshard { inline namespace v0 {

/// Bytes from one device to another. From a device to itself: local work.
struct message {
  int from = 0, to = 0;
  double bytes = 0;
  double seconds = 0;  ///< of work
  bool up = true;      ///< its direction if both ways around a ring are equally long
};

/// Messages with dependencies: each starts when all messages that it waits for have arrived. Numbered as they were added; a message waits
/// only for earlier ones.
class message_list {
 public:
  int add(const message& m, std::span<const int> after = {}) {
    messages_.push_back(m);
    after_.insert(after_.end(), after.begin(), after.end());
    ends_.push_back(after_.size());
    return int(messages_.size()) - 1;
  }
  int add(const message& m, std::initializer_list<int> after) { return add(m, std::span<const int>(after.begin(), after.size())); }

  std::size_t size() const { return messages_.size(); }
  const message& operator[](std::size_t i) const { return messages_[i]; }
  std::span<const int> after(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : ends_[i - 1];
    return std::span<const int>(after_).subspan(first, ends_[i] - first);
  }

  /// The reversed list: every message goes from its receiver to its sender, and dependencies are reversed.
  message_list reversed() const {
    const std::size_t n = size();
    std::vector<std::vector<int>> waiting(n);
    for (std::size_t i = 0; i < n; ++i)
      for (const int before : after(i)) waiting[std::size_t(before)].push_back(int(n - 1 - i));
    message_list back;
    for (std::size_t i = n; i-- > 0;) {
      message m = messages_[i];
      m.from = messages_[i].to;
      m.to = messages_[i].from;
      m.up = !m.up;
      back.add(m, waiting[i]);
    }
    return back;
  }

  /// These messages, then others. A message of `next` without dependencies waits until its sender has sent and received all its messages
  /// here.
  message_list then(const message_list& next) const {
    message_list all = *this;
    std::vector<std::vector<int>> doing;
    for (std::size_t i = 0; i < size(); ++i) {
      const auto from = std::size_t(messages_[i].from), to = std::size_t(messages_[i].to);
      if (doing.size() <= std::max(from, to)) doing.resize(std::max(from, to) + 1);
      doing[to].push_back(int(i));
      if (from != to) doing[from].push_back(int(i));
    }
    std::vector<int> done(doing.size(), -1);
    for (std::size_t d = 0; d < doing.size(); ++d)
      if (!doing[d].empty()) done[d] = all.add({.from = int(d), .to = int(d)}, doing[d]);
    const int first = int(all.size());
    std::vector<int> waits;
    for (std::size_t i = 0; i < next.size(); ++i) {
      waits.assign(next.after(i).begin(), next.after(i).end());
      for (int& w : waits) w += first;
      if (const auto from = std::size_t(next[i].from); waits.empty() && from < done.size() && done[from] >= 0)
        waits.push_back(done[from]);
      all.add(next[i], waits);
    }
    return all;
  }

 private:
  std::vector<message> messages_;
  std::vector<int> after_;         // dependencies of all messages, one after the other
  std::vector<std::size_t> ends_;  // by message: the end of its dependencies
};

}}  // namespace gshard::v0
