// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks the extents to which a plan is bound: all are given, none is negative, and every tensor can be counted.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// "dim 'B'"
inline std::string text_of(const dim& d) { return d.letter ? std::string("dim '") + d.letter + "'" : "a dim made of others"; }

/// Throws `gshard::error` if an axis or a dim of a plan has no extent, a negative extent, or one that cannot be counted. Also throws for a
/// mesh of more than `max_devices`, and for a tensor of more than `max_tensor_bytes`. `during`: the operation that needs the extents, such
/// as "dry run".
inline void check_sizes(const plan_view& plan, const extents& e, std::string_view during) {
  const std::string where = std::string(during) + ": ";
  for (int a = 0; a < plan.mesh.rank(); ++a)
    if (e.axis(a) < 1)
      throw error(where + "axis \"" + std::string(plan.mesh.name(a)) + "\" is given " +
                  (e.axis(a) < 0 ? "the extent " + std::to_string(e.axis(a)) : "no extent"));
  device_count(std::span(e.axes.data(), std::size_t(plan.mesh.rank())));
  for (std::size_t i = 0; i < plan.dims.size(); ++i) {
    const dim& d = plan.dims[i];
    const std::int64_t extent = e.dim(int(i));
    if (extent >= 0 && extent <= max_tensor_bytes) continue;
    const std::string about = where + text_of(d);
    if (extent == -1 && !e.knows_dim(int(i))) throw error(about + " is given no extent");
    if (extent < 0) throw error(about + " is given the extent " + std::to_string(extent));
    const bool is_capped = extent == uncountable && d.what != dim::kind::bound;
    const std::string found = is_capped ? "a larger extent" : "the extent " + std::to_string(extent);
    throw error(about + " has " + found + ", and at most " + std::to_string(max_tensor_bytes) + " can be counted");
  }
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    const value& t = plan.values[v];
    if (is_countable(t, e)) continue;
    std::string sizes;
    for (int d = 0; d < t.rank(); ++d) sizes += (d ? " x " : "") + std::to_string(e.dim(t.dims[d]));
    throw error(where + text_of_value(plan, std::int32_t(v)) + " has " + sizes + " elements, more than can be counted");
  }
}

}}}  // namespace gshard::v0::detail
