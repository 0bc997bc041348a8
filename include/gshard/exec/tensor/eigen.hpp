// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Views of shards as Eigen matrices, and Eigen matrices as inputs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/tensor/tensor.hpp>

#include <Eigen/Core>

#include <type_traits>

namespace gshard { inline namespace v0 {

/// A shard as an Eigen matrix, without a copy: the last dim as columns, all others as rows.
template <class T>
auto as_eigen(const shard_view<T>& s) {
  using matrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using mapped = Eigen::Map<std::conditional_t<std::is_const_v<T>, const matrix, matrix>>;
  const Eigen::Index cols = s.rank() == 0 ? 1 : s.extent(s.rank() - 1);
  Eigen::Index rows = 1;
  for (int d = 0; d + 1 < s.rank(); ++d) rows *= s.extent(d);
  return mapped(s.data, rows, cols);
}

namespace detail {
/// Reads matrices, vectors, maps, blocks and expressions, column-major or row-major. Expressions without memory are computed first.
template <class Dense>
  requires std::is_base_of_v<Eigen::DenseBase<Dense>, Dense>
struct array_reader<Dense> {
  using value_type = typename Dense::Scalar;
  static constexpr bool owns = std::is_same_v<Dense, typename Dense::PlainObject>;

  template <class F>
  static void read(const Dense& m, F f) {
    if constexpr ((Dense::Flags & Eigen::DirectAccessBit) != 0)
      f(whole_array<value_type>{m.data(), {m.size(), 2, true, {m.rows(), m.cols()}, {m.rowStride(), m.colStride()}}});
    else
      array_reader<typename Dense::PlainObject>::read(m, f);
  }
};
}  // namespace detail

}}  // namespace gshard::v0
