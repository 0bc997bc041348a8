// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks of reshapes when they are bound. Their results are aliases, as those of annotations.

#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/bind/local_step.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

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

/// Throws if the extents of the dims that a reshape changes do not fit. Another dim may be empty, so products of all extents do not tell.
inline void check_reshape(const node& n, const bound_plan& bound) {
  const auto extent = [&](std::int32_t value, int d) { return bound.sizes.dim(bound.plan.at(value).dims[d]); };
  const std::int32_t x = n.input(0), y = n.output();
  const int at = n.attr.dim;
  switch (n.attr.change) {
    case reshape_kind::unchanged: return;
    case reshape_kind::rename: return check_renamed(n, bound);
    case reshape_kind::merge:
      if (extent(x, at) * extent(x, at + 1) != extent(y, at)) refuse_product(n, bound);
      return;
    case reshape_kind::split:
      if (extent(y, at) * extent(y, at + 1) != extent(x, at)) refuse_product(n, bound);
      return;
    case reshape_kind::insert:
    case reshape_kind::remove:
      if (const std::int64_t one = n.attr.change == reshape_kind::insert ? extent(y, at) : extent(x, at); one != 1)
        throw error((n.attr.change == reshape_kind::insert ? "expand_dims: dim " : "squeeze: dim ") + std::to_string(at) + " has extent " +
                    std::to_string(one) + ", not 1");
  }
}

/// A reshape moves no data. This checks its extents.
template <class T>
action bind(kernel_of<op::reshape>, const local_step<T>& step) {
  check_reshape(step.n, step.plan);
  return {};
}

}}}  // namespace gshard::v0::detail
