// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The rewrite of operations over the last dim, if that is sharded: sums and maps of rows, in blocks.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The cost of a rewrite with this number of sums or extrema per row.
template <int Sums>
constexpr std::int64_t cost_of_row_sums(const decompose_cost& cost) {
  return cost.with_sums(Sums);
}

/// Sums and maps of the rows of a sharded tensor. The dims of a tensor: `all`, all but the last (`rows`), and the `last`.
class row_blocks {
 public:
  constexpr explicit row_blocks(decomposer& d) : d_(d) {}

  static constexpr short_list all(symbol x) { return counting(x.rank()); }
  static constexpr short_list rows(symbol x) { return counting(x.rank() - 1); }
  static constexpr short_list last(symbol x) { return counting(1, x.rank() - 1); }

  constexpr symbol sum(symbol x, const short_list& kept) {
    const short_list dims = all(x);
    return d_.set_sharding_like(emit_einsum(d_.owner(), list_view(&x, 1), list_view(&dims, 1), kept), x, kept);
  }
  constexpr symbol mean_of_rows(symbol x) {
    dim_list last_dim;
    last_dim.push_back(x.get().dims[x.rank() - 1]);
    return d_.set_sharding_like(emit_scale(sum(x, rows(x)), 1, last_dim, -1), x, rows(x));
  }
  /// f(x, ...), sharded as x. Other operands have the dims of x, of its rows, or only its last dim.
  template <std::size_t N>
  constexpr symbol map(const pointwise& f, const std::array<symbol, N>& operands) {
    const symbol x = operands[0];
    std::array<short_list, N> dims{};
    for (std::size_t i = 0; i < N; ++i)
      dims[i] = operands[i].rank() == x.rank()       ? all(x)
                : operands[i].rank() == x.rank() - 1 ? rows(x)
                                                     : last(x);
    return d_.set_sharding_like(emit_map_of(f, operands, dims, x), x, all(x));
  }

 private:
  decomposer& d_;
};

}}}  // namespace gshard::v0::detail
