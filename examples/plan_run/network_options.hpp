// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "models.hpp"
#include "numbers.hpp"

#include <gshard/sim/run/presets.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace plan_run {

/// Changes to the network of a preset.
struct network_options {
  std::optional<double> link_bytes, hop, launch;
  std::optional<gs::tie_policy> ties;
  std::optional<gs::gather_scheme> gather;
  std::optional<gs::all_to_all_scheme> exchange;
  std::string rings;  // "all", "none" or dimensions; empty: as in the preset

  /// Throws gshard::error for torus options on a cluster, or rings of dimensions that do not exist.
  gs::hardware of(gs::hardware h) const {
    if (!h.is_torus() && (hop || ties || gather || exchange || !rings.empty()))
      throw gs::error(h.name + " is a cluster: --hop, --ties, --gather, --exchange and --rings are for a torus");
    if (link_bytes) (h.is_torus() ? h.topology.link_bytes : h.device.link_bytes) = *link_bytes;
    if (launch) h.topology.launch = h.device.start = *launch;
    if (hop) h.topology.hop = *hop;
    if (ties) h.topology.ties = *ties;
    if (gather) h.topology.gather = *gather;
    if (exchange) h.topology.exchange = *exchange;
    if (!rings.empty()) h.rings = rings_of(h.topology.dims);
    return h.with_chips(h.chips);
  }

 private:
  std::array<bool, gs::torus::max_dims> rings_of(int dims) const {
    std::array<bool, gs::torus::max_dims> is_ring{};
    if (rings == "all") is_ring.fill(true);
    if (rings == "all" || rings == "none") return is_ring;
    for (const std::string& entry : split(rings, ',')) {
      const auto dim = parse_number<int>(entry);
      if (!dim || *dim < 0 || *dim >= dims)
        throw gs::error("--rings " + rings + ": '" + entry + "' is not one of the " + std::to_string(dims) +
                        " dimensions, which are numbered from 0; wants all, none or dimensions, as 0,1");
      is_ring[std::size_t(*dim)] = true;
    }
    return is_ring;
  }
};

}  // namespace plan_run
