// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The bytes that devices receive in a communication step, for any extents, including uneven and empty shards.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// One device for each combination of shard sizes. Prices visit these devices instead of all. Along axes of windows and reordered axes they
/// include all coordinates, up to `most` devices. On larger meshes they include the first two, the last two, and the coordinates of pairs.
class representative_places {
 public:
  constexpr representative_places(list_view<window> windows, const extents& e) : windows_(windows), e_(e) {}

  /// Adds the shards of a tensor before and after a move.
  constexpr void add(const value& from, const value& to) {
    for (int d = 0; d < to.rank(); ++d) {
      const short_list &before = from.layout[d], &after = to.layout[d];
      const bool reads = (!from.windows.empty() && from.windows[d]) || (!to.windows.empty() && to.windows[d]);
      const bool nests = before.is_prefix_of(after) || after.is_prefix_of(before);
      if (reads || !nests) add_all(before.mask() | after.mask());
      for (const value* v : {&from, &to})
        if (!v->windows.empty()) add_pairs(windows_[std::size_t(v->windows[d])].pairs, v->layout[d]);
      add_changes(e_.dim(to.dims[d]), before.size() > after.size() ? before : after);
      if (!nests) add_changes(e_.dim(to.dims[d]), before.size() > after.size() ? after : before);
    }
  }
  /// Calls f(coordinates), in the order of the devices.
  template <class F>
  constexpr void for_each(F f) const {
    mesh_place at{};
    for (;;) {
      f(at);
      int a = max_axes - 1;
      for (; a >= 0; --a) {
        if ((at[std::size_t(a)] = next(a, at[std::size_t(a)])) < e_.axis(a)) break;
        at[std::size_t(a)] = 0;
      }
      if (a < 0) return;
    }
  }
  /// The number of devices, along the axes of a mask, that these coordinates represent.
  constexpr std::int64_t count(std::uint32_t axes, const mesh_place& at) const {
    std::int64_t n = 1;
    for (int a = 0; a < max_axes; ++a)
      if ((axes >> a) & 1u) n *= next(a, at[std::size_t(a)]) - at[std::size_t(a)];
    return n;
  }

 private:
  list_view<window> windows_;
  const extents& e_;
  std::uint32_t all_ = 0;                   // axes with all coordinates
  std::array<list<int>, max_axes> changes_;  // coordinates at which the size of shards may change

  static constexpr std::int64_t most = 1 << 16;

  constexpr void add_all(std::uint32_t axes) {
    if (e_.devices(all_ | axes) <= most) {
      all_ |= axes;
      return;
    }
    for (int a = 0; a < max_axes; ++a)
      if ((axes >> a) & 1u)
        for (const int c : {1, 2, e_.axis(a) - 2, e_.axis(a) - 1}) changes_[std::size_t(a)].push_back(c);
  }
  /// A window with pairs is read along one axis.
  constexpr void add_pairs(const pair_list& pairs, const short_list& axes) {
    if (axes.size() != 1 || ((all_ >> axes[0]) & 1u)) return;
    list<int>& changes = changes_[std::size_t(axes[0])];
    for (const device_pair* p = pairs.data; p != pairs.data + pairs.count; ++p)
      for (const int c : {p->source, p->source + 1, p->target, p->target + 1}) changes.push_back(c);
  }
  /// A block of `length` indices has shards of equal size, then maybe a short one, then empty ones.
  constexpr void add_changes(std::int64_t length, const short_list& axes, int i = 0) {
    if (i == axes.size() || length == 0) return;
    const int a = axes[i];
    const std::int64_t n = e_.axis(a), shard = (length + n - 1) / n, full = length / shard;
    add_changes(shard, axes, i + 1);
    if (full == n) return;
    changes_[std::size_t(a)].push_back(int(full));
    changes_[std::size_t(a)].push_back(int(full) + 1);
    add_changes(length % shard, axes, i + 1);
  }
  /// The next coordinate along an axis, or its extent.
  constexpr int next(int a, int at) const {
    if ((all_ >> a) & 1u) return at + 1;
    int found = e_.axis(a);
    for (const int c : changes_[std::size_t(a)])
      if (c > at && c < found) found = c;
    return found;
  }
};

/// The bytes that devices receive in a communication step. Its tensors must be countable.
class step_traffic {
 public:
  constexpr step_traffic(const node& step, list_view<value> values, list_view<window> windows, const extents& e)
      : step_(step), values_(values), windows_(windows), e_(e), devices_(e.devices(step.attr.axes)) {}

  /// The bytes of the device that receives most. `of`: only its bytes in moves of this kind.
  constexpr std::int64_t most(op_ref of) const {
    if (devices_ <= 1) return 0;
    if (is_looped_product(step_.kind)) return of_ring(values_[std::size_t(ring_operand(step_))]);
    const bool all = of == op::none;
    if (traits(step_.kind).sums) return all || of == step_.kind ? of_sums() : 0;
    return of_moves(of, all);
  }

 private:
  const node& step_;
  list_view<value> values_;
  list_view<window> windows_;
  const extents& e_;
  std::int64_t devices_;  // of a group

  constexpr const value& before(int i) const { return values_[std::size_t(step_.input(i))]; }
  constexpr const value& after(int i) const { return values_[std::size_t(step_.output(i))]; }

  /// Every device receives the missing part of its new shards. `all`: in all moves, not only of this kind.
  constexpr std::int64_t of_moves(op_ref of, bool all) const {
    representative_places places(windows_, e_);
    for (int i = 0; i < step_.inputs; ++i) places.add(before(i), after(i));
    std::int64_t most = 0, asked = 0;
    places.for_each([&](const mesh_place& at) {
      std::int64_t bytes = 0, here = 0;
      for (int i = 0; i < step_.inputs; ++i) {
        const std::int64_t lacking = bytes_lacking(before(i), after(i), windows_, e_, at, at);
        bytes += lacking;
        if (all || operation_of_move(step_, i) == of) here += lacking;
      }
      if (bytes <= most) return;
      most = bytes;
      asked = here;
    });
    return asked;
  }
  /// The first device has the largest shards. In a reduce_scatter, it receives an addend of its shard from each other device.
  constexpr std::int64_t of_sums() const {
    const bool scatters = !traits(step_.kind).one_call;  // no all_reduce
    std::int64_t elements = 0;
    for (int i = 0; i < step_.inputs; ++i) elements += shard_elements(scatters ? after(i) : before(i), windows_, e_);
    const dtype type = before(0).type;
    if (scatters) return saturating_product(elements * size_of(type), devices_ - 1);
    return bytes_of_sum(elements * size_of(type), type, devices_);
  }
  /// A device receives every block except one. For an operand, this is its own block; for a sum, the block with which its partial sums
  /// begin.
  constexpr std::int64_t of_ring(const value& ring) const {
    const value v = sent(ring);
    const std::uint32_t axes = step_.attr.axes;
    const auto elements = [&](const mesh_place& at) {
      std::int64_t n = 1;
      for (int d = 0; d < v.rank(); ++d) n *= held(v, d, windows_, e_, at).size();
      return n;
    };
    const auto differ = [](const mesh_place& one, const mesh_place& other, std::uint32_t along) {
      bool found = false;
      for (int a = 0; a < max_axes; ++a) found = found || (((along >> a) & 1u) && one[std::size_t(a)] != other[std::size_t(a)]);
      return found;
    };
    representative_places places(windows_, e_);
    places.add(v, v);
    std::int64_t most = 0;
    places.for_each([&](const mesh_place& first) {
      if (differ(first, {}, axes)) return;
      std::int64_t all = 0, least = uncountable;
      places.for_each([&](const mesh_place& member) {
        if (differ(first, member, ~axes)) return;
        const std::int64_t n = elements(member);
        all += n * places.count(axes, member);
        if (n < least) least = n;
      });
      if (all - least > most) most = all - least;
    });
    return most * size_of(v.type);
  }
};

}}}  // namespace gshard::v0::detail
