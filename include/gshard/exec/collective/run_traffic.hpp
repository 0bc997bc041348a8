// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts the bytes that the devices of a process receive in a run, and in its steps.

#include <gshard/exec/backend/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The bytes received in the current run, per held device. Allocates nothing after the first run.
class run_traffic {
 public:
  void begin(const backend& b) {
    bytes_.assign(b.received().size(), 0);
    between_.clear();
    for (const traffic& t : b.received()) between_.push_back(t.between_nodes);
  }
  /// Adds the bytes received during f() to the counts of a step and of the run. Returns the step's busiest device, and the bytes by which
  /// the largest count of the step has grown.
  template <class F>
  std::pair<std::size_t, std::int64_t> count(const backend& b, std::vector<std::int64_t>& in_step, F f) {
    const auto total = [](const traffic& t) { return t.exchange_bytes + t.gather_bytes; };
    const std::span<const traffic> devices = b.received();
    before_.resize(devices.size());
    std::ranges::transform(devices, before_.begin(), total);
    const std::int64_t most = *std::ranges::max_element(in_step);
    f();
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const std::int64_t bytes = total(devices[d]) - before_[d];
      bytes_[d] += bytes;
      in_step[d] += bytes;
    }
    const auto busiest = std::ranges::max_element(in_step);
    return {std::size_t(busiest - in_step.begin()), *busiest - most};
  }
  void end(const backend& b) {
    for (std::size_t d = 0; d < between_.size(); ++d) between_[d] = b.received()[d].between_nodes - between_[d];
  }

  std::span<const std::int64_t> bytes() const { return bytes_; }
  /// Bytes from other nodes, after end(). They include bytes that collectives receive outside of count(), while other steps run.
  std::span<const std::int64_t> between_nodes() const { return between_; }

 private:
  std::vector<std::int64_t> bytes_, between_, before_;
};

}}}  // namespace gshard::v0::detail
