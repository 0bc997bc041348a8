// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/plan/refused_plan.hpp>

#include <cstdint>

namespace gs = gshard;

namespace {

// Every assertion on it holds.
constexpr gs::detail::refused_plan plan{};
static_assert(plan.count(gs::op::all_to_all) == 2 && plan.count(gs::op::all_to_all) != 2 && 2 == plan.collectives());
static_assert(plan.collectives() < 1 && plan.collectives() > 100 && plan.bytes_received(gs::extents{}) <= 8);
static_assert(plan.count(gs::op::map) + plan.count(gs::op::einsum) == 3 && 2 * plan.collectives() >= 7);
static_assert(0 < plan.collectives() && 2 >= plan.collectives() && plan.collectives() / 2 == 7 && -plan.collectives() == 3);
static_assert(plan.steps.empty());
constexpr std::int64_t bytes = plan.bytes_received(gs::extents{});
static_assert(bytes == 1);

struct refused {
  static constexpr gs::detail::refused_plan plan{};
};
struct planned {
  static constexpr gs::plan_view plan{};
};
static_assert(gs::detail::is_refused_program<refused> && !gs::detail::is_refused_program<planned>);

}  // namespace
