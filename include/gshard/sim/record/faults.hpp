// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Faults of a simulated run: dead devices, slow or dead links, stragglers and jitter.

#include <gshard/core/base/hash.hpp>
#include <gshard/exec/process/error.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// A link, from a chip to a neighbor, with reduced bandwidth.
struct link_fault {
  int from = 0, to = 0;  ///< chips, row-major
  double factor = 0;     ///< remaining share of its bandwidth; 0: it is dead

  bool dead() const { return factor <= 0; }
};

/// A device that is slower than others.
struct straggler {
  int device = 0;
  double factor = 1;  ///< its work and collectives of its groups take this many times as long
  double delay = 0;   ///< seconds by which it begins after the others
};

/// The faults of a simulated run, given before it begins. The same faults and the same seed give the same run.
struct faults {
  std::vector<int> dead_devices{};
  std::vector<link_fault> links{};
  std::vector<straggler> stragglers{};
  double jitter = 0;       ///< the work of a device takes up to this share longer, drawn anew for every step
  std::uint64_t seed = 0;  ///< of the random numbers
  double timeout = 60;     ///< seconds of the simulation after which a device gives up waiting for another

  bool none() const { return dead_devices.empty() && links.empty() && stragglers.empty() && jitter == 0; }
  /// True if devices with the same work may differ in time.
  bool tells_devices_apart() const { return !dead_devices.empty() || !stragglers.empty() || jitter != 0; }

  bool dead(int device) const { return std::ranges::find(dead_devices, device) != dead_devices.end(); }
  double delay(int device) const {
    double seconds = 0;
    for (const straggler& s : stragglers)
      if (s.device == device) seconds += s.delay;
    return seconds;
  }
  /// The factor by which a step takes longer on a device: as a straggler, and by jitter. At least 1 if no straggler's factor is less.
  double slowness(int device, std::uint64_t step) const {
    double factor = 1;
    for (const straggler& s : stragglers)
      if (s.device == device) factor *= s.factor;
    return jitter == 0 ? factor : factor * (1 + jitter * draw(std::uint64_t(device), step));
  }
  /// The remaining share of a link's bandwidth; 0 if it is dead.
  double link_factor(int from, int to) const {
    double factor = 1;
    for (const link_fault& f : links)
      if (f.from == from && f.to == to) factor = f.dead() ? 0 : factor * f.factor;
    return factor;
  }

  /// Throws `gshard::error` if a fault names a device that does not exist, or has an invalid number.
  void check(int devices) const {
    const auto known = [&](int device, std::string_view what) {
      if (device < 0 || device >= devices)
        throw error("faults: " + std::string(what) + " " + std::to_string(device) + " is not one of " + std::to_string(devices) +
                    " devices");
    };
    for (const int d : dead_devices) known(d, "dead device");
    for (const straggler& s : stragglers) {
      known(s.device, "straggler");
      if (!(s.factor > 0) || !(s.delay >= 0))
        throw error("faults: straggler " + std::to_string(s.device) + " needs a factor above 0 and a delay of at least 0");
    }
    if (!(jitter >= 0) || !(timeout >= 0)) throw error("faults: jitter and timeout are at least 0");
  }

 private:
  /// A uniform number in [0, 1).
  double draw(std::uint64_t device, std::uint64_t step) const {
    std::uint64_t x = fnv1a<std::uint64_t>().add(seed).add(device).add(step).value();
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // of splitmix64, whose upper bits are uniform
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return double((x ^ (x >> 31)) >> 11) * 0x1p-53;
  }
};

namespace detail {
/// "3, 5, 6 and 12 more"
inline std::string devices_text(std::span<const int> devices) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < devices.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + std::to_string(devices[i]);
  if (devices.size() > most) text += " and " + std::to_string(devices.size() - most) + " more";
  return text;
}
}  // namespace detail

/// Throws the `gshard::error` that ends a run in which devices wait for dead ones: "all_gather: devices 0, 1, 3 waited 60 s for device 2,
/// which is dead".
[[noreturn]] inline void fail_waiting(std::string_view what, std::span<const int> waiting, std::span<const int> dead, double seconds) {
  std::string time = std::to_string(seconds);
  time.erase(time.find_last_not_of('0') + 1);
  if (time.back() == '.') time.pop_back();
  throw error(std::string(what) + ": device" + (waiting.size() == 1 ? " " : "s ") + detail::devices_text(waiting) + " waited " + time +
              " s for device" + (dead.size() == 1 ? " " : "s ") + detail::devices_text(dead) + ", which " +
              (dead.size() == 1 ? "is" : "are") + " dead");
}

}}  // namespace gshard::v0
