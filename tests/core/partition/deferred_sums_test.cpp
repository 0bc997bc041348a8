// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/partitioner.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/loop/loop.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

// A sum over devices is deferred to the end of a loop only if one linear node changes the loop's state, and no other node reads it.
namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::symbol;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

/// A loop whose state may become a partial sum. `Update` computes its next value from it and an addend that is partial over x. `Observe`
/// computes the next value of a second state from the first one, itself and the addend.
template <auto Update, auto Observe>
inline constexpr auto summed = [](auto& m, auto x, auto y, auto turns) {
  gs::detail::loop_nodes<> loop(m.owner());
  const gs::value like = gs::einsum<"AB,AC->BC">(x, y).get();
  const symbol turn = loop.open_zeros(turns.get()), state = loop.open_sum(like), seen = loop.open_zeros(like);
  loop.begin();
  loop.test(gs::here(turn) < turns);
  const symbol addend = gs::einsum<"AB,AC->BC">(x, y), observed = Observe(state, seen, addend);
  const symbol next = Update(state, addend);
  const symbol after = loop.close(state, next), last = loop.close(seen, observed);
  loop.close(turn, gs::here(turn) + 1);
  loop.end();
  return std::tuple{after, last};
};
template <auto Update, auto Observe>
using program = gs::program<summed<Update, Observe>, mesh, in<"AB", P<"x", none>>, in<"AC", P<"x", none>>, in<"", void, std::int32_t>>;

inline constexpr auto add = [](symbol state, symbol addend) { return gs::here(state) + addend; };
inline constexpr auto halve_and_add = [](symbol state, symbol addend) {
  return gs::map([](auto s, auto a) { return s / 2 + a; }, state, addend);
};
inline constexpr auto multiply = [](symbol state, symbol addend) {
  return gs::map([](auto s, auto a) { return s * s + a; }, state, addend);
};
inline constexpr auto keep = [](symbol, symbol seen, symbol) { return seen; };
inline constexpr auto square = [](symbol state, symbol, symbol) { return gs::here(state) * state; };
inline constexpr auto twice = [](symbol state, symbol, symbol) { return 2 * gs::here(state); };
inline constexpr auto square_of_addend = [](symbol, symbol, symbol addend) { return gs::here(addend) * addend; };

/// True if sums over devices are completed after the loop, not in every iteration.
template <class Program>
constexpr bool defers = [] {
  constexpr gs::plan_view plan = Program::plan;
  std::size_t end = 0, sum = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == op::loop_end) end = i;
    if (plan.steps[i].kind == op::all_reduce) sum = i;
  }
  return sum > end;
}();
static_assert(defers<program<add, keep>>);
static_assert(!defers<program<multiply, keep>>);
static_assert(!defers<program<add, square>> && !defers<program<add, twice>>);
static_assert(!defers<program<add, square_of_addend>>);

template <class Program>
void check_one_device_is_all() {
  const auto run_on = [](int devices) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<Program> run(on, {{'A', 6}, {'B', 2}, {'C', 3}}, gs::parameter_store(on, 1));
    std::vector<float> x(12), y(18);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i % 3) - 1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(int(i % 4) - 2);
    const auto [after, last] = run(x, y, std::vector<std::int32_t>{3});
    std::vector<float> all = gs::to_global(after);
    const std::vector<float> seen = gs::to_global(last);
    all.insert(all.end(), seen.begin(), seen.end());
    return all;
  };
  const std::vector<float> expected = run_on(1);
  CHECK(std::any_of(expected.begin(), expected.end(), [](float v) { return v != 0; }));
  for (const int devices : {2, 3, 4}) CHECK(run_on(devices) == expected);  // small integers: exact in any order
}

}  // namespace

TEST_CASE("deferred sums: whatever updates or reads the state of a sum, all devices give what one gives") {
  check_one_device_is_all<program<add, keep>>();
  check_one_device_is_all<program<halve_and_add, keep>>();
  check_one_device_is_all<program<multiply, keep>>();
  check_one_device_is_all<program<add, square>>();
  check_one_device_is_all<program<add, twice>>();
  check_one_device_is_all<program<add, square_of_addend>>();
}
