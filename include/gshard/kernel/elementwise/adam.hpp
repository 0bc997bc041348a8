// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Adam and AdamW: one optimizer step in place, in one pass over memory.

#include <gshard/kernel/threads.hpp>
#include <gshard/kernel/vector.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>

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
