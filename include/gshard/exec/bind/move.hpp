// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds operations that move or number elements to kernels: gathers, slices, concatenation, reshapes.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/kernel/move/cast.hpp>
#include <gshard/kernel/move/embedding.hpp>
#include <gshard/kernel/move/iota.hpp>
#include <gshard/kernel/move/move.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/moved.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The product of the batch dims of the shard of ids.
template <class T>
std::int64_t batch_of_ids(const local_step<T>& step, int ids) {
  std::int64_t batch = 1;
  for (int d = 0; d < own<gather_attributes>(step.n).batch; ++d) batch *= step.in_value(ids).extent(step.device, d);
  return batch;
}

template <class T>
action bind(kernel_of<op::gather>, const local_step<T>& step) {
  const std::int64_t batch = batch_of_ids(step, 1);
  if (batch == 0) return {};
  return [x = step.in(0), ids = step.ids(1), y = step.out(), l = step.in_line(0), batch, outer = step.in_line(0).outer / batch,
          count = step.in_elements(1) / batch](const run_context&) {
    for (std::int64_t b = 0; b < batch; ++b)
      kernel::gather_along<T>(x + b * outer * l.n * l.inner, ids + b * count, y + b * outer * count * l.inner, outer,
                              {l.first, l.n, l.whole}, l.inner, count);
  };
}

template <class T>
action bind(kernel_of<op::scatter_add>, const local_step<T>& step) {
  const std::int64_t batch = batch_of_ids(step, 0);
  if (batch == 0) return {};
  return [ids = step.ids(0), dy = step.in(1), y = step.out(), l = step.out_line(), batch, outer = step.out_line().outer / batch,
          count = step.in_elements(0) / batch](const run_context&) {
    for (std::int64_t b = 0; b < batch; ++b)
      kernel::scatter_add_along<T>(ids + b * count, dy + b * outer * count * l.inner, y + b * outer * l.n * l.inner, outer,
                                   {l.first, l.n, l.whole}, l.inner, count);
  };
}

template <class T>
action bind(kernel_of<op::iota>, const local_step<T>& step) {
  check_indices("iota", step.out_line().whole);
  return [y = step.out_ids(), at = step.out_place(), along = step.n.attr.dim](const run_context&) { kernel::iota(y, at, along); };
}

/// The bits of a number of this element type, as an element of the kernel.
template <class T>
T fill_of(dtype type, double number) {
  T bits{};
  with_element(type, [&]<class Element>(Element*) {
    const auto x = kernel::detail::converted<Element>(number);
    if constexpr (sizeof(Element) == sizeof(T)) std::memcpy(&bits, &x, sizeof(T));
  });
  return bits;
}

template <class T>
action bind(kernel_of<op::strided_slice>, const local_step<T>& step) {
  const kernel::window_array w = step.windows(0);
  const bound_value &x = step.in_value(0), &y = step.out_value(0);
  for (int d = 0; d < x.rank() && step.n.attr.inside; ++d) {
    const auto at = std::size_t(d);
    if (y.extents[at] > 0 && w[at].position(0) < 0)
      throw error("slice: index " + std::to_string(w[at].position(0)) + " is before the first of dim " + std::to_string(d));
    if (y.extents[at] > 0 && w[at].position(y.extents[at] - 1) >= x.extents[at])
      throw error("slice: index " + std::to_string(w[at].position(y.extents[at] - 1)) + " is beyond the extent " +
                  std::to_string(x.extents[at]) + " of dim " + std::to_string(d));
  }
  return [move = kernel::window_move<T>(step.in_place(0), step.out_place(), w), from = step.in(0), to = step.out(),
          fill = fill_of<T>(x.type, step.n.attr.fill)](const run_context&) { move.run(from, to, fill); };
}
template <class T>
action bind(kernel_of<op::pad>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}
template <class T>
action bind(kernel_of<op::reverse>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}
template <class T>
action bind(kernel_of<op::roll>, const local_step<T>& step) {
  return bind(kernel_of<op::strided_slice>{}, step);
}

template <class T>
action bind(kernel_of<op::permute>, const local_step<T>& step) {
  const kernel::window_array w = step.windows(0);
  for (int d = 0; d < step.in_value(0).rank(); ++d) {
    const pair_list& pairs = w[std::size_t(d)].pairs;
    const std::int64_t devices = step.in_value(0).extents[std::size_t(d)];
    for (int i = 0; i < pairs.count; ++i)
      if (const device_pair& p = pairs.data[i]; p.source >= devices || p.target >= devices)
        throw error("collective_permute: the pair {" + std::to_string(p.source) + ", " + std::to_string(p.target) + "} is beyond the " +
                    std::to_string(devices) + " devices along the axis");
  }
  return bind(kernel_of<op::strided_slice>{}, step);
}

template <class T>
action bind(kernel_of<op::concat>, const local_step<T>& step) {
  std::vector<std::pair<const T*, kernel::window_move<T>>> parts;
  for (int i = 0; i < step.n.inputs; ++i)
    parts.emplace_back(step.in(i), kernel::window_move<T>(step.in_place(i), step.out_place(), step.windows(i)));
  return [parts, to = step.out()](const run_context&) {
    for (const auto& [from, move] : parts) move.run_into(from, to);
  };
}

/// Writes the state of a loop, which is the result. Without operands it writes zeros. With one, it copies the initial state. With two, the
/// old state and the new one, it copies the new one. With three, the state, a row and an index, it writes the row at the index.
template <class T>
action bind(kernel_of<op::carry>, const local_step<T>& step) {
  if (step.n.inputs == 0)
    return [to = step.out_value(0).data[step.device], bytes = step.out_value(0).bytes(step.device)](const run_context&) {
      if (bytes > 0) std::memset(to, 0, std::size_t(bytes));
    };
  if (writes_row(step.n))
    return [row = step.in(1), at = step.ids(2), to = step.out(), count = step.in_elements(1)](const run_context&) {
      std::copy_n(row, count, to + *at * count);
    };
  return [from = step.in_value(step.n.inputs - 1).data[step.device], to = step.out_value(0).data[step.device],
          bytes = step.out_value(0).bytes(step.device)](const run_context&) {
    if (bytes > 0 && from != to) std::memcpy(to, from, std::size_t(bytes));
  };
}

template <class T>
action bind(kernel_of<op::annotate>, const local_step<T>&) {
  return {};
}

/// Throws the error of a merge or split that changes the number of elements. If one of the two dims is a quotient, the error says that the
/// other one does not divide the merged dim. If the first dim counts devices along axes, the reshape belongs to per_shard, and the error
/// says that the devices do not divide the merged dim.
[[noreturn]] inline void refuse_product(const node& n, const bound_plan& bound) {
  const plan_view& plan = bound.plan;
  const int at = n.attr.dim;
  const bool merges = n.attr.change == reshape_kind::merge;
  const dim_list &apart = plan.at(merges ? n.input(0) : n.output()).dims, &whole = plan.at(merges ? n.output() : n.input(0)).dims;
  const int first = apart[at], second = apart[at + 1];
  const dim& devices = plan.dims[std::size_t(first)];
  const auto extent = [&](int d) { return std::to_string(bound.sizes.dim(d)); };
  const char letter = plan.dims[std::size_t(whole[at])].letter;
  const std::string about = "dim " + (letter ? std::string("'") + letter + "'" : std::to_string(at)) + " of extent " +
                            extent(whole[at]) + " is not ";
  const auto is_quotient_by = [&](int part, int divisor) {
    const dim& d = plan.dims[std::size_t(part)];
    return d.what == dim::kind::ratio && d.number == 1 && d.divisor == 1 && d.first == whole[at] && d.second == divisor;
  };
  if (devices.what != dim::kind::blocks)
    throw error((n.attr.label ? n.attr.label : "reshape") + (": " + about) +
                (is_quotient_by(first, second)   ? "a multiple of " + extent(second)
                 : is_quotient_by(second, first) ? "a multiple of " + extent(first)
                                                 : "the product of " + extent(first) + " and " + extent(second)));
  std::string axes;
  for (int a = 0; a < plan.mesh.rank(); ++a)
    if ((devices.first >> a) & 1u) axes += (axes.empty() ? "\"" : ", \"") + std::string(plan.mesh.name(a)) + "\"";
  throw error("per_shard: " + about + "divided into equal shards by the " + extent(first) + " devices along " + axes);
}

/// Throws if a dim is renamed to a dim of another extent.
inline void check_renamed(const node& n, const bound_plan& bound) {
  const plan_view& plan = bound.plan;
  const dim_list &before = plan.at(n.input(0)).dims, &after = plan.at(n.output()).dims;
  const auto text = [&](int d) {
    const char letter = plan.dims[std::size_t(d)].letter;
    return (letter ? std::string("'") + letter + "' " : std::string()) + "of extent " + std::to_string(bound.sizes.dim(d));
  };
  for (int d = 0; d < before.size(); ++d)
    if (bound.sizes.dim(before[d]) != bound.sizes.dim(after[d]))
      throw error("rename_dims: dim " + std::to_string(d) + ", " + text(before[d]) + ", cannot be dim " + text(after[d]));
}

/// A reshape moves no data. This checks its extents.
template <class T>
action bind(kernel_of<op::reshape>, const local_step<T>& step) {
  std::int64_t before = 1, after = 1;
  for (const std::int64_t e : step.in_value(0).extents) before *= e;
  for (const std::int64_t e : step.out_value(0).extents) after *= e;
  const reshape_kind change = step.n.attr.change;
  if (change == reshape_kind::rename) check_renamed(step.n, step.plan);
  if (before != after && (change == reshape_kind::merge || change == reshape_kind::split)) refuse_product(step.n, step.plan);
  if (before != after)
    throw error("reshape: a tensor of " + std::to_string(before) + " elements cannot have dims of " + std::to_string(after));
  return {};
}

}}}  // namespace gshard::v0::detail
