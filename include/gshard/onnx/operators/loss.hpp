// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's losses of class indices, and the updates of its optimizers.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/onnx/operators/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// The negative log likelihood of classes. `log_probabilities`: [N, C, ...]. The target is input 1, [N, ...]; the weights are input 2.
inline symbol likelihood_loss(node_call& n, symbol log_probabilities) {
  const std::string how = n.text("reduction", "mean");
  if (how != "none" && how != "sum" && how != "mean") n.refuse("reduction");
  const bool ignores = n.states("ignore_index");
  const std::int64_t ignored = n.integer("ignore_index", 0);
  const std::int64_t classes = extents_of(log_probabilities)[1];
  symbol target = n.tensor(1);
  if (target.get().type != dtype::i32) target = checked(cast(target, dtype::i32));
  // A row of probabilities for each place, in which the class is looked up.
  const symbol rows = moved_dim(log_probabilities, 1, log_probabilities.rank() - 1);
  symbol valid{};
  symbol ids = target;
  if (ignores) {
    const symbol bad = equals(target, scalar_like(target, double(ignored)));
    valid = checked(cast(difference(scalar_like(target, 1), bad), log_probabilities.get().type));
    ids = chosen(bad, scalar_like(target, 0), target);
  }
  const symbol hit = equals(with_dim(ids, ids.rank()), index_along(n.program(), {classes}, 0));
  const symbol of_class = checked(cast(hit, rows.get().type));
  symbol loss = scaled(summed(chosen(of_class, rows, scalar_like(rows, 0)), {rows.rank() - 1}, false), -1);
  symbol weight{};
  if (n.has(2)) weight = summed(product(of_class, n.real(2)), {rows.rank() - 1}, false);
  if (ignores) weight = weight.id < 0 ? valid : product(weight, valid);
  if (weight.id >= 0) loss = ignores ? chosen(valid, product(loss, weight), scalar_like(loss, 0)) : product(loss, weight);
  if (how == "none") return loss;
  const symbol total = summed(loss, all_dims(loss.rank()), false);
  if (how == "sum") return total;
  if (weight.id < 0) return scaled(total, 1 / double(elements_of(loss)));
  return quotient(total, summed(weight, all_dims(weight.rank()), false));
}
inline void negative_log_likelihood(node_call& n) {
  const symbol x = n.real(0);
  n.set(0, likelihood_loss(n, x), n.type(0));
}
inline void softmax_cross_entropy(node_call& n) {
  const symbol logs = log_softmax_over(n.real(0), {1});
  n.set(0, likelihood_loss(n, logs), n.type(0));
  n.set(1, logs, n.type(0));
}

/// The number of tensors that an optimizer of ONNX trains. Its inputs are the rate, the step, then each list of as many tensors.
inline std::size_t trained(node_call& n, std::size_t lists) {
  if (n.inputs() < 2 || (n.inputs() - 2) % lists != 0) throw error("has " + std::to_string(n.inputs()) + " inputs");
  return (n.inputs() - 2) / lists;
}
inline void momentum(node_call& n) {
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0), norm = n.real("norm_coefficient", 0);
  const std::string mode = n.text("mode", "");
  if (mode != "standard" && mode != "nesterov") n.refuse("mode");
  const std::size_t count = trained(n, 3);
  const symbol rate = n.real(0), step = checked(cast(n.tensor(1), rate.get().type));
  const symbol adjusted = chosen(equals(step, scalar_like(step, 0)), scalar_like(step, 1), scalar_like(step, beta));
  for (std::size_t i = 0; i < count; ++i) {
    const symbol x = n.real(2 + i), gradient = sum_of(n.real(2 + count + i), scaled(x, norm)), v = n.real(2 + 2 * count + i);
    const symbol next = sum_of(scaled(v, alpha), product(adjusted, gradient));
    const symbol along = mode == "standard" ? next : sum_of(gradient, scaled(next, alpha));
    n.set(i, difference(x, product(rate, along)), n.type(2 + i));
    n.set(count + i, next, n.type(2 + i));
  }
}
inline void adagrad(node_call& n) {
  const double epsilon = n.real("epsilon", 1e-6), decay = n.real("decay_factor", 0), norm = n.real("norm_coefficient", 0);
  const std::size_t count = trained(n, 3);
  const symbol rate = n.real(0), step = checked(cast(n.tensor(1), rate.get().type));
  const symbol r = quotient(rate, sum_of(scaled(step, decay), scalar_like(step, 1)));
  for (std::size_t i = 0; i < count; ++i) {
    const symbol x = n.real(2 + i), gradient = sum_of(n.real(2 + count + i), scaled(x, norm)), h = n.real(2 + 2 * count + i);
    const symbol next = sum_of(h, product(gradient, gradient));
    const symbol deviation = sum_of(mapped<functions::sqrt{}, 1>({next}), scalar_like(next, epsilon));
    n.set(i, difference(x, quotient(product(r, gradient), deviation)), n.type(2 + i));
    n.set(count + i, next, n.type(2 + i));
  }
}
inline void adam_update(node_call& n) {
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999), epsilon = n.real("epsilon", 1e-6);
  const double norm = n.real("norm_coefficient", 0), norm_after = n.real("norm_coefficient_post", 0);
  const std::size_t count = trained(n, 4);
  const symbol rate = n.real(0), step = checked(cast(n.tensor(1), rate.get().type));
  const auto rest = [&](double base) {  // 1 - base^step
    return difference(scalar_like(step, 1), mapped<functions::power{}, 2>({scalar_like(step, base), step}));
  };
  const symbol corrected = quotient(product(rate, mapped<functions::sqrt{}, 1>({rest(beta)})), rest(alpha));
  const symbol adjusted = chosen(less_than(scalar_like(step, 0), step), corrected, rate);
  for (std::size_t i = 0; i < count; ++i) {
    const symbol x = n.real(2 + i), gradient = sum_of(n.real(2 + count + i), scaled(x, norm));
    const symbol v = sum_of(scaled(n.real(2 + 2 * count + i), alpha), scaled(gradient, 1 - alpha));
    const symbol h = sum_of(scaled(n.real(2 + 3 * count + i), beta), scaled(product(gradient, gradient), 1 - beta));
    const symbol deviation = sum_of(mapped<functions::sqrt{}, 1>({h}), scalar_like(h, epsilon));
    const symbol next = difference(x, quotient(product(adjusted, v), deviation));
    n.set(i, scaled(next, 1 - norm_after), n.type(2 + i));
    n.set(count + i, v, n.type(2 + i));
    n.set(2 * count + i, h, n.type(2 + i));
  }
}

inline constexpr std::string_view training = "ai.onnx.preview.training";
inline constexpr operator_row losses[]{
    {"Adagrad", adagrad, training},
    {"Adam", adam_update, training},
    {"Momentum", momentum, training},
    {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}}}}  // namespace gshard::v0::onnx::operators
