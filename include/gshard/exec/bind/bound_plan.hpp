// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A plan bound to a cluster: its extents, and the sharding and local shards of every value.

#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/check_sizes.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/placement.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A plan on a cluster: its extents, and for every value the shards of the devices that this process holds. Keeps references to both.
struct bound_plan {
  const any_cluster& on;
  const plan_view& plan;
  axis_map axes;                    // from the plan's axes to the cluster's
  extents sizes;                    // of the plan's dims and mesh axes
  std::vector<bound_value> values;  // their `data` are null until memory is bound

  /// Empty until bind().
  bound_plan(const plan_view& p, const any_cluster& c) : on(c), plan(p) {}

  /// Throws `gshard::error` if the cluster lacks a mesh axis or has it with another extent than the program. Throws also if a dim has no
  /// extent, two extents, a negative one, or another one than in the program, or if a tensor has too many bytes.
  void bind(const dims& given) {
    axes = axis_map(plan.mesh, on);
    std::array<int, max_axes> counts{};
    for (int a = 0; a < plan.mesh.rank(); ++a) counts[std::size_t(a)] = on.extent(axes[a]);
    sizes = plan.bind(given, std::span(counts.data(), std::size_t(plan.mesh.rank())));
    check_mesh();
    check_extents(given);
    for (const gshard::value& v : plan.values) values.push_back(laid_out(v));
  }

  const bound_value& value(std::int32_t v) const { return values[std::size_t(v)]; }

 private:
  void check_mesh() const {
    for (int a = 0; a < plan.mesh.rank(); ++a)
      if (const int planned = plan.mesh.static_extent(a); planned != dynamic && planned != sizes.axis(a))
        throw error("program: axis \"" + std::string(plan.mesh.name(a)) + "\" has extent " + std::to_string(planned) +
                    " in the program and " + std::to_string(sizes.axis(a)) + " here");
  }
  void check_extents(const dims& given) const {
    if (given.twice) throw error(std::string("program: dim '") + given.twice + "' is given two extents");
    check_sizes(plan, sizes, "program");
    for (std::size_t i = 0; i < plan.dims.size(); ++i)
      if (const dim& d = plan.dims[i]; d.known && d.number != sizes.dim(int(i)))
        throw error("program: " + text_of(d) + " has extent " + std::to_string(d.number) + " in the program and is given " +
                    std::to_string(sizes.dim(int(i))));
  }
  bound_value laid_out(const gshard::value& v) const {
    bound_value b;
    b.type = v.type;
    b.layout = axes(v.layout);
    for (int d = 0; d < v.rank(); ++d) b.extents.push_back(sizes.dim(v.dims[d]));
    for (int d = 0; d < v.windows.size(); ++d) {
      const window& w = plan.windows[std::size_t(v.windows[d])];
      b.windows.push_back(v.windows[d] ? held_window{sizes.dim(w.over), w.bind(sizes)} : held_window{});
    }
    if (v.layout.order) b.positions = positions_in(v.layout.order);
    for (const int device : on.devices()) b.places.push_back(place(b, on.backend().extents(), device));
    b.data.assign(on.devices().size(), nullptr);
    return b;
  }
  /// The position of each device of the cluster in one of the plan's device orders. Coordinates along other axes do not change.
  std::vector<int> positions_in(int order) const {
    const std::span<const int> mesh = on.backend().extents();
    const device_orders orders{plan.orders, int(sizes.devices(sizes.known_axes))};
    std::vector<int> positions;
    for (int device = 0; device < device_count(mesh); ++device) {
      auto at = coordinates_of(mesh, device);
      int planned = 0;
      for (int a = 0; a < plan.mesh.rank(); ++a) planned = planned * sizes.axis(a) + at[std::size_t(axes[a])];
      int position = orders.position(order, planned);
      for (int a = plan.mesh.rank(); a-- > 0; position /= sizes.axis(a)) at[std::size_t(axes[a])] = position % sizes.axis(a);
      int there = 0;
      for (std::size_t a = 0; a < mesh.size(); ++a) there = there * mesh[a] + at[a];
      positions.push_back(there);
    }
    return positions;
  }
};

}}}  // namespace gshard::v0::detail
