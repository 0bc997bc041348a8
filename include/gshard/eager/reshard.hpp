// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Resharding of tensors outside of programs: reshard, all_to_all and to_global.

#include <gshard/exec/program/spec_of.hpp>
#include <gshard/eager/eager_call.hpp>
#include <gshard/core/reshard/reshard.hpp>
#include <gshard/core/trace/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
template <class Spec>
inline constexpr auto reshard_model = [](auto&, auto x) { return annotate<Spec>(x); };

/// The sharding of `Spec` after the last axis of dim `From` has moved to the end of dim `To`.
template <class Spec, int From, int To>
struct moved_layout {
  static constexpr sharding before = [] {
    diagnostic problem;
    return resolve(Spec::named, mesh_of<Spec>::shape, "all_to_all", problem);
  }();
  static_assert(!before[From].empty(), "gshard: all_to_all from a dim that no mesh axis shards");
  static constexpr sharding value = [] {
    sharding s = before;
    s[From].pop_back();
    s[To].push_back(before[From].back());
    return s;
  }();
};

template <int Rank, std::size_t... I>
constexpr auto replicated_spec(std::index_sequence<I...>) {
  return spec<decltype((void(I), replicated{}))...>{};
}
}  // namespace detail

/// reshard<P<none, "expert">>(t): the same tensor with another sharding. A partial sum is completed.
/// Shapes: any -> the same.
/// Communicates: the cheapest collectives that `plan_reshard` finds; nothing if t has the sharding.
/// Compile time: rank, and axes that are used twice.
/// Throws: `gshard::error` if the cluster lacks an axis.
/// @see to_global
template <class To, class T, class From>
tensor<T, To> reshard(const tensor<T, From>& t) {
  static_assert(holds<To::rank == From::rank, expected_rank<From::rank>, actual_rank<To::rank>>,
                "gshard: a tensor has another number of dims than its partition spec, equation or operation expects");
  static_assert(!tensor<T, To>::is_partial, "gshard: reshard makes complete tensors, not partial sums");
  if constexpr (std::is_same_v<To, From>) {
    tensor<T, To> copy(t.cluster(), {t.extents().begin(), t.extents().end()});
    for (std::size_t i = 0; i < t.local_shards(); ++i) std::ranges::copy(t.local_shard(i).span(), copy.local_shard(i).data);
    return copy;
  } else {
    return detail::run_eager<detail::reshard_model<To>, To>("reshard", t);
  }
}

/// all_to_all<0, 1>(t): the minor-most mesh axis of dim 0 shards dim 1 instead.
/// Shapes: any -> the same.
/// Communicates: one all_to_all.
/// Compile time: that t has both dims.
/// Throws: nothing.
/// @see reshard
template <int From, int To, class T, class Spec>
auto all_to_all(const tensor<T, Spec>& t) {
  static_assert(From != To && From >= 0 && To >= 0 && From < Spec::rank && To < Spec::rank,
                "gshard: all_to_all moves an axis between two dims");
  return reshard<detail::spec_of<detail::mesh_of<Spec>, detail::moved_layout<Spec, From, To>>>(t);
}

/// to_global(t): the complete tensor, row-major, on every process. A partial sum is completed.
/// Shapes: any -> as many elements.
/// Communicates: a reshard to replicated.
/// Compile time: nothing.
/// Throws: nothing.
/// @see from_global
template <class T, class Spec>
std::vector<T> to_global(const tensor<T, Spec>& t) {
  using whole = decltype(detail::replicated_spec<Spec::rank>(std::make_index_sequence<std::size_t(Spec::rank)>{}));
  const auto elements = [](const tensor<T, whole>& complete) {
    const auto view = complete.local_shard(0);
    return std::vector<T>(view.data, view.data + view.size());
  };
  if constexpr (std::is_same_v<Spec, whole>) return elements(t);
  else return elements(reshard<whole>(t));
}

}}  // namespace gshard::v0
