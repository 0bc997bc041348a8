// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The Adam optimizer with decoupled weight decay (AdamW).

#include <gshard/base/list.hpp>
#include <gshard/grad/differentiate.hpp>
#include <gshard/optim/check_step.hpp>
#include <gshard/optim/gradient_wire.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/call.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Adam with decoupled weight decay, called inside a model:
/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, p -= rate (m^ / (sqrt(v^) + epsilon) + decay p), with the bias
/// corrections m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t), t = step of the run + 1.
struct adam {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;
  /// What happens if the loss, a gradient or an updated parameter is NaN or infinite. The kernels of the update check gradients and
  /// parameters. The loss is checked if the program returns it, or if steps may be skipped.
  not_finite if_not_finite = not_finite::stop;
  /// How gradients travel between devices: in bf16 they take half of the bytes.
  gradient_wire wire = gradient_wire::full;

  /// Appends the gradients of `loss` and the update of every trainable parameter. So one program is a complete training step. Parameters
  /// and moments are updated in place. `rate`: a scalar of the parameters' element type.
  /// Communicates: completes each gradient that is a partial sum, once. If steps may be skipped: also one number.
  constexpr void minimize(const parameter_scope& m, here loss, symbol rate) const {
    const list<symbol> parameters = trainable(m);
    const list<symbol> computed = detail::gradients_to_train(loss, parameters, "adam");
    const named_scope named(m, "optimizer");
    const list<symbol> gradient = detail::gradients_on_wire(m, parameters, computed, wire);
    const symbol skipped = detail::prepare_checks(loss, gradient, if_not_finite);
    for (std::size_t i = 0; i < parameters.size() && !m.owner().failed(); ++i) update(m, parameters[i], gradient[i], rate, skipped);
  }

  template <class... Given>
    requires(!detail::call<3, parameter_scope, symbol, symbol>::fits<Given...>)
  constexpr auto minimize(const Given&...) const {  // auto: refused before the model runs
    static_assert(detail::accepts<Given...>,
                  "gshard: adam{}.minimize(m, loss, rate) takes the first argument of the model, a loss, and a rate: a scalar "
                  "tensor, such as an input in<\"\">");
  }

  /// Appends the update of one parameter with the gradient g. It is skipped if g is not finite and the policy says so.
  constexpr void update(const parameter_scope& m, symbol p, symbol g, symbol rate) const {
    const bool skips = if_not_finite == not_finite::skip && !m.owner().failed();
    update(m, p, g, rate, skips ? detail::emit_count_not_finite(g) : m.owner().nothing());
  }

 private:
  constexpr void update(const parameter_scope& m, symbol p, symbol g, symbol rate, symbol skipped) const {
    builder& b = m.owner();
    if (!detail::require_real(b, "adam", {p, g, rate})) return;
    if (rate.rank() != 0) return b.fail(fault::not_a_scalar, "adam: rate", {}, 0, rate.rank());
    const symbol first = m.state("adam.m.", p), second = m.state("adam.v.", p);
    if (b.failed()) return;
    sharding_rule rule;
    const short_list all = detail::counting(p.rank());
    rule.set_operands({all, all, all, all, {}, {}});
    rule.set_results({all, all, all});
    const dim_list dims = p.get().dims;
    const dtype type = p.get().type;
    const std::array<std::int32_t, 6> operands{p.id, first.id, second.id, g.id, rate.id, skipped.id};
    b.add_node(op::adam, list_view(operands.data(), skipped.id >= 0 ? 6u : 5u), rule,
               {.if_not_finite = if_not_finite, .epsilon = epsilon, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay},
               {{dims, type}, {dims, type}, {dims, type}});
    b.program.nodes.back().in_place = 3;
    b.set_updated(p, b.result_of_last(0));
    b.set_updated(first, b.result_of_last(1));
    b.set_updated(second, b.result_of_last(2));
  }
};

}}  // namespace gshard::v0
