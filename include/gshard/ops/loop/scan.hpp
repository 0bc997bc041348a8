// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The differentiable loop scan: over the rows of stacked tensors, with carried states and stacked outputs.
//
// Templates, so that only programs that use scans pay for them.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan_gradient.hpp>
#include <gshard/ops/loop/scan_rows.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// A tensor, or a tuple or array of tensors.
template <class T>
concept scan_states = requires(const T& given) { states_of(given); };

template <class Body, std::size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...>) {
  return is_called_with<Body, one_symbol<I>...>;
}
template <class Body, std::size_t... I>
constexpr auto call_with_tensors(std::index_sequence<I...>) -> decltype(std::declval<const Body&>()(one_symbol<I>()...));

/// A call of a function with `Count` tensors. The function is not instantiated if it takes other arguments.
template <class Body, std::size_t Count>
struct body_call {
  using tensors = std::make_index_sequence<Count>;
  static constexpr bool is_taken = takes_tensors<Body>(tensors());
  static constexpr auto made_type() {
    if constexpr (is_taken) return std::type_identity<decltype(call_with_tensors<Body>(tensors()))>();
    else return std::type_identity<void>();
  }
  using made = typename decltype(made_type())::type;
  /// The number of its results, or 0 if these are not tensors.
  static constexpr std::size_t results = [] {
    if constexpr (scan_states<made>) return std::tuple_size_v<decltype(states_of(std::declval<made>()))>;
    else return std::size_t(0);
  }();
};

/// How a scan runs.
struct scan_options {
  std::int64_t steps = -1;                     // -1: one for each row. Steps after the last row read that row, without a gradient
  remat_policy saved = remat_policy::nothing;  // for the gradient
  std::int64_t lag = 0;                        // the age in steps of the earlier states that the body takes: at least 1
};

/// Writes a scan as a loop over its steps. The state before each step is also a stacked output, which only a gradient reads. Lagged: after
/// its states, the body takes the states of options.lag steps earlier. In the first steps these are arbitrary.
template <bool Lagged, class Body, std::size_t N, std::size_t X>
class scan_writer {
 public:
  using states = std::array<symbol, N>;

  constexpr scan_writer(builder& b, const states& start, const std::array<symbol, X>& stacked, const scan_options& o)
      : b_(b), start_(start), stacked_(stacked), options_(o) {}

  /// The states after the last step and the stacked outputs.
  constexpr auto write(const Body& body, int dim) {
    constexpr std::size_t results = std::tuple_size_v<decltype(states_of(call(body, symbol(), start_, earlier_states(), stacked_)))>;
    std::array<symbol, results> after = nothings<results>(b_);
    if (b_.failed()) return after;
    const bool keeps_place = b_.keeps_place;
    const line_of_call kept(b_);
    emit<results - N>(body, dim, keeps_place, after);
    return after;
  }

 private:
  builder& b_;
  states start_;
  std::array<symbol, X> stacked_;
  scan_options options_;
  using earlier_states = std::array<symbol, Lagged ? N : 0>;

  static constexpr auto call(const Body& body, symbol step, const states& now, const earlier_states& before,
                             const std::array<symbol, X>& rows) {
    return std::apply(body, std::tuple_cat(std::tuple(step), now, before, rows));
  }
  constexpr bool has_room(symbol row) {
    if (row.rank() == max_rank) b_.fail(fault::rank_mismatch, "scan", {}, max_rank - 1, row.rank());
    return !b_.failed();
  }

  template <std::size_t Outputs>
  constexpr void emit(const Body& body, int dim, bool keeps_place, std::array<symbol, N + Outputs>& after) {
    scan_record record;
    record.last = emit_last_index(b_, dim).id;
    record.lag = options_.lag;
    for (const symbol& x : stacked_) {
      record.inputs.push_back({x.id});
      if (x.get().dims[0] != dim) record.inputs.back().last_row = emit_last_index(b_, x.get().dims[0]).id;
    }
    const code_place place = b_.place;
    loop_nodes<> loop(b_);
    record.loop = loop.number();
    record.begin = next_node();
    value scalar;
    scalar.type = dtype::i32;
    const symbol step = loop.open_zeros(scalar);
    record.step = step.id;
    states now, history;
    std::array<symbol, Outputs> outputs;
    for (std::size_t i = 0; i < N; ++i) {
      if (!has_room(start_[i])) return;
      now[i] = loop.open(start_[i]);
      history[i] = loop.open_zeros(stack_of(now[i].get(), dim));
    }
    for (symbol& y : outputs) y = loop.open_zeros(scalar);  // its dims are known after the body
    const std::int32_t opened = next_node();
    loop.begin(dim);
    loop.test(here(step) <= symbol{&b_, record.last});
    std::array<symbol, X> rows;
    for (std::size_t i = 0; i < X; ++i) {
      rows[i] = emit_row(stacked_[i], index_of_row(record.inputs[i], step));
      record.inputs[i].row = rows[i].id;
    }
    earlier_states before;
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] = emit_row(history[i], index_before(step, options_.lag));
      record.earlier.push_back(before[i].id);
    }
    record.body = next_node();
    b_.keeps_place = keeps_place;
    const auto made = states_of(call(body, step, now, before, rows));
    b_.keeps_place = true;
    b_.place = place;
    for (const symbol& s : made)
      if (!b_.has(s)) return;
    states next;
    for (std::size_t i = 0; i < N; ++i) next[i] = made[i];
    for (std::size_t i = 0; i < N; ++i)
      if (!check_turn(now[i], next[i], "scan", int(i))) return;
    copy_shared(next, now);
    const list<std::int32_t> saved = saved_tensors(record.body, now, before, rows);
    list<symbol> stacks;
    const std::int32_t end = next_node();
    for (const std::int32_t v : saved) stacks.push_back(loop.open_zeros(stack_of(b_.program.at(v), dim)));
    move_nodes(end, opened);
    record.body += next_node() - end;
    record.close = next_node();
    for (std::size_t i = 0; i < saved.size(); ++i)
      record.saved.push_back({loop.close_row(stacks[i], {&b_, saved[i]}, step).id, saved[i]});
    for (std::size_t i = 0; i < Outputs; ++i) {
      const symbol row = made[N + i];
      if (!has_room(row)) return;
      loop.shape(outputs[i], stack_of(row.get(), dim));
      after[N + i] = loop.close_row(outputs[i], row, step);
      record.outputs.push_back({after[N + i].id, row.id});
    }
    for (std::size_t i = 0; i < N; ++i) history[i] = loop.close_row(history[i], now[i], step);
    for (std::size_t i = 0; i < N; ++i) {
      after[i] = loop.close(now[i], next[i]);
      record.states.push_back({start_[i].id, now[i].id, next[i].id, after[i].id, history[i].id});
    }
    loop.close(step, here(step) + 1);
    record.end = next_node();
    loop.end();
    record.gradient = scan_gradient<backward_walk>;
    b_.scans.push_back(record);
  }
  constexpr std::int32_t next_node() const { return std::int32_t(b_.program.nodes.size()); }

  /// The remat policy of a node of the body. The body is a remat scope. In nested scopes the outermost decides. @see remat
  constexpr remat_policy policy_of(const node& n) const {
    const std::int32_t around = b_.place.remat, inside = n.place.remat;
    if (around == 0 && (options_.saved != remat_policy::everything || inside == 0)) return options_.saved;
    return b_.program.remats[std::size_t(inside - 1)];
  }
  /// The tensors of the body that are kept. Only tensors that depend on a state or a row can be.
  constexpr list<std::int32_t> saved_tensors(std::int32_t body, const states& now, const earlier_states& before,
                                             const std::array<symbol, X>& rows) const {
    list<std::int32_t> saved;
    list<char> varies(b_.program.values.size(), 0);
    for (const symbol& s : now) varies[std::size_t(s.id)] = 1;
    for (const symbol& s : before) varies[std::size_t(s.id)] = 1;
    for (const symbol& x : rows) varies[std::size_t(x.id)] = 1;
    int depth = 0;  // in loops of the body
    for (std::int32_t i = body; i < next_node(); ++i) {
      const node& n = b_.program.nodes[std::size_t(i)];
      depth += traits(n.kind).nesting;
      bool any = false;
      for (int k = 0; k < n.inputs; ++k) any = any || varies[std::size_t(n.input(k))];
      for (int o = 0; o < n.outputs && any; ++o) {
        const std::int32_t v = n.output(o);
        varies[std::size_t(v)] = 1;
        if (depth + nesting_of_results(n) != 0 || traits(n.kind).alias || b_.program.at(v).rank() == max_rank) continue;
        if (is_saved(n, policy_of(n))) saved.push_back(v);
      }
    }
    return saved;
  }
  /// Moves the nodes from `from` on before node `to`.
  constexpr void move_nodes(std::int32_t from, std::int32_t to) {
    graph& g = b_.program;
    const std::int32_t count = next_node() - from;
    if (count == 0) return;
    const auto place_of = [&](std::int32_t i) { return i < to ? i : i < from ? i + count : i - (from - to); };
    list<node> all = g.nodes;
    for (std::int32_t i = to; i < from + count; ++i) all[std::size_t(place_of(i))] = g.nodes[std::size_t(i)];
    g.nodes.swap(all);
    for (value& v : g.values) v.producer = place_of(v.producer);
    for (scan_record& inner : b_.scans)
      for (std::int32_t* at : {&inner.begin, &inner.body, &inner.close, &inner.end}) *at = place_of(*at);
  }
};

template <bool Lagged = false, class Body, std::size_t N, std::size_t X>
constexpr auto write_scan(const Body& body, const std::array<symbol, N>& start, const std::array<symbol, X>& stacked, const scan_options& o,
                          std::uint32_t line, const char* file) {
  static_assert(N > 0, "gshard: a scan carries a state");
  builder& b = *start[0].owner;
  if (!b.failed()) here(start[0], line, file);
  for (const symbol& s : start) b.has(s);
  for (const symbol& x : stacked)
    if (b.has(x)) check_dim(x, 0, "scan");
  int dim = -1;
  if (!b.failed()) dim = o.steps < 0 ? int(stacked[0].get().dims[0]) : b.fixed_dim(o.steps);
  for (std::size_t i = 1; i < X && !b.failed(); ++i)
    if (!b.same_extent(stacked[i].get().dims[0], stacked[0].get().dims[0])) b.fail(fault::dims_differ, "scan", {}, int(i), 0);
  constexpr std::size_t operands = 1 + (Lagged ? 2 : 1) * N + X;
  using one_step = body_call<Body, operands>;
  static_assert(holds<one_step::is_taken, tensors_passed<operands>>,
                "gshard: the body of a scan takes the index of the step, then the states, then a row of each stacked tensor");
  static_assert(holds<!one_step::is_taken || one_step::results >= N, actual_type<typename one_step::made>>,
                "gshard: the body of a scan returns the next states, then its outputs: a tensor, or a tuple or array of tensors");
  if constexpr (one_step::results >= N) {
    return one_or_all(scan_writer<Lagged, Body, N, X>(b, start, stacked, o).write(body, dim));
  } else {  // the expected number of results: that of a body without the index, if it is one
    constexpr std::size_t without_index = body_call<Body, operands - 1>::results;
    b.fail(fault::refused_call, {});
    return one_or_all(nothings<(without_index > N ? without_index : N)>(b));
  }
}

}  // namespace detail

/// scan(body, init, xs): a loop over the rows of stacked tensors, as jax.lax.scan. body(step, state..., x...) takes the index of the step,
/// an int32 scalar, the states, and row `step` of each tensor of xs along dim 0. It returns the next states, then its outputs: a tensor, or
/// a tuple or array of tensors. scan returns the states after the last step, then the outputs of all steps, stacked along dim 0: a tensor,
/// or an array of several. `init` and `xs` are tensors, or tuples or arrays of tensors. The loop runs at run time. The plan does not depend
/// on the number of steps, which may be unknown. Random numbers are drawn anew in every step.
///
/// A scan has a gradient: a second loop, from the last step to the first. The states before each step are kept, and the tensors of `saved`
/// that the gradient reads. All others are recomputed from them, with the same random numbers. With remat_policy::everything, only tensors
/// that depend on neither states nor xs are recomputed. remat_policy::collectives keeps nothing here. The body is a remat scope. A scope
/// around the scan decides in place of `saved`. Scopes in the body have an effect only with remat_policy::everything. A gradient of this
/// gradient is refused. States keep one sharding, as in while_loop.
/// Shapes: xs [T, ...]; states keep their dims and types; an output [...] of a step -> [T, ...].
/// Communicates: in every step the collectives of body, the reshard of the next states, and the small message of while_loop. In its
/// gradient, also the sum over devices of the gradients of xs and of tensors from outside: once, after the loop, or, if an axis of the sum
/// shards the tensor, by a reduce_scatter in every step. Outputs are not sharded along T.
/// Compile time: the numbers of tensors that body takes and returns; dims and types; that no tensor made in a step is used outside; that no
/// parameter is updated in a step.
/// Throws: `gshard::error` on every process, as while_loop.
/// @see while_loop, repeat, remat
template <class Body, detail::scan_states Init, detail::scan_states Xs>
constexpr auto scan(const Body& body, const Init& init, const Xs& xs, remat_policy saved = remat_policy::nothing,
                    std::uint32_t line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  return detail::write_scan(body, detail::states_of(init), detail::states_of(xs), {.saved = saved}, line, file);
}

/// scan<Steps>(body, init): body(step, state...) applied Steps times. Otherwise as scan over stacked tensors.
template <std::int64_t Steps, class Body, detail::scan_states Init>
constexpr auto scan(const Body& body, const Init& init, remat_policy saved = remat_policy::nothing, std::uint32_t line = __builtin_LINE(),
                    const char* file = __builtin_FILE()) {
  static_assert(Steps >= 0, "gshard: a scan has a number of steps");
  return detail::write_scan(body, detail::states_of(init), std::array<symbol, 0>{}, {.steps = Steps, .saved = saved}, line, file);
}

namespace detail {
/// scan(body, init, xs)
template <class... Given>
inline constexpr bool scans = false;
template <class Body, scan_states Init, scan_states Xs, class... Line>
inline constexpr bool scans<Body, Init, Xs, Line...> = !scan_states<Body>;
}  // namespace detail

GSHARD_TAKES(scan, (detail::scans<Given...>),
             "scan(body, init, xs) takes a function, and twice a tensor or a tuple of tensors; without xs, scan<8>(body, init)")

}}  // namespace gshard::v0
