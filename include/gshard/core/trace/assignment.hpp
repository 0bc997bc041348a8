// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Device assignment: places the shards of a tensor on given devices of the mesh (arXiv 2006.16668 section 3.2).

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

namespace detail {

/// Finds the sharding that places the pieces of a tensor, in row-major order, on the given devices. It first tries axes in the mesh's own
/// device order. Otherwise it takes any axes that make the pieces, and the device order that places them.
class assignment_reader {
 public:
  constexpr assignment_reader(const mesh_shape& mesh, list_view<int> pieces, list_view<int> devices)
      : mesh_(mesh), pieces_(pieces), devices_(devices), layout_(sharding::replicated(int(pieces.size()))) {
    std::size_t count = 1;
    for (const int n : pieces) count *= std::size_t(n > 0 ? n : 0);
    if (pieces.size() > std::size_t(max_rank) || mesh.static_devices() == 0 || count != devices.size()) return;
    found_ = extend(0);
    if (found_ || !is_order(devices, int(devices.size()))) return;
    any_order_ = true;
    found_ = extend(0);
    if (!found_) return;
    order_ = list<int>(devices.size(), 0);
    for (std::size_t p = 0; p < devices.size(); ++p) order_[std::size_t(device_of(int(p)))] = devices[p];
  }
  constexpr bool found() const { return found_; }
  constexpr const sharding& layout() const { return layout_; }
  /// The device order; empty: the mesh's own.
  constexpr const list<int>& order() const { return order_; }

 private:
  const mesh_shape& mesh_;
  list_view<int> pieces_, devices_;
  sharding layout_;
  bool found_ = false, any_order_ = false;
  list<int> order_;

  constexpr int shards_of(int d) const {
    int n = 1;
    for (int i = 0; i < layout_[d].size(); ++i) n *= mesh_.static_extent(layout_[d][i]);
    return n;
  }
  /// Adds axes to dim d until it has its number of pieces, then continues with the next dim.
  constexpr bool extend(int d) {
    if (d == layout_.rank) return matches();
    const int n = shards_of(d);
    if (n == pieces_[std::size_t(d)] && extend(d + 1)) return true;
    for (int a = 0; a < mesh_.count; ++a) {
      if (((layout_.used() >> a) & 1u) || n * mesh_.static_extent(a) > pieces_[std::size_t(d)]) continue;
      layout_[d].push_back(a);
      if (extend(d)) return true;
      layout_[d].pop_back();
    }
    return false;
  }
  /// True if every piece is on its device. Axes that shard nothing must have one device.
  constexpr bool matches() const {
    for (int a = 0; a < mesh_.count; ++a)
      if (!((layout_.used() >> a) & 1u) && mesh_.static_extent(a) != 1) return false;
    for (std::size_t p = 0; p < devices_.size() && !any_order_; ++p)
      if (device_of(int(p)) != devices_[p]) return false;
    return true;
  }
  constexpr int device_of(int piece) const {
    int at[max_axes]{};
    for (int d = layout_.rank; d-- > 0; piece /= pieces_[std::size_t(d)]) {
      int block = piece % pieces_[std::size_t(d)];
      for (int i = layout_[d].size(); i-- > 0;) {
        const int a = layout_[d][i];
        at[a] = block % mesh_.static_extent(a);
        block /= mesh_.static_extent(a);
      }
    }
    int device = 0;
    for (int a = 0; a < mesh_.count; ++a) device = device * mesh_.static_extent(a) + at[a];
    return device;
  }
};

}  // namespace detail

/// assign(x, {1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}): x, sharded by a device assignment (`shard` of arXiv 2006.16668 section 3.2). `pieces` is
/// the number of shards along each dim. `devices` lists the device of each shard in row-major order: any permutation of the mesh. Slices,
/// padding, reversals, rotations and concatenation move straight between orders of the devices. Other verbs compute in the mesh's order.
/// Shapes: the shape of x.
/// Communicates: one collective_permute for another order of the same shards; otherwise the reshard that `plan_reshard` finds.
/// Compile time: that the extents of the mesh are static, that its axes can shard the dims into these pieces, and that the devices are a
/// permutation.
/// Throws: nothing.
/// @see annotate, device_order
constexpr symbol assign(here x, list_view<int> pieces, list_view<int> devices) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  if (pieces.size() != std::size_t(x.rank())) {
    b.fail(fault::rank_mismatch, "assign", {}, x.rank(), int(pieces.size()));
    return b.nothing();
  }
  const detail::assignment_reader read(b.mesh, pieces, devices);
  if (!read.found()) b.fail(fault::no_such_assignment, "assign");
  if (b.failed()) return b.nothing();
  sharding layout = read.layout();
  if (!read.order().empty()) layout.order = b.order_of(read.order());
  return detail::emit_annotate(x, layout);
}
constexpr symbol assign(here x, std::initializer_list<int> pieces, std::initializer_list<int> devices) {
  return assign(x, list_view(pieces.begin(), pieces.size()), list_view(devices.begin(), devices.size()));
}

GSHARD_TAKES(assign, (detail::call<3, symbol, detail::list_of<int>, detail::list_of<int>>::fits<Given...>),
             "assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices")
template <class X>
constexpr auto assign(const X& x, std::initializer_list<int>) {
  static_assert(detail::accepts<X>,
                "gshard: assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices");
  return detail::refused(x);
}
template <class X>
  requires(!detail::is_symbol<X>)
constexpr auto assign(const X& x, std::initializer_list<int>, std::initializer_list<int>) {
  static_assert(detail::accepts<X>,
                "gshard: assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices");
  return detail::refused(x);
}

}}  // namespace gshard::v0
