// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lookups by index on tensors outside of programs: gather, scatter_add, one_hot, dynamic_slice and dynamic_update_slice.

#include <gshard/core/trace/iota.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/index/one_hot.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/index/gather_kernel.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#endif

#include <concepts>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
template <int Dim, int Batch>
inline constexpr auto gather_model = [](auto&, auto table, auto ids) { return gather(table, ids, Dim, Batch); };
template <int Dim, int Batch>
inline constexpr auto scatter_add_model = [](auto&, auto x, auto ids, auto updates) { return scatter_add(x, ids, updates, Dim, Batch); };
template <class T>
inline constexpr auto one_hot_model = [](auto&, auto ids) { return one_hot<"Z", T>(ids); };
template <int Dim, int Size>
inline constexpr auto dynamic_slice_model = [](auto&, auto x, auto start) { return dynamic_slice(x, Dim, start, Size); };
template <int Dim>
inline constexpr auto dynamic_update_slice_model = [](auto&, auto x, auto update, auto start) {
  return dynamic_update_slice(x, update, Dim, start);
};

/// The factors of the operands of gather and scatter_add. If the dims do not fit, the factors are arbitrary, and the verb reports it.
template <int Dim, int Batch, int TableRank, int IdsRank>
inline constexpr row_factors lookup = [] {
  constexpr bool fits = Dim >= 0 && Dim < TableRank && Batch >= 0 && Batch <= Dim && Batch <= IdsRank &&
                        TableRank - 1 + IdsRank - Batch <= max_rank;
  if constexpr (fits) return rows_along(Dim, IdsRank, TableRank, Batch);
  else return row_factors{counting(TableRank), counting(IdsRank), counting(TableRank)};
}();

/// A start index as a scalar tensor.
template <std::integral Index>
tensor<std::int32_t, spec<>> start_on(std::string_view operation, const any_cluster& on, Index start) {
  return scalar_on<std::int32_t>(operation, on, start);
}
template <class T, class Spec>
const tensor<T, Spec>& start_on(std::string_view, const any_cluster&, const tensor<T, Spec>& start) {
  return start;
}
template <class Index>
concept start_index = std::integral<Index> || (distributed_tensor<Index> && Index::static_rank == 0);
}  // namespace detail

/// gather<dim, batch>(table, ids)[a..., i..., c...] = table[a..., ids[i...], c...] on tensors; dim = 0 by default. `batch`: the number of
/// leading dims that table and ids share.
/// Shapes: table [B..., A..., N, C...], int32 ids [B..., I...] -> [B..., A..., I..., C...].
/// Communicates: nothing, or, if the dim is sharded, a sum of the rows found in each block, or the table if that is less.
/// Compile time: that table has this dim; that ids are int32; that operands are complete.
/// Throws: `gshard::error` on all processes, if an id is outside the dim; if batch dims differ in an extent.
/// @see ops/index/gather.hpp
template <int Dim = 0, int Batch = 0, class T, class Table, class I, class Ids>
auto gather(const tensor<T, Table>& table, const tensor<I, Ids>& ids) {
  constexpr auto& f = detail::lookup<Dim, Batch, Table::rank, Ids::rank>;
  return detail::run_verb<detail::gather_model<Dim, Batch>, detail::letters_of_factors<f.table>(), detail::letters_of_factors<f.ids>()>(
      "gather", table, ids);
}
/// scatter_add<dim, batch>(x, ids, updates) on tensors: x, with each row of updates added to the row of its id.
/// Shapes: x [B..., A..., N, C...], int32 ids [B..., I...], updates [B..., A..., I..., C...] -> the shape of x.
/// Communicates: nothing, or, if ids are sharded, a sum of tables, or the ids and updates.
/// Compile time: ranks; that x has this dim; that operands are complete.
/// Throws: `gshard::error` on all processes, if an id is outside the dim; if operands differ in an extent.
/// @see ops/index/gather.hpp
template <int Dim = 0, int Batch = 0, class T, class X, class I, class Ids, class U, class Updates>
auto scatter_add(const tensor<T, X>& x, const tensor<I, Ids>& ids, const tensor<U, Updates>& updates) {
  constexpr auto& f = detail::lookup<Dim, Batch, X::rank, Ids::rank>;
  constexpr short_list rows = f.rows.size() == Updates::rank ? f.rows : detail::counting(Updates::rank);
  return detail::run_verb<detail::scatter_add_model<Dim, Batch>, detail::letters_of_factors<f.table>(),
                          detail::letters_of_factors<f.ids>(), detail::letters_of_factors<rows>()>("scatter_add", x, ids, updates);
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
/// dynamic_slice<dim, size>(x, start) on tensors: `size` elements of x along `dim`, from index `start` on. The start is an integer, or an
/// int32 scalar, which is clamped to [0, extent - size].
/// Shapes: x [A..., N, C...] -> [A..., size, C...].
/// Communicates: nothing, or, if the dim is sharded, as gather.
/// Compile time: that x has this dim; a size above 0; that operands are complete.
/// Throws: `gshard::error` on all processes, if the slice is longer than the dim.
/// @see slice, ops/index/dynamic_slice.hpp
template <int Dim, int Size, class T, class Spec, detail::start_index Index>
auto dynamic_slice(const tensor<T, Spec>& x, const Index& start) {
  return detail::run_verb<detail::dynamic_slice_model<Dim, Size>>("dynamic_slice", x,
                                                                  detail::start_on("dynamic_slice", x.cluster(), start));
}
/// dynamic_update_slice<dim>(x, update, start) on tensors: x, with `update` in place of its elements along `dim` from index `start` on. The
/// start is clamped as in dynamic_slice.
/// Shapes: x [A..., N, C...], update [A..., U, C...] -> the shape of x.
/// Communicates: nothing if update has the sharding of x in the other dims, and `dim` of update is not sharded.
/// Compile time: ranks; that x has this dim; that operands are complete.
/// Throws: `gshard::error` on all processes, if the update is longer than the dim, or has no elements; if operands differ in an extent.
/// @see dynamic_slice, ops/index/dynamic_slice.hpp
template <int Dim, class T, class X, class U, class Update, detail::start_index Index>
auto dynamic_update_slice(const tensor<T, X>& x, const tensor<U, Update>& update, const Index& start) {
  return detail::run_verb<detail::dynamic_update_slice_model<Dim>, detail::first_letters<X::rank>,
                          detail::letters_with_own_dim<Update::rank, Dim>, "">(
      "dynamic_update_slice", x, update, detail::start_on("dynamic_update_slice", x.cluster(), start));
}

}}  // namespace gshard::v0
