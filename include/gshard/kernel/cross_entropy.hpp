// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/error.hpp>
#include <gshard/kernel/exponential.hpp>
#include <gshard/kernel/threads.hpp>
#include <gshard/kernel/vector.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

/// log(sum of exp(x)) in one pass: every lane has the largest number so far and the sum of exponentials relative to it.
template <class T>
T log_sum_exp(const T* x, std::int64_t cols) {
  constexpr std::int64_t width = lanes<T>;
  constexpr std::size_t block = 8;
  vector<T> top = vector<T>{} + std::numeric_limits<T>::lowest(), total{};
  const auto add = [&]<std::size_t N>(const vector<T>(&next)[N]) {
    vector<T> largest = top;
    for (const vector<T>& v : next) largest = larger(largest, v);
    total *= falling_exponential<T>(top - largest);
    for (const vector<T>& v : next) total += falling_exponential<T>(v - largest);
    top = largest;
  };
  std::int64_t i = 0;
  for (; i + std::int64_t(block) * width <= cols; i += std::int64_t(block) * width) {
    vector<T> next[block];
    for (std::size_t u = 0; u < block; ++u) next[u] = load<T>(x + i + std::int64_t(u) * width);
    add(next);
  }
  for (; i + width <= cols; i += width) add({load<T>(x + i)});
  if (i < cols) add({load_few<T>(x + i, cols - i, -std::numeric_limits<T>::infinity())});
  const vector<T> highest = across<T>(top, larger);
  return highest[0] + std::log(across<T>(total * falling_exponential<T>(top - highest), plus)[0]);
}

inline void check_label(std::int32_t label, std::int64_t row, std::int64_t cols) {
  if (label >= cols)
    throw error("cross_entropy: label " + std::to_string(label) + " of row " + std::to_string(row) +
                " is not one of " + std::to_string(cols) + " classes");
}

template <class T>
void cross_entropy_grad_row(const T* logits, std::int32_t label, T scale, T* dlogits, std::int64_t row, std::int64_t cols, T smoothing) {
  check_label(label, row, cols);
  if (label < 0) {
    std::fill_n(dlogits, cols, T(0));
    return;
  }
  const T log_sum = log_sum_exp(logits, cols), rest = smoothing / T(cols);
  const auto derivative = [=](const auto& x) { return scale * (falling_exponential<T>(x - log_sum) - rest); };
  std::int64_t j = 0;
  for (; j + lanes<T> <= cols; j += lanes<T>) store<T>(derivative(load<T>(logits + j)), dlogits + j);
  if (j < cols) store_few<T>(derivative(load_few<T>(logits + j, cols - j)), dlogits + j, cols - j);
  dlogits[label] -= scale * (1 - smoothing);
}

}  // namespace detail

/// loss[i] = -sum over classes of target * log_softmax(logits[i, :]), where the target is 1 - smoothing on
/// the label plus smoothing / cols on every class. Rows whose label is negative have loss 0. Throws
/// gshard::error for a label >= cols.
template <class T>
void cross_entropy(const T* logits, const std::int32_t* labels, T* loss, std::int64_t rows, std::int64_t cols,
                   T smoothing) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = logits + i * cols;
      detail::check_label(labels[i], i, cols);
      if (labels[i] < 0) {
        loss[i] = 0;
        continue;
      }
      const T target = (1 - smoothing) * row[labels[i]] + (smoothing == T(0) ? T(0) : smoothing / T(cols) * detail::sum(cols, row));
      loss[i] = detail::log_sum_exp(row, cols) - target;
    }
  });
}

/// dlogits[i, :] = dloss[i] * (softmax(logits[i, :]) - target); zero where the label is negative. In place if
/// dlogits == logits.
template <class T>
void cross_entropy_grad(const T* logits, const std::int32_t* labels, const T* dloss, T* dlogits,
                        std::int64_t rows, std::int64_t cols, T smoothing) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      detail::cross_entropy_grad_row(logits + i * cols, labels[i], dloss[i], dlogits + i * cols, i, cols, smoothing);
  });
}

}}}  // namespace gshard::v0::kernel
