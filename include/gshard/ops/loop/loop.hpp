// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Loops: repeat, unrolled or counted at run time, and while_loop.
//
// Templates, so that only programs that use loops pay for them.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

template <class = void>
constexpr bool is_annotated(const value& v) {
  return v.layout != sharding::unconstrained(v.rank());
}

/// The result of an iteration must have the dims and type of its operand.
template <class = void>
constexpr bool check_turn(symbol before, symbol after, std::string_view loop, int state) {
  builder& b = *before.owner;
  if (!b.has(after)) return false;
  const value &x = before.get(), &y = after.get();
  if (const int d = b.first_difference(x.dims, y.dims); d < max_rank) b.fail(fault::dims_differ, loop, {}, state, d);
  else if (x.type != y.type) b.fail_type(loop, state, y.type, only(x.type));
  return !b.failed();
}

inline constexpr auto plus_one = [](auto v) { return v + decltype(v)(1); };
template <class Used = void>
constexpr symbol one_more(symbol n) {
  const line_of_call kept(*n.owner);
  return map<when_used<Used, plus_one>>(n);
}

constexpr std::array<symbol, 1> states_of(symbol s) { return {s}; }
template <std::size_t N>
constexpr std::array<symbol, N> states_of(const std::array<symbol, N>& list) {
  return list;
}
template <class... Symbols>
constexpr std::array<symbol, sizeof...(Symbols)> states_of(const std::tuple<Symbols...>& list) {
  return std::apply([](const auto&... s) { return std::array<symbol, sizeof...(Symbols)>{s...}; }, list);
}
/// The results of an iteration, as many tensors as it takes.
template <std::size_t N, class Made>
constexpr std::array<symbol, N> next_states(const Made& made) {
  constexpr bool fits = std::tuple_size_v<decltype(states_of(made))> == N;
  static_assert(fits, "gshard: the body of a loop returns as many tensors as it takes");
  if constexpr (fits) return states_of(made);
  else return {};
}
template <std::size_t N>
constexpr std::array<symbol, N> nothings(builder& b) {
  std::array<symbol, N> none;
  none.fill(b.nothing());
  return none;
}
template <std::size_t N>
constexpr auto one_or_all(const std::array<symbol, N>& list) {
  if constexpr (N == 1) return list[0];
  else return list;
}

/// A loop as nodes, in the order in which they run.
///   op::carry without operand: a state that begins as zeros. With one operand: a state that begins as its copy. One node per state.
///   op::loop_begin, followed by the condition.
///   op::loop_test: a scalar; if it is 0, the loop ends. The body follows.
///   op::carry of two operands: writes the second over the first, a state. Its result is the state after the loop, even after no iteration.
///   op::carry of three operands: writes the second as a row of the first, a state. The third is the row's index along dim 0.
///   op::loop_end: the next iteration.
template <class = void>
class loop_nodes {
 public:
  constexpr explicit loop_nodes(builder& b) : b_(b), place_(b.place), number_(++b.program.while_loops), key_(number_) {}
  /// A loop that runs as often as the last one with this key, and draws the same random numbers in reverse order of iterations.
  constexpr loop_nodes(builder& b, std::int32_t key) : loop_nodes(b) {
    key_ = key;
    reverse_ = true;
  }

  constexpr std::int32_t number() const { return number_; }
  constexpr symbol open(symbol start) { return open(start, start.get()); }
  /// A state with the sharding of `like`.
  constexpr symbol open(symbol start, const value& like) { return add_carry({start.id}, like); }
  /// A state of zeros with the dims and the sharding of `like`.
  constexpr symbol open_zeros(const value& like) { return add_carry({}, like); }
  /// A state of zeros to which every iteration adds. Sums over devices are completed after the loop, if only one node reads the state. This
  /// node must be linear, with the state as its first operand, such as `state + addend`.
  constexpr symbol open_sum(const value& like) {
    const symbol zeros = open_zeros(like);
    b_.program.nodes.back().attr.defers_sums = true;
    return zeros;
  }
  /// Sets the dims and the type of a state of zeros to those of `like`.
  constexpr void shape(symbol zeros, const value& like) {
    node& n = b_.program.nodes[std::size_t(zeros.get().producer)];
    n.place.is_explicit = is_annotated(like);
    shape(n, like);
  }
  /// `dim`: the dim whose extent is the number of iterations, or -1.
  constexpr void begin(int dim = -1) {
    add(op::loop_begin, {});
    if (dim >= 0) b_.program.nodes.back().attr.dims.push_back(dim);
  }
  constexpr void test(symbol continues) { add(op::loop_test, {continues.id}); }
  constexpr symbol close(symbol state, symbol next) {
    const symbol after = add_carry({state.id, next.id}, state.get());
    close_over(state);
    return after;
  }
  constexpr symbol close_row(symbol state, symbol row, symbol index) {
    const symbol after = add_carry({state.id, row.id, index.id}, state.get());
    node& n = close_over(state);
    n.rule.in[1] = counting(row.rank(), 1);
    n.rule.in[2] = {};
    n.rule.block(0);
    return after;
  }
  constexpr void end() { add(op::loop_end, {}); }

 private:
  builder& b_;
  code_place place_;
  std::int32_t number_, key_;
  bool reverse_ = false;

  constexpr void add(op_ref kind, std::initializer_list<std::int32_t> operands, bool said = false) {
    b_.place = place_;
    b_.place.is_explicit = said;
    b_.add_node(kind, operands, {}, {.key = key_, .loop = number_, .reverse = reverse_}, {});
  }
  /// Makes the last node write over a state.
  constexpr node& close_over(symbol state) {
    node& n = b_.program.nodes.back();
    n.in_place = 1;
    n.attr.defers_sums = b_.program.nodes[std::size_t(state.get().producer)].attr.defers_sums;
    return n;
  }
  /// `like`: a tensor with the dims and the sharding of the state. The sharding is explicit if that tensor is annotated.
  constexpr symbol add_carry(std::initializer_list<std::int32_t> operands, const value like) {
    add(op::carry, operands, is_annotated(like));
    node& n = b_.program.nodes.back();
    n.outputs = 1;
    n.out[0] = b_.add_value(like.dims, like.type, std::int32_t(b_.program.nodes.size()) - 1);
    shape(n, like);
    return {&b_, n.out[0]};
  }
  constexpr void shape(node& n, const value& like) {
    n.rule.out[0] = counting(like.rank());
    for (int i = 0; i < n.inputs && i < 2; ++i) n.rule.in[i] = n.rule.out[0];
    value& v = b_.program.at(n.output());
    v.dims = like.dims;
    v.type = like.type;
    v.layout = like.layout;
    v.layout.partial = 0;
    v.priority = like.priority;
  }
};

/// Reports a condition that is not a scalar of numbers or truth values.
template <class = void>
constexpr bool check_condition(symbol continues, std::string_view loop) {
  builder& b = *continues.owner;
  if (b.has(continues) && continues.rank() != 0) b.fail(fault::not_a_scalar, loop, {}, 0, continues.rank());
  constexpr element_set taken = reals | integers | masks;
  if (b.has(continues) && !contains(taken, continues.get().type)) b.fail_type(loop, "condition", continues.get().type, taken);
  return !b.failed();
}
/// True if x is an alias of a state other than state i. That state would be overwritten before x is read.
template <class States>
constexpr bool shares_another(symbol x, const States& all, std::size_t i) {
  const graph& g = x.owner->program;
  std::int32_t root = x.id;
  for (;;) {
    const std::int32_t maker = g.at(root).producer;
    if (maker < 0 || !traits(g.nodes[std::size_t(maker)].kind).alias) break;
    root = g.nodes[std::size_t(maker)].input(0);
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    if (k != i && all[k].id == root) return true;
  return false;
}
/// Copies the results of an iteration that are aliases of other states.
template <class States>
constexpr void copy_shared(States& next, const States& states) {
  const line_of_call kept(*states[0].owner);
  for (std::size_t i = 0; i < states.size(); ++i)
    if (shares_another(next[i], states, i)) next[i] = cast(next[i], next[i].get().type);
}

template <class Condition, class Body, std::size_t N>
constexpr std::array<symbol, N> write_loop(std::string_view name, const std::array<symbol, N>& start, Condition condition, Body body) {
  builder& b = *start[0].owner;
  for (const symbol& s : start)
    if (!b.has(s)) return nothings<N>(b);
  loop_nodes<> loop(b);
  std::array<symbol, N> now;
  for (std::size_t i = 0; i < N; ++i) now[i] = loop.open(start[i]);
  loop.begin();
  const symbol continues = std::apply(condition, now);
  if (!check_condition(continues, name)) return nothings<N>(b);
  loop.test(continues);
  std::array<symbol, N> next = next_states<N>(std::apply(body, now));
  for (std::size_t i = 0; i < N; ++i)
    if (!check_turn(now[i], next[i], name, int(i))) return nothings<N>(b);
  copy_shared(next, now);
  for (std::size_t i = 0; i < N; ++i) now[i] = loop.close(now[i], next[i]);
  loop.end();
  return now;
}

}  // namespace detail

/// repeat<Count>(x, body): body applied Count times to x. The iterations are unrolled in the plan. If x is annotated, the result of every
/// iteration has the sharding of x (a loop-invariant sharding).
/// Shapes: body maps a symbol to a symbol of the same dims and type.
/// Communicates: as the body, and the reshard of its result to the sharding of x.
/// Compile time: dims and types of the body's result.
/// Throws: nothing.
/// @see while_loop
template <int Count, class Body>
constexpr symbol repeat(here x, Body body) {
  static_assert(Count >= 0, "gshard: a body is repeated a number of times");
  symbol state = x;
  for (int i = 0; i < Count && !x.owner->failed(); ++i) {
    const symbol next = body(state);
    if (!detail::check_turn(x, next, "repeat", i)) break;
    state = detail::is_annotated(x.get()) ? detail::emit_annotate(next, x.get().layout) : next;
  }
  return state;
}

/// while_loop(condition, body, x, ...): applies body to x... while the condition holds; the number of iterations is decided at run time.
/// Both functions may use tensors from outside. Random numbers are drawn anew in every iteration. Loop-carried values keep one sharding:
/// the sharding of x if x is annotated, otherwise the one that propagation finds.
/// Shapes: condition maps (symbol...) to a scalar, which is not 0 while the loop goes on. body maps (symbol...) to as many symbols of the
/// same dims and types, as a std::tuple or std::array if they are several. The result is a symbol, or a std::array of several.
/// Communicates: in every iteration the collectives of condition and body, the reshard of the results, and one small message per process to
/// agree on the condition. Loop-invariant values are resharded once, before the loop.
/// Compile time: dims and types; that no tensor made in an iteration is used outside; that the loop needs no gradient and updates no
/// parameter.
/// Throws: `gshard::error` on every process, if processes disagree on the condition or it is NaN.
/// @see repeat
template <class Condition, class Body, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr auto while_loop(Condition condition, Body body, here first, Symbols... rest) {
  const std::array<symbol, 1 + sizeof...(rest)> start{first, rest...};
  return detail::one_or_all(detail::write_loop("while_loop", start, condition, body));
}

/// repeat(count, body, x, ...): body applied `count` times to x..., where count is a scalar tensor; not at all if it is not above 0.
/// Otherwise as while_loop.
template <class Body, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr auto repeat(here count, Body body, here first, Symbols... rest) {
  builder& b = *count.owner;
  constexpr std::size_t states = 1 + sizeof...(rest);
  std::array<symbol, states> made = detail::nothings<states>(b);
  if (!b.failed() && count.rank() != 0) b.fail(fault::not_a_scalar, "repeat", {}, 0, count.rank());
  if (b.failed()) return detail::one_or_all(made);
  const symbol most = cast<double>(count);
  const std::array<symbol, 1 + states> start{detail::emit_constant(detail::pointwise_constant<0>, most), first, rest...};
  const auto all = detail::write_loop(
      "repeat", start, [most](symbol turn, auto...) {
        const line_of_call kept(*turn.owner);
        return less(turn, most);
      },
      [&body](symbol turn, auto... x) {
        const std::tuple counted(detail::one_more(turn));
        return std::tuple_cat(counted, detail::next_states<states>(body(x...)));
      });
  for (std::size_t i = 0; i < states; ++i) made[i] = all[i + 1];
  return detail::one_or_all(made);
}

namespace detail {
/// As many refused results as the loop has states, if it has any.
template <class... Given>
constexpr auto refused_states(const Given&... given) {
  if constexpr (sizeof...(Given) <= 3) {
    return refused(given...);
  } else {
    std::array<symbol, sizeof...(Given) - 2> none;
    none.fill(refused(given...));
    return none;
  }
}
}  // namespace detail

template <class... Given>
  requires(!detail::before_tensors<64, detail::function, detail::function>::fits<Given...>)
constexpr auto while_loop(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: while_loop(condition, body, x, ...) takes two functions and tensors of a program");
  return detail::refused_states(given...);
}
template <int Count, class... Given>
  requires(!detail::call<2, symbol, detail::function>::fits<Given...>)
constexpr auto repeat(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: repeat<3>(x, body) takes a tensor of a program and a function");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::before_tensors<64, symbol, detail::function>::fits<Given...>)
constexpr auto repeat(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: repeat(count, body, x, ...) takes a scalar tensor, a function and tensors; a number is repeat<3>(x, body)");
  return detail::refused_states(given...);
}

}}  // namespace gshard::v0
