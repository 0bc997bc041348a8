// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/error.hpp>
#include <gshard/kernel/exponential.hpp>
#include <gshard/kernel/vector.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
T log_sum_exp(const T* x, std::int64_t cols) {
  const T top = maximum(cols, x);
  const T s = sum_of<T>(cols, [=](auto at) {
    const auto difference = at(x) - top;
    if constexpr (sizeof(difference) == sizeof(T))
      return exponential(difference);
    else
      return vector_exponential<T>(difference);
  });
  return top + std::log(s);
}

inline void check_label(std::int32_t label, std::int64_t row, std::int64_t cols) {
  if (label >= cols)
    throw error("cross_entropy: label " + std::to_string(label) + " of row " + std::to_string(row) +
                " is not one of " + std::to_string(cols) + " classes");
}

}  // namespace detail

/// loss[i] = -sum over classes of target * log_softmax(logits[i, :]), where the target is 1 - smoothing on
/// the label plus smoothing / cols on every class. Rows whose label is negative have loss 0. Throws
/// gshard::error for a label >= cols.
template <class T>
void cross_entropy(const T* logits, const std::int32_t* labels, T* loss, std::int64_t rows, std::int64_t cols,
                   T smoothing) {
  for (std::int64_t i = 0; i < rows; ++i, logits += cols) {
    detail::check_label(labels[i], i, cols);
    if (labels[i] < 0) {
      loss[i] = 0;
      continue;
    }
    const T target = (1 - smoothing) * logits[labels[i]] +
                     (smoothing == T(0) ? T(0) : smoothing / T(cols) * detail::sum(cols, logits));
    loss[i] = detail::log_sum_exp(logits, cols) - target;
  }
}

/// dlogits[i, :] = dloss[i] * (softmax(logits[i, :]) - target); zero where the label is negative. In place if
/// dlogits == logits.
template <class T>
void cross_entropy_grad(const T* logits, const std::int32_t* labels, const T* dloss, T* dlogits,
                        std::int64_t rows, std::int64_t cols, T smoothing) {
  for (std::int64_t i = 0; i < rows; ++i, logits += cols, dlogits += cols) {
    detail::check_label(labels[i], i, cols);
    if (labels[i] < 0) {
      std::fill_n(dlogits, cols, T(0));
      continue;
    }
    const T log_sum = detail::log_sum_exp(logits, cols), scale = dloss[i], rest = smoothing / T(cols);
    for (std::int64_t j = 0; j < cols; ++j) dlogits[j] = scale * (exponential(logits[j] - log_sum) - rest);
    dlogits[labels[i]] -= scale * (1 - smoothing);
  }
}

}}}  // namespace gshard::v0::kernel
