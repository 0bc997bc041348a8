// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Views of shards as xtensor expressions, and xtensor arrays as inputs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/tensor/tensor.hpp>

#if __has_include(<xtensor/containers/xadapt.hpp>)  // since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

/// A shard as an xtensor expression of its rank, without a copy. The shard must outlive it.
template <class T>
auto as_xtensor(const shard_view<T>& s) {
  std::vector<std::size_t> shape;
  for (int d = 0; d < s.rank(); ++d) shape.push_back(std::size_t(s.extent(d)));
  return xt::adapt(s.data, std::size_t(s.size()), xt::no_ownership(), shape);
}

namespace detail {
/// Reads containers, adaptors, views and expressions. Expressions without memory are computed first.
template <class Expression>
  requires xt::is_xexpression<Expression>::value
struct array_reader<Expression> {
  using value_type = std::remove_const_t<typename Expression::value_type>;
  static constexpr bool owns = [] {
    if constexpr (requires { typename Expression::temporary_type; }) return std::is_same_v<Expression, typename Expression::temporary_type>;
    else return false;
  }();

  template <class F>
  static void read(const Expression& x, F f) {
    if constexpr (xt::has_data_interface<Expression>::value && xt::has_strides<Expression>::value) {
      if (x.dimension() > std::size_t(max_rank))
        throw error("xtensor: an array of " + std::to_string(x.dimension()) + " dims; tensors have at most " + std::to_string(max_rank));
      whole_array<value_type> a{x.data() + x.data_offset(), {std::int64_t(x.size()), int(x.dimension())}};
      std::copy(x.shape().begin(), x.shape().end(), a.layout.extent.begin());
      std::copy(x.strides().begin(), x.strides().end(), a.layout.stride.begin());
      f(a);
    } else {
      const xt::xarray<value_type> computed(x);
      array_reader<xt::xarray<value_type>>::read(computed, f);
    }
  }
};
}  // namespace detail

}}  // namespace gshard::v0
