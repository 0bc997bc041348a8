// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The options of a program as values.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/trace/builder.hpp>

#include <array>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The order of an input's dims in memory, innermost last, or innermost first as in Fortran, LAPACK and Eigen's default.
struct row_major {};
struct column_major {};

struct compile_options {
  /// Compile-time extents, by letter.
  gshard::dims known{};
  /// Extents that prices assume, by letter and by mesh axis, where the extent is not known. Otherwise, and where it is 0, 64 and 8 devices.
  /// The program runs at any extents.
  gshard::dims assumed{};
  std::array<int, max_axes> assumed_axes{};
  /// Outputs may be partial sums. Unless `only_partial_sums`, they may also be partial maxima, minima and products.
  bool partial_outputs = false;
  bool only_partial_sums = false;
  /// Known extents need not be multiples of the static extents of the axes that shard them.
  bool uneven = false;
  /// Which implicit reshards are allowed.
  strictness implicit_moves = strictness::automatic;
  /// Einsums whose gathered operands or scattered sums exceed this number of bytes per device become looped einsums. Extents must be known.
  std::int64_t loop_bytes = std::int64_t(256) << 20;
  /// The most bytes that a device receives in combined moves of known size; 0: no moves are combined.
  std::int64_t combine_bytes = std::int64_t(4) << 20;
  /// The cost of starting a collective, as bytes that the network sends in that time. @see start_bytes_of
  std::int64_t start_bytes = default_start_bytes;
};

/// The options of a program as values. `program` takes them as types, such as `visible` and `element<double>`.
struct program_options {
  compile_options compile{};
  dtype element = dtype::f32;  ///< The element type of the parameters.
  bool sparse_one_hot = true;  ///< One-hot einsums are computed by index. False: as dense products, in O(G S E C M).
  bool bf16_products = false;  ///< Mixed precision. @see bf16_products
  /// Shardings of the inputs, then of the parameters, in place of their annotations; or empty.
  list_view<sharding> layouts{};

  constexpr trace_options trace() const { return {sparse_one_hot, bf16_products, compile.known}; }
};

}}  // namespace gshard::v0
