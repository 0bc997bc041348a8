// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernel of an update by Adam.

#include <gshard/exec/bind/checked_shard.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/train/adam.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// One step of Adam with decoupled weight decay (AdamW), in place, in one pass over memory, with step >= 1:
///   m = beta1 * m + (1 - beta1) * g
///   v = beta2 * v + (1 - beta2) * g^2
///   p -= lr * ((m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps) + weight_decay * p)
/// Returns true if all p and v are finite afterwards; then all g were. Also returns false if the sum of all p and v overflows.
template <class T>
bool adam(T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v, std::int64_t n, double lr,
          double beta1, double beta2, double eps, double weight_decay, std::int64_t step) {
  const T keep1 = T(beta1), take1 = T(1 - beta1), keep2 = T(beta2), take2 = T(1 - beta2);
  const T scale1 = T(lr / (1 - std::pow(beta1, double(step)))),
          scale2 = T(1 / (1 - std::pow(beta2, double(step))));
  const T decay = T(1 - lr * weight_decay), small = T(eps);
  // A sum of numbers that are not finite is not finite.
  const auto at = [=](std::int64_t i, detail::vector<T>& sum, auto load, auto store) {
    const auto gradient = load(g + i);
    const auto mean = keep1 * load(m + i) + take1 * gradient;
    const auto square = keep2 * load(v + i) + take2 * gradient * gradient;
    store(mean, m + i);
    store(square, v + i);
    const auto next = decay * load(p + i) - scale1 * mean / (detail::vector_square_root<T>(scale2 * square) + small);
    store(next, p + i);
    sum += square + next;
  };
  constexpr std::int64_t width = detail::lanes<T>;
  const std::int64_t whole = n / width * width, rest = n - whole;
  std::atomic<bool> finite = true;
  const auto check = [&finite](const detail::vector<T>& sum) {
    if (!std::isfinite(detail::across<T>(sum, detail::plus)[0])) finite.store(false, std::memory_order_relaxed);
  };
  parallel_rows(n / width, width, [=](std::int64_t begin, std::int64_t end) {
    detail::vector<T> sum{};
    for (std::int64_t i = begin * width; i < end * width; i += width) at(i, sum, detail::load<T>, detail::store<T>);
    check(sum);
  });
  if (rest > 0) {
    detail::vector<T> sum{};
    at(
        whole, sum, [=](const T* from) { return detail::load_few<T>(from, rest); },
        [=](const detail::vector<T>& x, T* to) { detail::store_few<T>(x, to, rest); });
    check(sum);
  }
  return finite;
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// An update checks its results. If one is not finite, it looks for the cause: first in the gradient.
template <class T>
action bind(kernel_of<op::adam>, const local_step<T>& step) {
  const std::string name = "parameter \"" + std::string(updated_name(step.n, step.plan.plan)) + "\"";
  return [p = step.out(0), m = step.out(1), v = step.out(2), g = step.in(3), rate = step.in(4), skipped = step.in_or_null(5),
          count = step.out_elements(), a = own<adam_attributes>(step.n), checks = step.n.attr.if_not_finite != not_finite::ignore,
          gradient = checked(step, step.in_value(3), "adam: the gradient of " + name),
          updated = checked(step, step.out_value(0), "adam: " + name + " after its update"),
          square = checked(step, step.out_value(2), "adam: the second moment of " + name)](const run_context& run) {
    if (skipped && *skipped != T(0)) return;
    const bool finite =
        kernel::adam<T>(p, g, m, v, count, double(*rate), a.beta1, a.beta2, a.epsilon, a.weight_decay, std::int64_t(run.step) + 1);
    if (!finite && checks) gradient.report(run) || updated.report(run) || square.report(run);
  };
}

}}}  // namespace gshard::v0::detail
