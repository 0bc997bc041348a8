// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Verbs on tensors outside of programs whose results have dims that no operand has: uniform, normal, iota, one_hot and split_dim. Their
// extents are arguments.

#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/eager/eager_call.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/random/random.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/random/random_kernel.hpp>
#endif

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
template <class Spec>
inline constexpr auto uniform_model = [](auto& m) { return annotate<Spec>(uniform<first_letters<Spec::rank>>(m)); };
template <class Spec>
inline constexpr auto normal_model = [](auto& m) { return annotate<Spec>(normal<first_letters<Spec::rank>>(m)); };
template <class Spec, int Along>
inline constexpr auto iota_model = [](auto& m) { return annotate<Spec>(iota<first_letters<Spec::rank>>(m, Along)); };

template <class T>
inline constexpr auto one_hot_model = [](auto&, auto ids) { return one_hot<"Z", T>(ids); };
template <int Dim>
inline constexpr auto split_dim_model = [](auto&, auto x) { return split_dim<Dim>(x, "YZ"); };

template <auto Model, class T, class Spec>
auto run_source(std::string_view operation, const any_cluster& on, std::vector<std::int64_t> extents, std::uint64_t seed) {
  static_assert(!tensor<T, Spec>::is_partial, "gshard: a partial sum cannot be filled from complete data");
  return run_eager_with<Model, Spec, T, first_letters<Spec::rank>>(operation, added_extents(on, std::move(extents), seed));
}
}  // namespace detail

/// uniform<float, P<"x", none>>(cluster, {8, 6}, seed): a tensor of random numbers, uniform in [0, 1). They depend on the seed and on the
/// global index, and not on the sharding.
/// Shapes: those given.
/// Communicates: nothing; every device computes its shard.
/// Compile time: a real element type.
/// Throws: `gshard::error` for another number of extents, or if the cluster lacks an axis.
/// @see normal, ops/random/random.hpp
template <class T, class Spec>
auto uniform(const any_cluster& on, std::vector<std::int64_t> extents, std::uint64_t seed) {
  return detail::run_source<detail::uniform_model<Spec>, T, Spec>("uniform", on, std::move(extents), seed);
}
/// normal<float, P<"x", none>>(cluster, {8, 6}, seed): as uniform, with random numbers of mean 0 and deviation 1.
/// Shapes: those given.
/// Communicates: nothing; every device computes its shard.
/// Compile time: a real element type.
/// Throws: as uniform.
/// @see uniform
template <class T, class Spec>
auto normal(const any_cluster& on, std::vector<std::int64_t> extents, std::uint64_t seed) {
  return detail::run_source<detail::normal_model<Spec>, T, Spec>("normal", on, std::move(extents), seed);
}
/// iota<P<"x", none>, 1>(cluster, {8, 6})[t, u] = u: the index along a dim, int32; dim 0 by default.
/// Shapes: those given.
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the dim exists.
/// Throws: `gshard::error` for another number of extents, or if the cluster lacks an axis.
/// @see core/trace/iota.hpp
template <class Spec, int Along = 0>
auto iota(const any_cluster& on, std::vector<std::int64_t> extents) {
  return detail::run_source<detail::iota_model<Spec, Along>, float, Spec>("iota", on, std::move(extents), 0);
}
/// one_hot(ids, classes)[i..., e] = 1 where ids[i...] = e, else 0, on tensors. one_hot<double>(ids, classes): in another element type than
/// float. An id outside [0, classes) has a row of zeros.
/// Shapes: int32 ids [I...] -> [I..., classes].
/// Communicates: nothing.
/// Compile time: that ids are int32 and complete.
/// Throws: `gshard::error` if the number of classes is negative.
/// @see ops/index/one_hot.hpp
template <class T = float, class I, class Spec, std::integral Count>
auto one_hot(const tensor<I, Spec>& ids, Count classes) {
  return detail::run_eager_with<detail::one_hot_model<T>, spec<>, float, "Z">(
      "one_hot", detail::added_extents(ids.cluster(), {std::int64_t(classes)}), ids);
}
/// split_dim<1>(x, 4, 8) on tensors: dim 1 as two dims of these extents.
/// Shapes: [G,B*T,M] -> [G,B,T,M].
/// Communicates: nothing, or, if shards of the dim do not hold whole indices of the first new dim, their borders.
/// Compile time: that x has the dim; that x is complete.
/// Throws: `gshard::error` if the extent of the dim is not the product of the two.
/// @see merge_dims, core/trace/shape.hpp
template <int Dim, class T, class Spec, std::integral First, std::integral Second>
auto split_dim(const tensor<T, Spec>& x, First first, Second second) {
  return detail::run_eager_with<detail::split_dim_model<Dim>, spec<>, float, "YZ">(
      "split_dim", detail::added_extents(x.cluster(), {std::int64_t(first), std::int64_t(second)}), x);
}

}}  // namespace gshard::v0
