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
/// Returns true if all p and v are finite afterwards. Then all g were.
template <class T>
bool adam(T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v, std::int64_t n, double lr,
          double beta1, double beta2, double eps, double weight_decay, std::int64_t step) {
  const T keep1 = T(beta1), take1 = T(1 - beta1), keep2 = T(beta2), take2 = T(1 - beta2);
  const T scale1 = T(lr / (1 - std::pow(beta1, double(step)))),
          scale2 = T(1 / (1 - std::pow(beta2, double(step))));
  const T decay = T(1 - lr * weight_decay), small = T(eps);
  // 0 for numbers, NaN for others.
  const auto at = [=](std::int64_t i, auto load, auto store) {
    const auto gradient = load(g + i);
    const auto mean = keep1 * load(m + i) + take1 * gradient;
    const auto square = keep2 * load(v + i) + take2 * gradient * gradient;
    store(mean, m + i);
    store(square, v + i);
    const auto next = decay * load(p + i) - scale1 * mean / (detail::vector_square_root<T>(scale2 * square) + small);
    store(next, p + i);
    return (next - next) + (square - square);
  };
  constexpr std::int64_t width = detail::lanes<T>;
  const std::int64_t whole = n / width * width, rest = n - whole;
  std::atomic<bool> finite = true;
  const auto add = [&finite](const detail::vector<T>& zeros) {
    if (detail::across<T>(zeros, detail::plus)[0] != T(0)) finite.store(false, std::memory_order_relaxed);
  };
  parallel_rows(n / width, width, [=](std::int64_t begin, std::int64_t end) {
    detail::vector<T> zeros{};
    for (std::int64_t i = begin * width; i < end * width; i += width) zeros += at(i, detail::load<T>, detail::store<T>);
    add(zeros);
  });
  if (rest > 0)
    add(at(
        whole, [=](const T* from) { return detail::load_few<T>(from, rest); },
        [=](const detail::vector<T>& x, T* to) { detail::store_few<T>(x, to, rest); }));
  return finite;
}

}}}  // namespace gshard::v0::kernel
