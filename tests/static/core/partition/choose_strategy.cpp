// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/choose_strategy.hpp>
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

#include <string_view>

// Calls the einsum planner directly, with one node, the shardings of its operands, and the wanted sharding of its result.
namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial;

namespace {

/// The choice for one einsum on the mesh <x, y>: the letter that each axis shards ('-': none), and the cost.
struct chosen {
  char x = '-', y = '-';
  std::uint8_t partial = 0;  // axes over which the result is a partial sum
  std::int64_t cost = 0;

  constexpr bool shards(char x_letter, char y_letter) const { return x == x_letter && y == y_letter; }
};

/// string_view::find() is not constant under g++'s sanitizer.
constexpr std::size_t position_in(std::string_view text, char c) {
  std::size_t i = 0;
  while (text[i] != c) ++i;
  return i;
}

template <gs::fixed_string Equation, class First, class Second, class Result>
constexpr chosen choose(const gs::dims& known = {}, const gs::mesh_shape& mesh = tracing::mesh) {
  gs::builder b = tracing::on(mesh);
  constexpr std::string_view equation = Equation.view();
  constexpr std::size_t comma = position_in(equation, ','), arrow = position_in(equation, '>');
  constexpr std::string_view letters[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 2)};
  const gs::symbol first = tracing::input(b, letters[0], First{}), second = tracing::input(b, letters[1], Second{});
  const gs::symbol result = gs::einsum<Equation>(first, second);
  gs::graph& g = b.program;
  g.at(result.id).layout = gs::resolve(Result::named, mesh, "result", g.problem);
  const gs::extents e = gs::detail::assume_extents(g.dims, mesh, known);
  gs::detail::layout_cache cache(g, e);
  for (const gs::symbol& s : {first, second}) cache.add(s.id, g.at(s.id).layout, {}, -1);
  const gs::list<char> complete(g.values.size(), 1), may_stay(g.values.size(), 0);
  const gs::detail::planning p{g, e, mesh.count, cache, complete, may_stay};
  const gs::node& n = g.nodes[std::size_t(g.at(result.id).producer)];
  const gs::detail::partitioning made = gs::detail::choose_strategy(p, n, false);
  chosen c;
  for (int a = 0; a < mesh.count; ++a)
    for (std::size_t i = 0; i < 2; ++i)
      if (const int d = n.rule.in[i].find(made.how.factor_of_axis[a]); d >= 0) (a == 0 ? c.x : c.y) = letters[i][std::size_t(d)];
  c.partial = gs::detail::result_sharding(n, 0, made.how, made.partial).partial;
  c.cost = gs::detail::strategy_cost(p, n, made.how, made.partial);
  return c;
}

// A batch index that both operands shard: nothing moves.
constexpr chosen batch = choose<"GAB,GBC->GAC", P<"x", none, none>, P<"x", none, none>, P<"x", none, none>>();
static_assert(batch.shards('G', '-') && batch.partial == 0);
// A free index: the result is sharded like the operand. Two free indices over two axes do not conflict.
static_assert(choose<"AB,BC->AC", P<"x", none>, P<none, none>, P<"x", none>>().shards('A', '-'));
static_assert(choose<"AB,BC->AC", P<"x", none>, P<none, "y">, P<"x", "y">>().shards('A', 'C'));
static_assert(choose<"AB,BC->AC", P<"x", none>, P<none, "y">, P<"x", "y">>().cost == 0);
// A contracted index: the result is a partial sum, whether a replicated or a sharded one is wanted.
constexpr chosen contracted = choose<"AB,BC->AC", P<none, "x">, P<"x", none>, P<none, none>>();
static_assert(contracted.shards('B', '-') && contracted.partial == 1);
constexpr chosen scattered = choose<"AB,BC->AC", P<none, "x">, P<"x", none>, P<"x", none>>();
static_assert(scattered.shards('B', '-') && scattered.partial == 1 && scattered.cost < contracted.cost);
// Sharded in only one operand: the other one is sliced. Gathering the first would move less, but all devices would repeat the work.
constexpr gs::mesh_shape line = gs::mesh<gs::axis<"x">>::shape;
static_assert(choose<"AB,BC->AC", P<none, "x">, P<none, none>, P<none, none>>({}, line).shards('B', '-'));
// Two axes: one shards a free index, the other the contracted one; or both the same index, in the order of the operand.
constexpr chosen two = choose<"AB,BC->AC", P<"x", "y">, P<"y", none>, P<"x", none>>();
static_assert(two.shards('A', 'B') && two.partial == 2);
static_assert(choose<"AB,BC->AC", P<axes<"y", "x">, none>, P<none, none>, P<axes<"y", "x">, none>>().shards('A', 'A'));
static_assert(choose<"AB,BC->AC", P<axes<"y", "x">, none>, P<none, none>, P<axes<"y", "x">, none>>().cost == 0);

// Two free indices over one axis: the smaller operand is gathered, for any wanted sharding.
constexpr gs::mesh_shape four = gs::mesh<gs::axis<"x", 4>>::shape;
template <int A, int C>
constexpr chosen conflict = choose<"AB,BC->AC", P<"x", none>, P<none, "x">, P<"x", none>>({{'A', A}, {'B', 64}, {'C', C}}, four);
static_assert(conflict<4096, 64>.shards('A', '-'));
static_assert(conflict<64, 4096>.shards('C', '-'));

// Uneven extents: shards have rounded-up sizes. Two of 5 rows on 4 devices have at most 2 rows each.
constexpr chosen uneven = choose<"AB,BC->AC", P<"x", none>, P<none, none>, P<"x", none>>({{'A', 5}, {'B', 7}, {'C', 3}}, four);
static_assert(uneven.shards('A', '-') && uneven.cost == 0);
constexpr chosen uneven_sum = choose<"AB,BC->AC", P<none, "x">, P<"x", none>, P<none, none>>({{'A', 5}, {'B', 7}, {'C', 3}}, four);
static_assert(uneven_sum.shards('B', '-') && uneven_sum.partial == 1);
// The sum of 15 numbers over four devices is small: all of them are gathered in one start.
static_assert(uneven_sum.cost == 1 + 3 * 15 * 4 + gs::default_start_bytes);

// A partial operand of a product may stay partial if that is cheaper.
constexpr chosen kept = choose<"AB,BC->AC", P<none, none, partial<"x">>, P<none, none>, P<none, none, partial<"x">>>({}, line);
static_assert(kept.partial == 1 && kept.cost < gs::default_start_bytes);  // no collective

// A partial sum has no device order: a move that keeps it partial is planned without one.
constexpr auto rolled = [](auto&, auto a, auto w) {
  return gs::annotate<P<none, "y", gs::device_order<3, 2, 1, 0>>>(gs::roll(gs::einsum<"BK,KM->BM">(a, w), 0, 1));
};
static_assert(gs::program<rolled, gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>, gs::in<"BK", P<none, "x">>,
                          gs::in<"KM", P<"x", none>>>::plan.collectives() == 2);

// Prices too large to represent are the largest number, and can be added.
constexpr auto of_many = [](auto&, auto a, auto b) { return gs::annotate<P<gs::axes<"x", "y">, none>>(gs::einsum<"XA,XB->AB">(a, b)); };
using rows_of_many = P<gs::axes<"x", "y">, none>;
static_assert(gs::program<of_many, gs::mesh<gs::axis<"x", 4096>, gs::axis<"y", 4096>>, gs::in<"XA", rows_of_many>,
                          gs::in<"XB", rows_of_many>, gs::extent<'X', (1 << 24)>, gs::extent<'A', (1 << 25)>,
                          gs::extent<'B', (1 << 25)>>::plan.collectives() > 0);

}  // namespace
