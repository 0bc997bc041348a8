// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/tensor/tensor.hpp>

#if __has_include(<xtensor/containers/xadapt.hpp>)  // since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#else
#include <xtensor/xadapt.hpp>
#endif

#include <cstddef>
#include <vector>

namespace gshard { inline namespace v0 {

/// A shard as an xtensor expression of its rank, without a copy. The shard must outlive it.
template <class T>
auto as_xtensor(const shard_view<T>& s) {
  std::vector<std::size_t> shape;
  for (int d = 0; d < s.rank(); ++d) shape.push_back(std::size_t(s.extent(d)));
  return xt::adapt(s.data, std::size_t(s.size()), xt::no_ownership(), shape);
}

}}  // namespace gshard::v0
