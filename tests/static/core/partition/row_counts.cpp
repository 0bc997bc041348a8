// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/row_counts.hpp>

#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/ops/loop/loop.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::none, gs::P, gs::symbol;
using tracing::input;

namespace {

constexpr gs::expert_row_routing sent(builder& b) {
  return gs::send_rows(gs::top_k_gating(input(b, "GSE"), {.k = 2, .slots = gs::capacity::unlimited()}), input(b, "GSM"), 2);
}
/// True if the used rows of f(routing, weights) are known to be those that the routing counts.
template <class F>
constexpr bool knows_rows(F f) {
  return tracing::holds([&](builder& b, auto& m) {
    const gs::expert_row_routing r = sent(b);
    const symbol w = gs::expert_param(m, r, "w", "MM", gs::init::zeros());
    const std::int32_t rows = f(r, w).id, counts = gs::detail::row_counts(b.program, rows);
    return counts >= 0 && counts == gs::detail::without_annotations(b.program, r.count.id) &&
           gs::detail::tensors_of_counted_rows(b.program)[std::size_t(rows)];
  });
}

static_assert(knows_rows([](const auto& r, symbol) { return r.rows; }));
static_assert(knows_rows([](const auto& r, symbol w) { return gs::grouped_product(r, r.rows, w); }));
static_assert(knows_rows([](const auto& r, symbol w) {
  return gs::annotate<P<"x", "y", none, none>>(2.0 * gs::grouped_product(r, r.rows, w));
}));
static_assert(knows_rows([](const auto& r, symbol w) { return gs::cast<double>(r.rows + gs::grouped_product(r, r.rows, w)); }));
// Zeros that become other numbers, negative zeros, and other tensors.
static_assert(!knows_rows([](const auto& r, symbol) { return gs::relu(r.rows); }));  // any function except sums
static_assert(!knows_rows([](const auto& r, symbol) { return -1.0 * r.rows; }));
static_assert(!knows_rows([](const auto& r, symbol w) { return r.rows - gs::grouped_product(r, r.rows, w); }));
static_assert(!knows_rows([](const auto& r, symbol) { return 1.0 + r.rows; }));
static_assert(!knows_rows([](const auto&, symbol w) { return w; }));
// The state of a loop may have other rows than its start.
constexpr symbol trips(const gs::expert_row_routing& r) { return input(*r.rows.owner, "", gs::dtype::i32); }
static_assert(!knows_rows([](const auto& r, symbol) { return gs::repeat(trips(r), [](symbol h) { return 1.0 + h; }, r.rows); }));
static_assert(!knows_rows([](const auto& r, symbol) { return gs::repeat(trips(r), [](symbol h) { return 2.0 * h; }, r.rows); }));
// Rows of two routings share no counts.
static_assert(!knows_rows([](const auto& r, symbol) { return r.rows + sent(*r.rows.owner).rows; }));

constexpr gs::sharding layout(std::initializer_list<int> axis_of_dim) {
  gs::sharding s = gs::sharding::replicated(int(axis_of_dim.size()));
  int d = 0;
  for (const int a : axis_of_dim) {
    if (a >= 0) s[d].push_back(a);
    ++d;
  }
  return s;
}
constexpr bool moves_whole_rows(std::uint32_t axes, std::initializer_list<int> from, std::initializer_list<int> to) {
  gs::value rows;
  for (std::size_t d = 0; d < from.size(); ++d) rows.dims.push_back(int(d));
  return gs::detail::moves_whole_rows(axes, rows, layout(from), layout(to));
}
static_assert(moves_whole_rows(1, {-1, 0, -1, -1}, {0, -1, -1, -1}) && moves_whole_rows(1, {-1, 0, -1, 1}, {0, -1, -1, 1}));
static_assert(!moves_whole_rows(1, {-1, 0, -1, -1}, {-1, -1, -1, -1}));      // a gather
static_assert(!moves_whole_rows(1, {-1, 0, -1, -1}, {-1, -1, -1, 0}));       // parts of rows
static_assert(!moves_whole_rows(3, {-1, 0, -1, 1}, {0, -1, -1, -1}));        // also parts of rows
static_assert(!moves_whole_rows(1, {-1, -1, 0, -1}, {0, -1, -1, -1}) && !moves_whole_rows(1, {-1, 0, -1}, {0, -1, -1}));
static_assert(gs::detail::sharding_of_counts(layout({0, 1, -1, 2})).same_layout(layout({0, 1, -1})));

}  // namespace
