// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The Adafactor optimizer (arXiv 1804.04235), which stores factored second moments.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/math.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/check_step.hpp>
#include <gshard/train/clip.hpp>
#include <gshard/train/gradient_wire.hpp>
#include <gshard/train/master_value.hpp>
#include <gshard/train/shard_state.hpp>
#include <gshard/train/weight_decay.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
// Elementwise functions.
inline constexpr auto adafactor_rate = [](auto t) { return min(1 / sqrt(t), decltype(t)(0.01)); };
inline constexpr auto adafactor_average_share = [](auto t, auto power) { return 1 - exp(-power * log(t)); };
inline constexpr auto adafactor_average = [](auto x, auto y, auto beta) { return y + beta * (x - y); };  // beta x + (1 - beta) y
inline constexpr auto adafactor_clipped = [](auto square, auto most) { return 1 / max(sqrt(square) / most, decltype(most)(1)); };
inline constexpr auto adafactor_scaled_rate = [](auto r, auto square, auto least) { return r * max(sqrt(square), least); };
inline constexpr auto adafactor_moment = [](auto x, auto step, auto size, auto beta) { return beta * x + (1 - beta) * (size * step); };
inline constexpr auto adafactor_product = [](auto x, auto y) { return x * y; };
inline constexpr auto adafactor_step = [](auto x, auto u, auto r) { return x - r * u; };
inline constexpr auto adafactor_kept_share = [](auto r, auto lost) { return 1 - r * lost; };
inline constexpr auto adafactor_decayed_step = [](auto x, auto u, auto r, auto kept) { return kept * x - r * u; };
// These return the old value if the step is skipped.
inline constexpr auto adafactor_average_unless = [](auto x, auto y, auto beta, auto skipped) {
  return skipped == decltype(skipped)(0) ? adafactor_average(x, y, beta) : x;
};
inline constexpr auto adafactor_moment_unless = [](auto x, auto u, auto size, auto beta, auto skipped) {
  return skipped == decltype(skipped)(0) ? adafactor_moment(x, u, size, beta) : x;
};
inline constexpr auto adafactor_step_unless = [](auto x, auto u, auto r, auto skipped) {
  return skipped == decltype(skipped)(0) ? adafactor_step(x, u, r) : x;
};
inline constexpr auto adafactor_decayed_step_unless = [](auto x, auto u, auto r, auto kept, auto skipped) {
  return skipped == decltype(skipped)(0) ? adafactor_decayed_step(x, u, r, kept) : x;
};
inline constexpr auto adafactor_next_unless = [](auto x, auto next, auto skipped) { return skipped == decltype(skipped)(0) ? next : x; };
inline constexpr auto adafactor_over_root = [](auto x, auto square) { return x / sqrt(square); };
inline constexpr auto adafactor_root_of_share = [](auto x, auto y) { return sqrt(y / x); };
inline constexpr auto adafactor_inverse_root = [](auto x) { return 1 / sqrt(x); };
inline constexpr auto adafactor_product_of_three = [](auto x, auto y, auto z) { return x * y * z; };
}  // namespace detail

/// Adafactor (arXiv 1804.04235), called inside a model. For a parameter [..., A, B] it stores only row means and column means of the second
/// moments: A + B numbers. Their product approximates the moments. For vectors and scalars it stores all second moments:
///
/// beta_t = 1 - t^-decay, r = beta_t r + (1 - beta_t) mean over B of (g^2 + epsilon), c = the same over A, v = r c / (mean over A of r),
/// u = g / sqrt(v), p -= rate u / max(1, sqrt(mean of u^2) / clip), with t = 1, 2, ... the steps of this optimizer.
///
/// If the rate is relative to the parameter, as in the paper, `rate` in this formula is the given rate times max(least_scale, sqrt(mean of
/// p^2)). Weight decay is decoupled: p also loses weight_decay p times the given rate.
///
/// For a parameter in half precision, p in these formulas is the master value, a float: the sum of the parameter and the state
/// "adafactor.rest.w".
/// @see adam, accumulate, clip_by_global_norm
struct adafactor {
  double decay = 0.8;
  double epsilon = 1e-30;
  double clip = 1;
  double beta1 = 0;  ///< If not 0, the steps are averaged: m = beta1 m + (1 - beta1) u / max(...), p -= rate m.
  bool relative = true;
  double least_scale = 1e-3;
  double weight_decay = 0;  ///< The share of p that a step with rate 1 subtracts.
  /// The reaction to a loss, a gradient or an updated parameter that is NaN or infinite. The updates of the mean squares and of the
  /// parameters check their results. The loss is checked if the program returns it, or if steps may be skipped.
  not_finite if_not_finite = not_finite::stop;
  /// The format of gradients between devices: bf16 halves their bytes.
  gradient_wire wire = gradient_wire::full;
  /// If above 0: the gradients are scaled so that their global norm is at most this. @see clip_by_global_norm
  double clip_norm = 0;
  decay_mask decays{};  ///< The parameters that decay, by name and number of dims. The default is all.
  /// A mesh axis that shards the update, in addition to the axes that shard the parameter (ZeRO). Each device updates its share of a
  /// parameter. The axis shards the longest dim of the parameter in its moments. Row means and column means without this dim are not
  /// sharded by it. A gradient is reduce-scattered, and the updated parameter is all-gathered.
  axis_name shard_state_over{};

  /// minimize(m, loss, rate): appends the gradients of `loss` and the update of every trainable parameter, so one program is a complete
  /// training step.
  /// Shapes: loss and rate are scalars. A gradient has the shape of its parameter.
  /// Communicates: completes each gradient that is a partial sum, once. If a parameter is sharded, also the means of its rows and columns,
  /// and two numbers. With `clip_norm`, and if steps may be skipped, also one number each.
  /// Compile time: that loss and rate are scalars, that the rate has the gradients' element type, and that the mesh has the axis.
  /// Throws: `gshard::not_finite_error` in the run, if a number is not finite and `if_not_finite` is `stop`.
  /// @see adam, accumulate, gradients
  template <class Scope>
    requires(detail::call<3, parameter_scope, symbol, symbol>::fits<Scope, symbol, symbol>)
  constexpr void minimize(const Scope& m, here loss, symbol rate) const {
    minimize_at(m, differentiate(m, loss), [&](symbol) { return rate; });
  }
  /// Uses the paper's rate, min(0.01, 1 / sqrt(t)).
  template <class Scope>
    requires(detail::call<2, parameter_scope, symbol>::fits<Scope, symbol>)
  constexpr void minimize(const Scope& m, here loss) const {
    minimize_at(m, differentiate(m, loss), paper_rate<Scope>);
  }
  /// Updates with the gradients of micro-batches. @see accumulate
  template <class Scope>
    requires(detail::call<3, parameter_scope, accumulated, symbol>::fits<Scope, accumulated, symbol>)
  constexpr void minimize(const Scope& m, const accumulated& sum, symbol rate) const {
    minimize_at(m, sum, [&](symbol) { return rate; });
  }
  template <class Scope>
    requires(detail::call<2, parameter_scope, accumulated>::fits<Scope, accumulated>)
  constexpr void minimize(const Scope& m, const accumulated& sum) const {
    minimize_at(m, sum, paper_rate<Scope>);
  }
  template <class... Given>
    requires(!detail::call<2, parameter_scope, symbol, symbol>::fits<Given...> &&
             !detail::call<2, parameter_scope, accumulated, symbol>::fits<Given...>)
  constexpr auto minimize(const Given&...) const {  // auto: refused before the model runs
    static_assert(detail::accepts<Given...>,
                  "gshard: adafactor{}.minimize(m, loss, rate) takes the first argument of the model, a loss, and maybe a rate: a "
                  "scalar tensor");
  }

 private:
  template <class Scope>
  static constexpr auto paper_rate = [](symbol t) {
    return detail::emit_map(*t.owner, pointwise_of<when_used<Scope, detail::adafactor_rate>, 1>, list_view(&t, 1));
  };
  static constexpr accumulated differentiate(const parameter_scope& m, symbol loss) {
    const list<symbol> parameters = trainable(m);
    return {loss, parameters, detail::gradients_to_train(loss, parameters, "adafactor")};
  }

  template <class Scope, class Rate>
  constexpr void minimize_at(const Scope& m, const accumulated& of, Rate rate_at) const {
    builder& b = m.owner();
    const list<symbol>& parameters = of.parameters;
    const named_scope named(m, "optimizer");
    if (b.failed() || parameters.empty()) return;
    list<symbol> gradient = detail::gradients_on_wire(m, parameters, of.gradients, wire);
    detail::shard_gradients(b, shard_state_over.view(), parameters, gradient);
    detail::check_settings(b, "adafactor", clip_norm, weight_decay);
    if (clip_norm > 0) gradient = clip_by_global_norm(gradient, clip_norm);
    const bool rounds = b.options.bf16_products;
    b.options.bf16_products = false;  // squares are not products of the model
    const line_of_call kept(b);
    const symbol skipped = detail::prepare_checks(of.loss, gradient, if_not_finite);
    const symbol t = count_step(m, gradient_type(parameters[0].get().type), skipped);
    const symbol rate = rate_at(t);
    if (rate.rank() != 0) b.fail(fault::not_a_scalar, "adafactor: rate", {}, 0, rate.rank());
    for (std::size_t i = 0; i < parameters.size() && !b.failed(); ++i) update(m, parameters[i], gradient[i], rate, t, skipped);
    b.options.bf16_products = rounds;
  }

  /// The number of this step, a scalar that is kept from run to run.
  template <class Scope>
  constexpr symbol count_step(const Scope& m, dtype type, symbol skipped) const {
    builder& b = m.owner();
    parameter p;
    p.name = tensor_name("adafactor.steps");
    p.trainable = false;
    p.of_optimizer = true;
    if (b.find_parameter(p.name) >= 0) b.fail(fault::duplicate_name, p.name.view());
    if (b.failed()) return b.nothing();
    const symbol before = b.add_parameter(p, {}, type), t = here(before) + 1.0;
    if (skipped.id < 0) b.set_updated(before, t);
    else
      overwrite(b, before,
                of_dims(undifferentiated<when_used<Scope, detail::adafactor_next_unless>, 3>, {before, t, skipped}, {{}, {}, {}}, before));
    return t;
  }

  // Applies f to tensors. `dims`: by tensor, the dims of `like` that it has.
  static constexpr symbol of_dims(const pointwise& f, std::initializer_list<symbol> x, std::initializer_list<short_list> dims,
                                  symbol like) {
    return detail::emit_map_of(f, list_view(x.begin(), x.size()), list_view(dims.begin(), dims.size()), like);
  }
  /// The mean of x * y, tensors of equal dims, over the dims that `kept` lacks.
  static constexpr symbol mean(builder& b, std::initializer_list<symbol> x, const short_list& kept) {
    const symbol like = *x.begin();
    if (b.failed()) return like;
    const short_list all = detail::counting(like.rank());
    const short_list both[] = {all, all};
    dim_list over;
    for (int d = 0; d < like.rank(); ++d)
      if (!kept.contains(d)) over.push_back(like.get().dims[d]);
    const symbol sum = detail::emit_einsum(b, list_view(x.begin(), x.size()), list_view(both, x.size()), kept, "adafactor");
    return detail::emit_scale(sum, 1, over, -1);
  }

  template <class Scope>
  constexpr void update(const Scope& m, symbol p, symbol g, symbol rate, symbol t, symbol skipped) const {
    builder& b = m.owner();
    if (!b.has(p)) return;
    const std::size_t first = b.program.values.size();
    const detail::master_value master(m, p, "adafactor.rest.");
    const symbol x = master.value();
    if (!detail::require_real(b, "adafactor", {x, g, rate}) || !detail::has_dims_of(p, g, "adafactor")) return;
    const short_list all = detail::counting(p.rank());
    const bool skips = skipped.id >= 0;
    const double lost = detail::weight_decay_of(p, weight_decay, decays);
    symbol kept = b.nothing();
    if (lost != 0)
      kept = of_dims(pointwise_of<when_used<Scope, detail::adafactor_kept_share>, 2>, {rate, detail::emit_filled(rate, lost)}, {{}, {}},
                     rate);
    symbol u = p.rank() < 2 ? whole_step(m, p, g, t, skipped) : factored_step(m, p, g, t, skipped);
    symbol clipped = of_dims(pointwise_of<when_used<Scope, detail::adafactor_clipped>, 2>,
                             {mean(b, {u, u}, {}), detail::emit_filled(rate, clip)}, {{}, {}}, rate);
    if (relative)
      rate = of_dims(pointwise_of<when_used<Scope, detail::adafactor_scaled_rate>, 3>,
                     {rate, mean(b, {x, x}, {}), detail::emit_filled(rate, least_scale)}, {{}, {}, {}}, rate);
    if (beta1 != 0) {
      const symbol before = m.state("adafactor.m.", p), keep = detail::emit_filled(rate, beta1);
      u = skips ? of_dims(undifferentiated<when_used<Scope, detail::adafactor_moment_unless>, 5>, {before, u, clipped, keep, skipped},
                          {all, all, {}, {}, {}}, x)
                : of_dims(pointwise_of<when_used<Scope, detail::adafactor_moment>, 4>, {before, u, clipped, keep}, {all, all, {}, {}}, x);
      overwrite(b, before, u);
      clipped = detail::emit_filled(rate, 1);
    }
    const symbol size = of_dims(pointwise_of<when_used<Scope, detail::adafactor_product>, 2>, {rate, clipped}, {{}, {}}, rate);
    symbol next = b.nothing();
    if (kept.id < 0) {
      next = skips ? of_dims(undifferentiated<when_used<Scope, detail::adafactor_step_unless>, 4>, {x, u, size, skipped},
                             {all, all, {}, {}}, x)
                   : of_dims(pointwise_of<when_used<Scope, detail::adafactor_step>, 3>, {x, u, size}, {all, all, {}}, x);
    } else {
      next = skips ? of_dims(undifferentiated<when_used<Scope, detail::adafactor_decayed_step_unless>, 5>, {x, u, size, kept, skipped},
                             {all, all, {}, {}, {}}, x)
                   : of_dims(pointwise_of<when_used<Scope, detail::adafactor_decayed_step>, 4>, {x, u, size, kept}, {all, all, {}, {}}, x);
    }
    write_over_first_operand(b);
    master.update(next);
    detail::shard_update(b, shard_state_over.view(), p, g, first);
  }
  /// The last node may write its result over its first operand, and checks it.
  constexpr void write_over_first_operand(builder& b) const {
    if (b.failed()) return;
    b.program.nodes.back().in_place = 1;
    b.program.nodes.back().attr.if_not_finite = if_not_finite;
  }
  /// The last node computes `next` from x, its first operand, and may write `next` over x.
  constexpr void overwrite(builder& b, symbol x, symbol next) const {
    write_over_first_operand(b);
    if (!b.failed()) b.set_updated(x, next);
  }

  template <class Scope>
  constexpr symbol beta_at(symbol t) const {
    return of_dims(pointwise_of<when_used<Scope, detail::adafactor_average_share>, 2>, {t, detail::emit_filled(t, decay)}, {{}, {}}, t);
  }
  /// The running average of squares over these dims of the parameter.
  template <class Scope>
  constexpr symbol averaged(const Scope& m, std::string_view prefix, symbol p, const short_list& kept, symbol square, symbol t,
                            symbol skipped) const {
    const symbol before = m.state(prefix, p, kept);
    const short_list own = detail::counting(kept.size());
    const symbol added = here(square) + epsilon, beta = beta_at<Scope>(t);
    const symbol next =
        skipped.id >= 0
            ? of_dims(undifferentiated<when_used<Scope, detail::adafactor_average_unless>, 4>, {before, added, beta, skipped},
                      {own, own, {}, {}}, before)
            : of_dims(pointwise_of<when_used<Scope, detail::adafactor_average>, 3>, {before, added, beta}, {own, own, {}}, before);
    overwrite(m.owner(), before, next);
    return next;
  }
  template <class Scope>
  constexpr symbol whole_step(const Scope& m, symbol p, symbol g, symbol t, symbol skipped) const {
    const symbol v = averaged(m, "adafactor.v.", p, detail::counting(p.rank()), here(g) * g, t, skipped);
    return here(map<when_used<Scope, detail::adafactor_over_root>>(g, v));
  }
  template <class Scope>
  constexpr symbol factored_step(const Scope& m, symbol p, symbol g, symbol t, symbol skipped) const {
    builder& b = m.owner();
    const int rank = p.rank();
    const short_list batch = detail::counting(rank - 2);
    short_list rows = detail::counting(rank - 1), columns = batch;
    columns.push_back(rank - 1);
    const symbol r = averaged(m, "adafactor.r.", p, rows, mean(b, {g, g}, rows), t, skipped);
    const symbol c = averaged(m, "adafactor.c.", p, columns, mean(b, {g, g}, columns), t, skipped);
    const symbol by_row = of_dims(pointwise_of<when_used<Scope, detail::adafactor_root_of_share>, 2>, {r, mean(b, {r}, batch)},
                                  {rows, batch}, r);
    const symbol by_column = map<when_used<Scope, detail::adafactor_inverse_root>>(c);
    return of_dims(pointwise_of<when_used<Scope, detail::adafactor_product_of_three>, 3>, {g, by_row, by_column},
                   {detail::counting(rank), rows, columns}, g);
  }
};

}}  // namespace gshard::v0
