// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Hardware presets (TPU pods and clusters): rates, sizes, latencies and their sources.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/cost/step_time.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/sim/network/torus.hpp>
#include <gshard/sim/network/torus_mesh.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The rule for rings: a dimension of a slice of a pod is a ring if its extent is a multiple of this number. `all`: either all dimensions
/// are rings, or none. This is an assumption about real slices; a program may override it. @see hardware::topology
struct ring_rule {
  int multiple = 1;
  bool all = false;
};

/// The known numbers of a kind of hardware, per device, and their source. A device has memory of its own: a core of a TPU v2 or v3, a chip
/// of all later ones.
struct preset {
  std::string_view name{};
  double flops = 0;         ///< additions and multiplications per second at the peak; 0: unknown
  std::int64_t memory = 0;  ///< bytes of a device; 0: no limit
  double memory_bytes = 0;  ///< bytes per second; 0: unknown
  double host_bytes = 0;    ///< bytes per second that a device receives from its host
  int dims = 0;             ///< of the torus of a pod; 0: a cluster, with equal distances between devices
  std::array<int, torus::max_dims> pod{};
  int cores = 1;  ///< devices per chip
  ring_rule rings{};
  double link_bytes = 0;                       ///< bytes per second of a link, one way; in a cluster, of a device's port
  std::array<double, 3> other_link_bytes{};    ///< from other sources; 0: none
  double hop = 0;                              ///< seconds to a neighbor
  double launch = 0;                           ///< seconds that the start of a collective takes
  std::string_view source{};                   ///< of the numbers
  std::string_view doubts{};                   ///< numbers that are disputed or assumed
};

inline constexpr std::array<preset, 11> presets{
    preset{.name = "tpu-v2", .flops = 23e12, .memory = 8'000'000'000, .memory_bytes = 350e9, .host_bytes = 7.5e9, .dims = 2,
           .pod = {16, 16}, .cores = 2, .link_bytes = 62e9, .hop = 1e-6, .launch = 5e-6,
           .source = "CACM 63(7) 2020, A Domain-Specific Supercomputer for Training Deep Neural Networks",
           .doubts = "all of it is remembered, not read again; that small slices are rings in all dimensions is what arXiv 2006.16668 "
                     "figure 9 suggests; launch as measured on a TPU v5p"},
    preset{.name = "tpu-v3", .flops = 61.5e12, .memory = std::int64_t(16) << 30, .memory_bytes = 450e9, .host_bytes = 7.5e9, .dims = 2,
           .pod = {32, 32}, .cores = 2, .link_bytes = 70e9, .other_link_bytes = {80e9, 82e9, 100e9}, .hop = 1e-6,
           .launch = 5e-6, .source = "Cloud TPU v3 documentation; links: arXiv 2304.01433 table 4",
           .doubts = "links: 70 GB/s; others say 80 (ASTRA-sim), 82 (CACM 2020) and 100 (scaling book); 123 TFLOP/s of a chip, the scaling "
                     "book says 140; that small slices are rings in all dimensions is what arXiv 2006.16668 figure 9 suggests; launch as "
                     "measured on a TPU v5p"},
    preset{.name = "tpu-v4", .flops = 275e12, .memory = std::int64_t(32) << 30, .memory_bytes = 1200e9, .host_bytes = 15e9, .dims = 3,
           .pod = {16, 16, 16}, .rings = {4, true}, .link_bytes = 50e9, .other_link_bytes = {45e9}, .hop = 1e-6, .launch = 5e-6,
           .source = "arXiv 2304.01433 table 4 (links, pod); scaling book (hops)",
           .doubts = "links: 50 GB/s; the scaling book says 45; twisted tori are not among the shapes; launch as measured on a TPU v5p"},
    preset{.name = "tpu-v5e", .flops = 197e12, .memory = 16'000'000'000, .memory_bytes = 800e9, .host_bytes = 15e9, .dims = 2,
           .pod = {16, 16}, .rings = {16}, .link_bytes = 50e9, .other_link_bytes = {45e9}, .hop = 1e-6, .launch = 5e-6,
           .source = "Cloud TPU v5e documentation (400 GB/s of a chip, 4 ports, both ways)",
           .doubts = "links: 50 GB/s; the scaling book says 45, and memory 819 GB/s at most; launch as measured on a TPU v5p"},
    preset{.name = "tpu-v5p", .flops = 459e12, .memory = 95'000'000'000, .memory_bytes = 2765e9, .host_bytes = 15e9, .dims = 3,
           .pod = {16, 20, 28}, .rings = {4, true}, .link_bytes = 100e9, .other_link_bytes = {90e9, 86.3e9}, .hop = 1e-6,
           .launch = 4.55e-6,
           .source = "Cloud TPU v5p documentation (1200 GB/s of a chip, 6 ports, both ways); launch: marin-community/marin#6736",
           .doubts = "links: 100 GB/s; the scaling book says 90, a measured permute gave 86.3"},
    preset{.name = "tpu-v6e", .flops = 918e12, .memory = 32'000'000'000, .memory_bytes = 1600e9, .host_bytes = 32e9, .dims = 2,
           .pod = {16, 16}, .rings = {16}, .link_bytes = 100e9, .other_link_bytes = {90e9, 86.8e9}, .hop = 1e-6, .launch = 5.6e-6,
           .source = "scaling book; launch: marin-community/marin#6736",
           .doubts = "links: 100 GB/s at second hand from the Cloud TPU documentation; the scaling book says 90, a measured permute gave "
                     "86.8"},
    preset{.name = "infiniband-100g", .host_bytes = 15e9, .link_bytes = 11.6e9, .launch = 0.9e-6,
           .source = "Open MPI over a 100 Gbit/s InfiniBand-class network, gist jfgrimm 3af692a5",
           .doubts = "the adapter is not named; latency of up to 16 bytes, 1 KiB takes 1.67 us; what a device computes is assumed"},
    preset{.name = "aries", .host_bytes = 15e9, .link_bytes = 9.6e9, .launch = 1.2e-6,
           .source = "Open MPI over Cray Aries, 2016, gists of hppritcha", .doubts = "what a device computes is assumed"},
    preset{.name = "slingshot-11", .host_bytes = 15e9, .link_bytes = 25e9, .launch = 2e-6,
           .source = "vendor's page (200 Gbit/s)", .doubts = "latency is remembered; what a device computes is assumed"},
    preset{.name = "infiniband-hdr", .host_bytes = 15e9, .link_bytes = 25e9, .launch = 1e-6,
           .source = "200 Gbit/s", .doubts = "remembered; what a device computes is assumed"},
    preset{.name = "infiniband-ndr", .host_bytes = 15e9, .link_bytes = 50e9, .launch = 1e-6,
           .source = "400 Gbit/s", .doubts = "remembered; what a device computes is assumed"}};

/// The preset with this name. If there is none, throws `gshard::error` that lists the names.
constexpr const preset& find_preset(std::string_view name) {
  for (const preset& p : presets)
    if (p.name == name) return p;
  std::string text = "there is no preset '" + std::string(name) + "'; there are";
  for (const preset& p : presets) text += (p.name == presets[0].name ? " " : ", ") + std::string(p.name);
  throw error(text);
}

/// A piece of hardware: a preset and its number of chips. Every field may be changed.
struct hardware {
  std::string name;           ///< such as "tpu-v3:32x32"
  preset of;
  std::vector<int> chips;     ///< along the dimensions of the torus; in a cluster the number of devices
  machine device;             ///< rates of a device; in a cluster also its network
  torus topology;             ///< if it is a torus
  std::int64_t memory = 0;    ///< bytes of a device; 0: no limit
  std::optional<std::array<bool, torus::max_dims>> rings{};  ///< dimensions that are rings, in place of the rule of the preset

  bool is_torus() const { return of.dims > 0; }
  int devices() const { return is_torus() ? topology.devices() : chips.at(0); }

  /// This hardware with other chips along the dimensions. Rates, memory, latencies and schemes are kept. `rings` or, without it, the rule
  /// for the new extents gives the rings. Throws as make_hardware does.
  hardware with_chips(std::vector<int> other) const;

  /// A mesh of these extents, placed row-major on the torus. Throws `gshard::error` if their product is not the number of devices, or if
  /// they do not divide the dimensions.
  torus_mesh lay(std::span<const int> extents) const {
    const auto text = [](std::span<const int> list) {
      std::string s;
      for (const int n : list) s += (s.empty() ? "" : "x") + std::to_string(n);
      return s;
    };
    const std::string what = name + ": a mesh of " + text(extents) + " devices";
    if (!is_torus()) throw error(what + " has no place on a torus: it is a cluster");
    if (extents.size() > std::size_t(max_axes)) throw error(what + " has more than " + std::to_string(max_axes) + " axes");
    const torus_mesh m(topology, list_view<int>(extents.data(), extents.size()));
    if (!m.valid())
      throw error(what + " does not fit " + text(chips) + " chips of " + std::to_string(topology.cores) +
                  ": the last axes must be the cores and the last dimensions, or even parts of them");
    return m;
  }
};

namespace detail {
/// Parses "32x16" as numbers of at least 1.
inline std::vector<int> parse_extents(std::string_view text, const std::string& what) {
  std::vector<int> extents;
  std::int64_t product = 1;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    int n = 0;
    const auto [stop, problem] = std::from_chars(text.data() + at, text.data() + end, n);
    if (problem != std::errc() || stop != text.data() + end || n < 1 || (product *= n) > INT_MAX / 64)
      throw error(what + ": '" + std::string(text.substr(at, end - at)) + "' is not a number of chips");
    extents.push_back(n);
    at = end + 1;
  }
  return extents;
}
}  // namespace detail

/// Hardware of a preset with these chips along its dimensions. Throws `gshard::error` if these are too many dimensions.
inline hardware make_hardware(const preset& p, std::vector<int> chips) {
  hardware h;
  h.name = p.name;
  for (std::size_t d = 0; d < chips.size(); ++d) h.name += (d == 0 ? ":" : "x") + std::to_string(chips[d]);
  if (chips.empty() || int(chips.size()) > std::max(p.dims, 1))
    throw error(h.name + ": " + std::string(p.name) + " has " +
                (p.dims > 0 ? std::to_string(p.dims) + " dimensions" : "no dimensions, but a number of devices") + ", not " +
                std::to_string(chips.size()));
  h.of = p;
  h.memory = p.memory;
  if (p.flops > 0) h.device.flops = p.flops;
  if (p.memory_bytes > 0) h.device.memory_bytes = p.memory_bytes;
  h.device.link_bytes = p.dims > 0 ? p.host_bytes : p.link_bytes;  // on a torus only inputs arrive this way
  h.device.start = p.launch;
  torus& t = h.topology;
  t.dims = int(chips.size());
  t.cores = p.cores;
  t.link_bytes = p.link_bytes;
  t.hop = p.hop;
  t.launch = p.launch;
  t.core_bytes = h.device.memory_bytes;
  bool all = true;
  for (const int n : chips) all = all && n % p.rings.multiple == 0;
  for (std::size_t d = 0; d < chips.size() && p.dims > 0; ++d) {
    t.extents[d] = chips[d];
    t.wrap[d] = p.rings.all ? all : chips[d] % p.rings.multiple == 0;
  }
  h.chips = std::move(chips);
  return h;
}

inline hardware hardware::with_chips(std::vector<int> other) const {
  const hardware fresh = make_hardware(of, std::move(other));
  hardware h = *this;
  h.name = fresh.name;
  h.chips = fresh.chips;
  h.topology.dims = fresh.topology.dims;
  h.topology.extents = fresh.topology.extents;
  h.topology.wrap = rings ? *rings : fresh.topology.wrap;
  return h;
}

/// Parses "tpu-v3:32x32", a preset with the chips along its dimensions, or "slingshot-11:128", a cluster of this many devices. Without a
/// number: a complete pod. Throws `gshard::error` that quotes the text.
inline hardware parse_hardware(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string what = "hardware '" + std::string(text) + "'";
  const preset* p = nullptr;
  if (const process_error problem = detail::problem_of([&] { p = &find_preset(text.substr(0, colon)); }); p == nullptr)
    throw error(what + ": " + problem.text);
  if (colon != std::string_view::npos) return make_hardware(*p, detail::parse_extents(text.substr(colon + 1), what));
  if (p->dims == 0) throw error(what + ": how many devices? as in " + std::string(text) + ":64");
  return make_hardware(*p, std::vector<int>(p->pod.begin(), p->pod.begin() + p->dims));
}

namespace detail {
/// "links: 70 GB/s", followed by the value of the preset if it differs. A preset's 0 is unknown.
inline std::string value_text(std::string_view what, double value, double of_preset, double unit, std::string_view name) {
  const auto text = [&](double v) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3g ", v / unit);
    return digits + std::string(name);
  };
  std::string s = std::string(what) + ": " + text(value);
  if (of_preset > 0 && std::abs(value / of_preset - 1) > 1e-9) s += ", changed from " + text(of_preset);
  return s;
}
}  // namespace detail

/// The assumptions of a simulation as sentences for reports. They name doubtful numbers, the numbers in use and their changes, how
/// collectives use links, and which dimensions are rings. preset::source names the sources.
inline std::vector<std::string> assumptions(const hardware& h) {
  const preset& p = h.of;
  const torus& t = h.topology;
  std::vector<std::string> text{"in doubt: " + std::string(p.doubts)};
  const auto add = [&](std::string_view what, double value, double of_preset, double unit, std::string_view name) {
    text.push_back(detail::value_text(what, value, of_preset, unit, name));
  };
  add("a device computes", h.device.flops, p.flops, 1e12, p.flops > 0 ? "TFLOP/s" : "TFLOP/s, assumed");
  add("its memory moves", h.device.memory_bytes, p.memory_bytes, 1e9, p.memory_bytes > 0 ? "GB/s" : "GB/s, assumed");
  if (!h.is_torus()) {
    add("its port receives", h.device.link_bytes, p.link_bytes, 1e9, "GB/s");
    add("a collective starts in", h.device.start, p.launch, 1e-6, "us");
    return text;
  }
  add("a link carries one way", t.link_bytes, p.link_bytes, 1e9, "GB/s");
  add("a hop takes", t.hop, p.hop, 1e-6, "us");
  add("a collective starts in", t.launch, p.launch, 1e-6, "us");
  if (t.cores > 1) add("between cores of a chip", t.core_bytes, p.memory_bytes, 1e9, "GB/s, taken to be the memory's rate");
  constexpr std::array<std::string_view, 4> gathers{"one way round each ring", "both ways round each ring",
                                                    "on all links, phase after phase", "streamed on all links"};
  constexpr std::array<std::string_view, 3> exchanges{"dimension by dimension", "in all orders of dimensions", "every message at once"};
  text.push_back("gathers and sums go " + std::string(gathers.at(std::size_t(t.gather))) + "; all-to-alls " +
                 std::string(exchanges.at(std::size_t(t.exchange))) + ", what is as far both ways " +
                 (t.ties == tie_policy::split ? "half each way" : "one way"));
  std::string rings;
  bool beyond = false;
  for (std::size_t d = 0; d < h.chips.size(); ++d) {
    rings += (d == 0 ? "" : ", ") + std::to_string(h.chips[d]) + (t.wrap[d] ? " (ring)" : " (open)");
    beyond = beyond || h.chips[d] > p.pod[d];
  }
  text.push_back("dimensions: " + rings + "; by default rings are multiples of " + std::to_string(p.rings.multiple) +
                 (p.rings.all ? " in all dimensions" : ""));
  if (beyond) text.push_back("no pod of this kind is as large");
  if (t.all_to_all_efficiency != 1)
    text.push_back(detail::value_text("all-to-alls use", t.all_to_all_efficiency, 0, 0.01, "% of the links: fitted, not physical"));
  return text;
}

}}  // namespace gshard::v0
