// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Pipelines: layers in stages on different devices, which work on different microbatches at a time.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/remat.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace nn {

/// The form of a pipeline's ticks in the plan.
/// loop: iterations of a loop. The plan has one tick, so that compile time does not grow with the number of ticks. Prices then count one
/// tick, `dry_run` counts all. Processes agree in every tick whether the loop goes on.
/// all_ticks: the steps of all ticks, one after the other.
/// automatic: a loop for GPipe, all ticks for the circular schedule. In a loop, each tick of the circular schedule copies the weights of
/// its round, and adds to the gradients of all rounds. With 256 tokens per microbatch and 1024 features, a loop took 1.45 times as long,
/// and 1.14 times the memory.
enum class pipeline_plan : std::uint8_t { automatic, loop, all_ticks };

/// The schedule of a pipeline.
struct pipeline_options {
  /// The number of times that a microbatch passes all stages. 1: GPipe. More: the circular schedule, in which each stage has several groups
  /// of layers, and the bubble is smaller.
  int repeats = 1;
  remat_policy saved = remat_policy::everything;  ///< The tensors of a microbatch that a stage keeps for the gradient. @see remat, scan
  pipeline_plan plan = pipeline_plan::automatic;  ///< The form of the ticks in the plan.

  constexpr bool is_loop() const { return plan == pipeline_plan::automatic ? repeats == 1 : plan == pipeline_plan::loop; }
  /// The number of ticks. In each tick, every stage works on one microbatch, or its result is ignored.
  constexpr std::int64_t ticks(std::int64_t stages, std::int64_t microbatches) const { return repeats * microbatches + stages - 1; }
  /// The share of ticks in which a stage is idle: (S - 1) / (R M + S - 1).
  constexpr double bubble(std::int64_t stages, std::int64_t microbatches) const {
    return double(stages - 1) / double(ticks(stages, microbatches));
  }
};

namespace detail {

/// Writes the ticks of a pipeline, as a scan or one after the other.
template <class Body, std::size_t N>
class pipeline_writer {
 public:
  constexpr pipeline_writer(const parameter_scope& m, const pipeline_options& o, symbol x, const std::array<symbol, N>& weights)
      : b_(m.owner()), m_(m), options_(o), x_(x), weights_(weights), place_(b_.place), keeps_place_(b_.keeps_place) {}

  constexpr symbol write(const Body& body) {
    if (!check()) return b_.nothing();
    const line_of_call kept(b_);
    return options_.is_loop() ? loop(body) : ticks(body);
  }

 private:
  builder& b_;
  const parameter_scope& m_;
  pipeline_options options_;
  symbol x_;
  std::array<symbol, N> weights_;
  code_place place_;
  bool keeps_place_;
  std::int64_t stages_ = 0, batches_ = 0;
  int stage_dim_ = 0;
  dim_list state_dims_;  // [stages, ...]
  symbol index_;         // the stages' numbers
  std::array<list<symbol>, N> rounds_;  // the weights of each round

  /// A scan over the ticks. Its state is each stage's operand, except for the microbatches that enter the first stage.
  constexpr symbol loop(const Body& body) {
    const std::int64_t count = options_.ticks(stages_, batches_), lag = batches_ - stages_;
    const symbol stage = gshard::detail::emit_indices(b_, stage_dim_), first = cast(equal(stage, 0.0), x_.get().type);
    const symbol last = cast(equal(stage, double(stages_ - 1)), x_.get().type);
    std::array<symbol, N> tables = weights_;  // with rounds: [stages, rounds, ...]
    for (symbol& w : tables)
      if (options_.repeats > 1) w = swap_first_dims(w);
    const auto tick = [&](symbol t, symbol moved, symbol lagged, symbol batch) {
      b_.keeps_place = true;
      symbol state = moved;
      if (options_.repeats > 1 && lag > 0) state = choose(first, lagged, moved);
      symbol enters = first;
      if (options_.repeats > 1) enters = cast(equal(here(stage) + select(less(t, double(batches_)), 0.0, 1.0), 0.0), x_.get().type);
      state = choose(enters, batch, state);
      std::array<symbol, N> w{};
      const symbol round = options_.repeats > 1 ? round_of_stages(t, stage) : b_.nothing();
      for (std::size_t i = 0; i < N; ++i) w[i] = options_.repeats > 1 ? weight_of_round(tables[i], round) : tables[i];
      const symbol y = call(body, state, w);
      if (!check_result(y)) return std::tuple(y, y);
      const symbol shifted = shift(y), nothing = gshard::detail::emit_constant(gshard::detail::pointwise_constant<0>, y);
      return std::tuple(shifted, choose(last, y, nothing));
    };
    const symbol before = everywhere(stop_gradient(squeeze(slice(x_, 0, 0, 1), 0)));
    const gshard::detail::scan_options how{.steps = count, .saved = options_.saved, .lag = lag};
    const symbol all = scan_ticks(tick, before, how)[1];
    if (b_.failed()) return b_.nothing();
    return sum_of_stages(slice(all, 0, count - batches_, count), 1);
  }
  /// Only the circular schedule reads states of earlier ticks.
  template <class Tick>
  constexpr std::array<symbol, 2> scan_ticks(const Tick& tick, symbol before, const gshard::detail::scan_options& how) {
    const std::array start{before}, rows{x_};
    if (options_.repeats > 1 && how.lag > 0)
      return gshard::detail::write_scan<true>(tick, start, rows, how, place_.line, place_.file);
    const auto without = [&tick](symbol t, symbol moved, symbol batch) { return tick(t, moved, moved, batch); };
    return gshard::detail::write_scan(without, start, rows, how, place_.line, place_.file);
  }
  /// The round of each stage in a tick.
  constexpr symbol round_of_stages(symbol t, symbol stage) {
    const symbol begun = here(t) - stage;  // ticks since the stage took its first microbatch
    symbol round = stage;
    for (int r = 1; r < options_.repeats; ++r) {
      const symbol more = cast(begun >= double(r * batches_), dtype::i32);
      round = r == 1 ? more : here(round) + more;
    }
    return round;
  }
  /// The weights of each stage in its round.
  constexpr symbol weight_of_round(symbol table, symbol round) {
    const symbol w = gather(table, round, 1, 1);
    if (!b_.failed()) b_.program.nodes.back().attr.inside = true;
    return w;
  }
  constexpr symbol swap_first_dims(symbol w) {
    if (b_.failed()) return b_.nothing();
    const short_list from = gshard::detail::counting(w.rank());
    short_list to;
    for (int d = 0; d < w.rank(); ++d) to.push_back(d < 2 ? 1 - d : d);
    return gshard::detail::emit_einsum(b_, list_view(&w, 1), list_view(&from, 1), to);
  }
  constexpr symbol everywhere(symbol batch) {
    if (b_.failed()) return b_.nothing();
    return gshard::detail::emit_broadcast(batch, gshard::detail::counting(x_.rank() - 1, 1), gshard::detail::counting(x_.rank()),
                                          state_dims_);
  }
  /// Moves each stage's result to the next stage.
  constexpr symbol shift(symbol y) { return options_.repeats == 1 ? pad(y, 0, 1, -1) : roll(y, 0, 1); }
  constexpr bool check_result(symbol y) {
    constexpr std::string_view name = "result of the body of pipeline";
    if (!b_.has(y)) return false;
    const value& v = y.get();
    if (v.rank() != state_dims_.size()) b_.fail(fault::rank_mismatch, name, {}, state_dims_.size(), v.rank());
    if (v.type != x_.get().type) b_.fail_type(name, 0, v.type, only(x_.get().type));
    for (int d = 0; d < state_dims_.size(); ++d)
      if (!b_.same_extent(v.dims[d], state_dims_[d])) b_.fail(fault::dims_differ, name, {}, 0, d);
    return !b_.failed();
  }

  constexpr symbol ticks(const Body& body) {
    index_ = stage_index();
    for (std::size_t i = 0; i < N; ++i)
      for (int r = 0; r < options_.repeats; ++r)
        rounds_[i].push_back(options_.repeats == 1 ? weights_[i] : squeeze(slice(weights_[i], 0, r, r + 1), 0));
    const std::int64_t count = options_.ticks(stages_, batches_), last = (options_.repeats - 1) * batches_ + stages_ - 1;
    list<symbol> moved, results;  // moved: by tick, each stage's result, moved to the next stage
    for (std::int64_t t = 0; t < count && !b_.failed(); ++t) {
      const symbol y = run(body, t, operand(t, moved));
      if (!check_result(y)) break;
      if (t + 1 < count) moved.push_back(shift(y));
      if (t >= last) results.push_back(expand_dims(y, 1));
    }
    return b_.failed() ? b_.nothing() : of_last_stage(joined(results));
  }
  constexpr bool check() {
    if (!b_.has(x_) || !gshard::detail::check_dim(x_, 0, "x of pipeline")) return false;
    const int at = options_.repeats > 1;  // the dim of stages
    for (std::size_t i = 0; i < N; ++i)
      if (b_.has(weights_[i])) gshard::detail::check_dim(weights_[i], at, "a weight of pipeline");
    if (b_.failed()) return false;
    const dtype type = x_.get().type;
    if (!has_sums(type)) b_.fail_type("pipeline", 0, type, types_with(has_sums));
    const bool adds_rounds = options_.repeats > 1 && !options_.is_loop();  // @see weight
    stage_dim_ = weights_[0].get().dims[at];
    for (std::size_t i = 0; i < N; ++i) {
      const value& w = weights_[i].get();
      if (adds_rounds && w.type != type) b_.fail_type("pipeline", int(i) + 1, w.type, only(type));
      if (!b_.same_extent(w.dims[at], stage_dim_)) b_.fail(fault::dims_differ, "pipeline", {}, int(i) + 1, at);
      if (at == 1 && b_.known_extent(weights_[i].get().dims[0]) != options_.repeats) b_.fail(fault::pipeline_extents, "pipeline");
    }
    stages_ = b_.known_extent(stage_dim_);
    batches_ = b_.known_extent(x_.get().dims[0]);
    if (options_.repeats < 1 || stages_ < 1 || batches_ < 1 || (options_.repeats > 1 && batches_ < stages_))
      b_.fail(fault::pipeline_extents, "pipeline");
    state_dims_.push_back(stage_dim_);
    for (int d = 1; d < x_.rank(); ++d) state_dims_.push_back(x_.get().dims[d]);
    return !b_.failed();
  }
  constexpr symbol stage_index() {
    dim_list dims;
    dims.push_back(stage_dim_);
    return cast(gshard::detail::emit_iota(b_, dims, 0), x_.get().type);
  }
  /// a in the stages where the condition [stages] is not 0, else b. If a lacks the dim of stages, it is the same in all of them.
  constexpr symbol choose(symbol condition, symbol a, symbol b) {
    if (b_.failed()) return b_.nothing();
    const short_list all = gshard::detail::counting(b.rank());
    const short_list of_a = a.rank() < b.rank() ? gshard::detail::counting(a.rank(), 1) : all;
    return gshard::detail::emit_map_of(gshard::detail::choice<>, std::array{condition, a, b},
                                       std::array{gshard::detail::counting(1), of_a, all}, b);
  }
  /// The operands of the stages in a tick. Idle stages also get numbers of the data, so that their results are finite.
  constexpr symbol operand(std::int64_t t, const list<symbol>& moved) {
    if (t < batches_) {
      const symbol batch = squeeze(slice(x_, 0, t, t + 1), 0);
      if (t > 0) return choose(equal(index_, 0.0), batch, moved[std::size_t(t - 1)]);
      const symbol all = everywhere(batch), begins = equal(index_, 0.0);
      return choose(begins, all, stop_gradient(all));
    }
    const symbol before = moved[std::size_t(t - 1)];
    if (options_.repeats == 1) {
      const symbol begins = equal(index_, 0.0);
      return choose(begins, stop_gradient(squeeze(slice(x_, 0, batches_ - 1, batches_), 0)), before);
    }
    // The first stage takes the microbatch that left the last stage M - S + 1 ticks earlier.
    const std::int64_t left = t - 1 - (batches_ - stages_);
    return batches_ == stages_ || t >= options_.repeats * batches_ ? before
                                                                   : choose(equal(index_, 0.0), moved[std::size_t(left)], before);
  }
  /// The weights of each stage in this tick. With repeats, the first stages may be one round ahead of the others. The result is linear in
  /// the weights, so that their gradients may stay partial sums.
  constexpr symbol weight(const list<symbol>& of_round, std::int64_t t) {
    std::int64_t round = t / batches_;
    if (round >= options_.repeats) round = options_.repeats - 1;
    const std::int64_t ahead = t - round * batches_;  // the last stage in this round
    const symbol now = of_round[std::size_t(round)];
    if (round == 0 || ahead >= stages_ - 1) return now;
    const symbol these = where(index_ <= double(ahead), now), others = where(index_ > double(ahead), of_round[std::size_t(round - 1)]);
    return these + others;
  }
  /// w in the stages where the condition is 1, else 0.
  constexpr symbol where(symbol condition, symbol w) {
    const std::array operands{condition, w};
    const short_list all = gshard::detail::counting(w.rank());
    const std::array factors{gshard::detail::counting(1), all};
    return gshard::detail::emit_einsum(b_, list_view(operands.data(), 2), list_view(factors.data(), 2), all);
  }
  constexpr symbol run(const Body& body, std::int64_t t, symbol state) {
    const remat recomputed(m_, options_.saved);
    std::array<symbol, N> w{};
    for (std::size_t i = 0; i < N; ++i) w[i] = weight(rounds_[i], t);
    return call(body, state, w);
  }
  constexpr symbol call(const Body& body, symbol state, const std::array<symbol, N>& w) {
    b_.keeps_place = keeps_place_;
    const symbol y = [&]<std::size_t... I>(std::index_sequence<I...>) { return symbol(body(state, w[I]...)); }(
                         std::make_index_sequence<N>());
    b_.keeps_place = true;
    place_.remat = b_.place.remat;
    b_.place = place_;
    return y;
  }
  /// The results [stages, 1, ...] as one tensor [stages, microbatches, ...].
  constexpr symbol joined(list<symbol> parts) {
    constexpr std::size_t most = sharding_rule::most_in;
    while (parts.size() > 1 && !b_.failed()) {
      list<symbol> fewer;
      for (std::size_t i = 0; i < parts.size(); i += most)
        fewer.push_back(concat(list_view(parts.data() + i, parts.size() - i < most ? parts.size() - i : most), 1));
      parts = fewer;
    }
    return b_.failed() ? b_.nothing() : parts[0];
  }
  /// The results of the last stage: a sum over the stages, in which the others are 0. Devices exchange them in one reduction.
  constexpr symbol of_last_stage(symbol all) {
    if (b_.failed()) return b_.nothing();
    const symbol nothing = gshard::detail::emit_constant(gshard::detail::pointwise_constant<0>, all);
    return sum_of_stages(choose(equal(index_, double(stages_ - 1)), all, nothing), 0);
  }
  constexpr symbol sum_of_stages(symbol all, int stage_dim) {
    if (b_.failed()) return b_.nothing();
    const short_list from = gshard::detail::counting(all.rank());
    short_list to;
    for (int d = 0; d < all.rank(); ++d)
      if (d != stage_dim) to.push_back(d);
    const symbol y = gshard::detail::emit_einsum(b_, list_view(&all, 1), list_view(&from, 1), to);
    if (!b_.failed()) b_.program.at(y.id).dims = x_.get().dims;  // the dim of microbatches of x, which has the same extent
    return y;
  }
};

}  // namespace detail

/// pipeline(m, options, body, x, w, ...): y[i] = f(...f(f(x[i], w[0]), w[1])..., w[S-1]) for microbatch i. Stage s is f with the weights
/// w[s], and stages work on different microbatches at a time. body(y, w, ...) computes f for all stages: it maps [S, ...] to the same dims,
/// as einsum<"SBM,SMF->SBF">(y, w) does. With weights sharded over a mesh axis along S, each device computes its own stages. Layers of nn
/// with tensors of fixed rank, such as nn::attention and nn::moe, have no dim S: use other verbs in a body.
///
/// GPipe (repeats 1): weights [S, ...]. Circular (repeats R): weights [R, S, ...]. A microbatch passes all stages R times, in round r with
/// w[r]. The share of idle ticks is (S - 1) / (R M + S - 1). @see pipeline_options
/// Shapes: x [M, ...] of M microbatches -> the same.
/// Communicates: between stages, one collective_permute per tick, and one in its gradient. For the results, one all_reduce; one all_to_all
/// if they are annotated to be sharded over the same axis. x is best replicated over the axis of the stages. Gradients of weights are
/// summed over other axes once; by the circular schedule without a loop, in several ticks. In a loop, all processes agree in every tick.
/// Compile time: the number of tensors that body takes; that S, M and R are known extents (`extent<'S', 4>`), and R = 1 or M >= S; dims and
/// types of x and of the result of body. A circular schedule without a loop: that weights have the type of x.
/// Throws: as scan, if the ticks are a loop.
/// @see scan, remat, pipeline_options
template <class Body, class... Weights>
  requires(sizeof...(Weights) > 0 && (std::convertible_to<Weights, symbol> && ...))
constexpr symbol pipeline(const parameter_scope& m, const pipeline_options& options, const Body& body, here x, const Weights&... w) {
  using one_tick = gshard::detail::body_call<Body, 1 + sizeof...(Weights)>;
  static_assert(holds<one_tick::is_taken, tensors_passed<1 + sizeof...(Weights)>>,
                "gshard: the body of a pipeline takes the tensor that passes its stages, then the weights");
  static_assert(holds<!one_tick::is_taken || std::is_convertible_v<typename one_tick::made, symbol>, actual_type<typename one_tick::made>>,
                "gshard: the body of a pipeline returns one tensor");
  if constexpr (std::is_convertible_v<typename one_tick::made, symbol>)
    return detail::pipeline_writer<Body, sizeof...(Weights)>(m, options, x, {symbol(w)...}).write(body);
  else return gshard::detail::refused(x);
}

}}}  // namespace gshard::v0::nn
