// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The simulated backend: all devices of a mesh in one process, computing real results.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// All devices of a mesh in this process, each with its own buffers. A collective copies between them. It checks that sender and receiver
/// expect the same sizes, and that members of a gather pass the same sizes.
class simulated : public backend {
 public:
  /// The limit for one process.
  static constexpr int most_devices = 1 << 20;
  /// Throws `gshard::error` for more devices.
  static void check(int n_devices) {
    if (n_devices > most_devices)
      throw error("simulated: a process simulates at most " + std::to_string(most_devices) + " devices, not " + std::to_string(n_devices));
  }

  /// `nodes`: the nodes of a cluster, to get results with the same bits as there. Throws `gshard::error` for more than `most_devices`
  /// devices, an extent below 1, or nodes of another number of devices.
  explicit simulated(const std::vector<int>& extents, node_map nodes = {});

 protected:
  GSHARD_INLINE std::size_t do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds&,
                                     bool at_once) override;

  /// Copies as late as possible. An early read of a result, or an early write to an operand, therefore gives wrong results, as on MPI
  /// ranks.
  GSHARD_INLINE void do_finish(std::size_t started) override;

  GSHARD_INLINE void do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) override;

 private:
  struct message {
    std::span<std::byte> to;
    std::span<const std::byte> from;
  };
  std::vector<std::vector<message>> under_way_;  // by the number that do_start returned

  static std::vector<int> all_of(int n_devices);
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE simulated::simulated(const std::vector<int>& extents, node_map nodes)
    : backend(extents, all_of(device_count(extents)), std::move(nodes)) {}

GSHARD_INLINE std::vector<int> simulated::all_of(int n_devices) {
  check(n_devices);
  std::vector<int> devices(std::size_t(n_devices), 0);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

GSHARD_INLINE std::size_t simulated::do_start(std::uint32_t axes, std::span<const exchange_part> parts, const exchange_bounds&,
                                              bool /*at_once*/) {
  const auto free = std::ranges::find(under_way_, true, &std::vector<message>::empty);
  const auto number = std::size_t(free - under_way_.begin());
  if (free == under_way_.end()) under_way_.emplace_back();
  for (int device = 0; device < int(parts.size()); ++device) {
    const device_group group(extents(), axes, device);
    const exchange_part& to = parts[std::size_t(device)];
    const auto own = std::size_t(group.member());
    for (std::size_t m = 0; m < std::size_t(group.size()); ++m) {
      if (m == own) continue;
      const int sender = group.device(int(m));
      const exchange_part& from = parts[std::size_t(sender)];
      if (from.send[own].size() != to.recv[m].size()) {
        under_way_[number].clear();
        throw error("exchange over axes " + detail::axes_text(axes) + ": device " + std::to_string(sender) +
                    " sends " + std::to_string(from.send[own].size()) + " bytes to device " +
                    std::to_string(device) + ", which expects " + std::to_string(to.recv[m].size()));
      }
      under_way_[number].push_back({to.recv[m], from.send[own]});
    }
  }
  return number;
}

GSHARD_INLINE void simulated::do_finish(std::size_t started) {
  for (const auto& [to, from] : under_way_[started]) detail::copy_bytes(to, from);
  under_way_[started].clear();
}

GSHARD_INLINE void simulated::do_all_gather(std::uint32_t axes, std::span<const gather_part> parts) {
  for (int device = 0; device < int(parts.size()); ++device) {
    const device_group group(extents(), axes, device);
    const gather_part& to = parts[std::size_t(device)];
    const gather_part& first = parts[std::size_t(group.device(0))];
    if (!std::ranges::equal(to.recv, first.recv, {}, &std::span<std::byte>::size, &std::span<std::byte>::size))
      throw error("all_gather over axes " + detail::axes_text(axes) + ": device " + std::to_string(device) +
                  " and device " + std::to_string(group.device(0)) + " pass different sizes");
    for (std::size_t m = 0; m < std::size_t(group.size()); ++m) {
      const gather_part& from = parts[std::size_t(group.device(int(m)))];
      if (int(m) != group.member()) detail::copy_bytes(to.recv[m], from.send);
    }
  }
}

#endif

}}  // namespace gshard::v0
