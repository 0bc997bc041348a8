// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The Adam optimizer with decoupled weight decay (AdamW).

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/list.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
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
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation adam{.id = 54, .name = "adam"};
}  // namespace op

struct adam_attributes {
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;

  static constexpr void each(auto& all, auto f) {
    f("beta1", all.beta1), f("beta2", all.beta2), f("epsilon", all.epsilon), f("weight_decay", all.weight_decay);
  }
};

/// Adam (arXiv 1412.6980) with decoupled weight decay (arXiv 1711.05101), called inside a model. For a parameter p with the gradient g:
///
///   m = beta1 m + (1 - beta1) g
///   v = beta2 v + (1 - beta2) g^2
///   p -= rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p)
///
/// Here t = 1, 2, ... are the steps of the run.
///
/// The states "adam.m.w" and "adam.v.w" of a parameter w have its shape. A parameter in half precision has a master value, a float: p in
/// the formula. It is the sum of the parameter and the state "adam.rest.w". The parameter is the master value, rounded. Something else may
/// write the parameter, such as `load`. An element of the rest therefore counts only while its sum with the parameter rounds to the
/// parameter.
/// @see adafactor, accumulate, clip_by_global_norm
struct adam {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;
  /// The reaction to a loss, a gradient or an updated parameter that is NaN or infinite. The kernels of the update check gradients and
  /// parameters. The loss is checked if the program returns it, or if steps may be skipped.
  not_finite if_not_finite = not_finite::stop;
  /// The format of gradients between devices: bf16 halves their bytes.
  gradient_wire wire = gradient_wire::full;
  /// If above 0: the gradients are scaled so that their global norm is at most this. @see clip_by_global_norm
  double clip_norm = 0;
  decay_mask decays{};  ///< The parameters that decay, by name and number of dims. The default is all.
  /// A mesh axis that shards the moments, in addition to the axes that shard their parameter (ZeRO). Each device updates its share of a
  /// parameter. A gradient is reduce-scattered, and the updated parameter is all-gathered. A parameter that is annotated with this axis is
  /// updated in its own sharding, and gathered where it is used (FSDP).
  axis_name shard_state_over{};

  /// minimize(m, loss, rate): appends the gradients of `loss` and the update of every trainable parameter, so one program is a complete
  /// training step. Parameters and moments are updated in place.
  /// Shapes: loss and rate are scalars. A gradient has the shape of its parameter.
  /// Communicates: completes each gradient that is a partial sum, once. With `clip_norm`, and if steps may be skipped, also one number
  /// each. With `shard_state_over`, a reduce_scatter of each gradient in place of an all_reduce, and an all_gather of each parameter.
  /// Compile time: that loss and rate are scalars, that the rate has the gradients' element type, and that the mesh has the axis.
  /// Throws: `gshard::not_finite_error` in the run, if a number is not finite and `if_not_finite` is `stop`.
  /// @see accumulate, gradients
  constexpr void minimize(const parameter_scope& m, here loss, symbol rate) const {
    const list<symbol> parameters = trainable(m);
    train(m, loss, parameters, detail::gradients_to_train(loss, parameters, "adam"), rate);
  }
  /// Updates with the gradients of micro-batches. @see accumulate
  constexpr void minimize(const parameter_scope& m, const accumulated& sum, symbol rate) const {
    if (!m.owner().failed()) train(m, sum.loss, sum.parameters, sum.gradients, rate);
  }

  template <class... Given>
    requires(!detail::call<3, parameter_scope, symbol, symbol>::fits<Given...> &&
             !detail::call<3, parameter_scope, accumulated, symbol>::fits<Given...>)
  constexpr auto minimize(const Given&...) const {  // auto: refused before the model runs
    static_assert(detail::accepts<Given...>,
                  "gshard: adam{}.minimize(m, loss, rate) takes the first argument of the model, a loss, and a rate: a scalar "
                  "tensor, such as an input in<\"\">");
  }

  /// update(m, p, g, rate): appends the update of one parameter with the gradient g. If `if_not_finite` is `skip`, and g is not finite, p
  /// and its moments do not change.
  /// Shapes: g has the shape of p; rate is a scalar.
  /// Communicates: completes g, if it is a partial sum. If steps may be skipped, also one number.
  /// Compile time: dims and element types.
  /// Throws: as minimize.
  /// @see minimize
  constexpr void update(const parameter_scope& m, here p, symbol g, symbol rate) const {
    const bool skips = if_not_finite == not_finite::skip && !m.owner().failed();
    update(m, p, g, rate, skips ? detail::emit_count_not_finite(g) : m.owner().nothing());
  }

 private:
  constexpr void train(const parameter_scope& m, symbol loss, const list<symbol>& parameters, const list<symbol>& computed,
                       symbol rate) const {
    builder& b = m.owner();
    const named_scope named(m, "optimizer");
    list<symbol> gradient = detail::gradients_on_wire(m, parameters, computed, wire);
    detail::shard_gradients(b, shard_state_over.view(), parameters, gradient);
    detail::check_settings(b, "adam", clip_norm, weight_decay);
    if (clip_norm > 0) gradient = clip_by_global_norm(gradient, clip_norm);
    const symbol skipped = detail::prepare_checks(loss, gradient, if_not_finite);
    for (std::size_t i = 0; i < parameters.size() && !b.failed(); ++i) update(m, parameters[i], gradient[i], rate, skipped);
  }
  constexpr void update(const parameter_scope& m, symbol p, symbol g, symbol rate, symbol skipped) const {
    builder& b = m.owner();
    const line_of_call kept(b);
    if (!detail::has_dims_of(p, g, "adam") || !b.has(rate)) return;
    const dtype type = gradient_type(p.get().type);
    if (!is_real(type)) return b.fail_type("adam", 0, type, reals);
    if (g.get().type != type) return b.fail_type("adam", 1, g.get().type, only(type));
    if (rate.get().type != type) return b.fail_type("adam", 2, rate.get().type, only(type));
    if (rate.rank() != 0) return b.fail(fault::not_a_scalar, "adam: rate", {}, 0, rate.rank());
    const symbol first = m.state("adam.m.", p), second = m.state("adam.v.", p);
    const detail::master_value master(m, p, "adam.rest.");
    if (b.failed()) return;
    const double decay = detail::weight_decay_of(p, weight_decay, decays);
    sharding_rule rule;
    const short_list all = detail::counting(p.rank());
    rule.set_operands({all, all, all, all, {}, {}});
    rule.set_results({all, all, all});
    const dim_list dims = p.get().dims;
    const std::array<std::int32_t, 6> operands{master.value().id, first.id, second.id, g.id, rate.id, skipped.id};
    b.add_node(op::adam, list_view(operands.data(), skipped.id >= 0 ? 6u : 5u), rule,
               {.if_not_finite = if_not_finite, .own = adam_attributes{beta1, beta2, epsilon, decay}},
               {{dims, type}, {dims, type}, {dims, type}});
    b.program.nodes.back().in_place = 3;
    const symbol next = b.result_of_last(0), next_first = b.result_of_last(1), next_second = b.result_of_last(2);
    b.set_updated(first, next_first);
    b.set_updated(second, next_second);
    for (const symbol& state : {first, second, next_first, next_second}) detail::shard_as(b, shard_state_over.view(), p, state);
    master.update(next, shard_state_over.view());
  }
};

}}  // namespace gshard::v0
