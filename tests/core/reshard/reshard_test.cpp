// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/reshard/reshard.hpp>
#include <gshard/testing/all_shardings.hpp>

#include "../../static/soundness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::sharding;

namespace {

/// The least cost between all pairs of layouts by at most four moves of any kind, by exhaustive search.
class exhaustive {
 public:
  exhaustive(int axes, const gs::value& v, const gs::extents& e) : all(gshard::testing::all_shardings(v.rank(), axes, true)), v_(v), e_(e) {
    const std::size_t n = all.size();
    cost_.assign(n, std::vector<std::int64_t>(n, far));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) cost_[i][j] = i == j ? 0 : single(all[i], all[j]);
    square();
    square();
  }
  std::int64_t between(std::size_t i, std::size_t j) const { return cost_[i][j]; }

  std::vector<sharding> all;

 private:
  static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;
  gs::value v_;
  const gs::extents& e_;
  std::vector<std::vector<std::int64_t>> cost_;

  std::int64_t single(const sharding& from, const sharding& to) const {
    std::int64_t least = far;
    constexpr gs::op_ref kinds[]{op::slice, op::all_gather, op::all_reduce, op::reduce_scatter, op::all_to_all, op::collective_permute};
    for (const gs::op_ref kind : kinds) {
      const bool sums = kind == op::all_reduce || kind == op::reduce_scatter;
      const std::uint32_t axes = sums                    ? from.partial & ~std::uint32_t(to.partial)
                                 : kind == op::slice     ? to.used() & ~from.used()
                                                         : gs::moving_axes(from, to);
      if (!soundness::is_legal_move(kind, axes, from, to)) continue;
      const std::int64_t start = gs::traits(kind).collective ? e_.start_bytes : 0;
      least = std::min(least, start + gs::bytes_received(kind, axes, v_, from, to, e_));
    }
    return least;
  }
  /// Computes paths of at most twice as many moves.
  void square() {
    const auto before = cost_;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = 0; k < all.size(); ++k)
        if (before[i][k] < far)
          for (std::size_t j = 0; j < all.size(); ++j) cost_[i][j] = std::min(cost_[i][j], before[i][k] + before[k][j]);
  }
};

std::string text(const sharding& s) {
  std::string t;
  for (int d = 0; d < s.rank; ++d) {
    t += d ? " |" : "[";
    for (int i = 0; i < s[d].size(); ++i) t += std::string(" ") + "xyz"[s[d][i]];
  }
  t += " ] pending";
  for (int a = 0; a < 3; ++a)
    if (s.is_partial(a)) t += std::string(" ") + "xyz"[a];
  return t;
}
std::string text(const gs::move_list& way) {
  std::string t;
  for (const gs::move& m : way) t += std::string(gs::name(m.kind)) + " " + text(m.to) + "; ";
  return t;
}

}  // namespace

TEST_CASE("no way between two layouts of a rank-3 tensor on a 2x2x2 mesh is cheaper than the planned one") {
  constexpr std::int64_t usual = gs::default_start_bytes;
  for (const auto& [extent, start] : {std::pair{8, usual}, {64, usual}, {512, usual}, {64, std::int64_t(1)}, {64, usual << 8}}) {
    gs::extents e;
    e.start_bytes = start;
    e.dims = {extent, extent, extent};
    e.axes = {2, 2, 2};
    e.known_axes = 7;
    gs::value v;
    for (int d = 0; d < 3; ++d) v.dims.push_back(d);
    const exhaustive search(3, v, e);
    int pairs = 0, dearer = 0;
    for (std::size_t i = 0; i < search.all.size(); ++i)
      for (std::size_t j = 0; j < search.all.size(); ++j) {
        const sharding &from = search.all[i], &to = search.all[j];
        if (to.partial & ~from.partial) continue;
        ++pairs;
        const gs::move_list way = gs::plan_reshard(v, from, to, e);
        if (way.cost(e) > search.between(i, j) && ++dearer <= 3) {
          CAPTURE(text(from));
          CAPTURE(text(to));
          CAPTURE(text(way));
          CHECK(way.cost(e) <= search.between(i, j));
        }
      }
    CAPTURE(extent);
    CHECK(pairs > 10000);
    CHECK(dearer == 0);
  }
}

TEST_CASE("a permutation, and no all-to-all, gives every device a shard that some device had") {
  using shard = std::vector<gs::interval>;
  int permutations = 0, exchanges = 0, wrong = 0;
  for (const std::vector<int>& axes : {std::vector<int>{2, 2, 2}, {2, 3, 6}, {2, 4, 8}, {3, 2, 3}}) {
    gs::extents e;
    e.dims = {576, 576};  // every shard has the same size
    e.known_axes = 7;
    for (std::size_t a = 0; a < 3; ++a) e.axes[a] = axes[a];
    const auto shards_of = [&](const sharding& s) {
      std::vector<shard> all;
      std::array<int, gs::max_axes> at{};
      for (at[0] = 0; at[0] < axes[0]; ++at[0])
        for (at[1] = 0; at[1] < axes[1]; ++at[1])
          for (at[2] = 0; at[2] < axes[2]; ++at[2])
            all.push_back({gs::block_of(576, s[0], e.axes, at), gs::block_of(576, s[1], e.axes, at)});
      return all;
    };
    gs::value v;
    for (int d = 0; d < 2; ++d) v.dims.push_back(d);
    const std::vector<sharding> all = gshard::testing::all_shardings(2, 3, false);
    for (const sharding& from : all)
      for (const sharding& to : all) {
        sharding now = from;
        for (const gs::move& m : gs::plan_reshard(v, from, to, e)) {
          if (m.kind == op::collective_permute || m.kind == op::all_to_all) {
            const std::vector<shard> before = shards_of(now), after = shards_of(m.to);
            const bool whole = std::ranges::all_of(after, [&](const shard& s) { return std::ranges::find(before, s) != before.end(); });
            ++(m.kind == op::collective_permute ? permutations : exchanges);
            if (whole != (m.kind == op::collective_permute) && ++wrong <= 3)
              FAIL_CHECK(text(now) << " to " << text(m.to) << ": " << gs::name(m.kind));
          }
          now = m.to;
        }
      }
  }
  CHECK(wrong == 0);
  CHECK(permutations > 100);
  CHECK(exchanges > 1000);
}
