// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of the cross entropy, its gradient, and its blocks of classes.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace gshard { inline namespace v0 { namespace kernel {

/// The local classes: `here` contiguous ones of `total`, from `first` on.
struct class_range {
  std::int64_t first = 0, here = 0, total = 0;
};

namespace detail {

/// log(sum of exp(x)) in one pass. Every lane has its largest number so far, and the sum of exponentials relative to it. The result is +inf
/// if an element is +inf, -inf if all elements are -inf or there is none, NaN if an element is NaN.
template <class T>
T log_sum_exp(const T* x, std::int64_t cols) {
  constexpr std::int64_t width = lanes<T>;
  constexpr std::size_t block = 8;
  vector<T> top = vector<T>{} + std::numeric_limits<T>::lowest(), total{};
  const auto add = [&]<std::size_t N>(const vector<T>(&next)[N]) {
    vector<T> largest = top;
    for (const vector<T>& v : next) largest = larger_number(largest, v);
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
  const vector<T> highest = across<T>(top, larger_number);
  const T result = highest[0] + std::log(across<T>(total * falling_exponential<T>(top - highest), plus)[0]);
  return result == result ? result : maximum(cols, x);  // +inf or NaN
}

inline void check_label(std::int32_t label, std::int64_t row, std::int64_t cols) {
  if (label >= cols)
    throw error("cross_entropy: label " + std::to_string(label) + " of row " + std::to_string(row) +
                " is not one of " + std::to_string(cols) + " classes");
}

/// The local classes' part of the sum of target * logits[i, :].
template <class T>
T target_part(const T* logits, std::int32_t label, const class_range& classes, T smoothing) {
  const std::int64_t at = label - classes.first;
  const T own = at >= 0 && at < classes.here ? (1 - smoothing) * logits[at] : T(0);
  return own + (smoothing == T(0) ? T(0) : smoothing / T(classes.total) * sum(classes.here, logits));
}

template <class T>
void cross_entropy_grad_row(const T* logits, std::int32_t label, T scale, T log_sum, T* dlogits, const class_range& classes, T smoothing) {
  const T rest = smoothing / T(classes.total);
  const auto derivative = [=](const auto& x) { return scale * (falling_exponential<T>(x - log_sum) - rest); };
  const std::int64_t cols = classes.here, at = label - classes.first;
  std::int64_t j = 0;
  for (; j + lanes<T> <= cols; j += lanes<T>) store<T>(derivative(load<T>(logits + j)), dlogits + j);
  if (j < cols) store_few<T>(derivative(load_few<T>(logits + j, cols - j)), dlogits + j, cols - j);
  if (at >= 0 && at < cols) dlogits[at] -= scale * (1 - smoothing);
}

}  // namespace detail

/// loss[i] = -sum over classes of target * log_softmax(logits[i, :]). The target is 1 - smoothing on the label, plus smoothing / cols on
/// every class. Rows with a negative label have loss 0, whatever their logits are. A logit of +inf makes the loss +inf, or NaN if the
/// target includes its class. A NaN makes it NaN. Throws gshard::error for a label >= cols.
template <class T>
void cross_entropy(const T* logits, const std::int32_t* labels, T* loss, std::int64_t rows, std::int64_t cols,
                   T smoothing) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = logits + i * cols;
      detail::check_label(labels[i], i, cols);
      if (labels[i] < 0) loss[i] = 0;
      else loss[i] = detail::log_sum_exp(row, cols) - detail::target_part<T>(row, labels[i], {0, cols, cols}, smoothing);
    }
  });
}

/// One device's contributions to the loss of a row: log(sum exp) over its classes, and its part of the sum of target * logits. The loss is
/// log(sum exp(log_sum[i])) - sum target[i], over the devices. For rows with a negative label, log_sum is 0 in block 0 and -infinity in the
/// others. Throws as cross_entropy does.
template <class T>
void block_cross_entropy(const T* logits, const std::int32_t* labels, T* log_sum, T* target, std::int64_t rows, class_range classes,
                         T smoothing, std::int64_t block) {
  parallel_rows(rows, classes.here, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = logits + i * classes.here;
      detail::check_label(labels[i], i, classes.total);
      const bool counts = labels[i] >= 0;
      log_sum[i] = counts ? detail::log_sum_exp(row, classes.here) : block == 0 ? T(0) : -std::numeric_limits<T>::infinity();
      target[i] = counts ? detail::target_part(row, labels[i], classes, smoothing) : T(0);
    }
  });
}

/// dlogits[i, :] = dloss[i] * (softmax(logits[i, :]) - target) of the local classes; zero if the label is negative. In place if dlogits ==
/// logits. log_sum: log(sum exp(logits[i, :])) over all classes; null if all classes are local.
template <class T>
void cross_entropy_grad(const T* logits, const std::int32_t* labels, const T* dloss, const T* log_sum, T* dlogits, std::int64_t rows,
                        class_range classes, T smoothing) {
  const std::int64_t cols = classes.here;
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = logits + i * cols;
      detail::check_label(labels[i], i, classes.total);
      if (labels[i] < 0) std::fill_n(dlogits + i * cols, cols, T(0));
      else
        detail::cross_entropy_grad_row(row, labels[i], dloss[i], log_sum ? log_sum[i] : detail::log_sum_exp(row, cols), dlogits + i * cols,
                                       classes, smoothing);
    }
  });
}
template <class T>
void cross_entropy_grad(const T* logits, const std::int32_t* labels, const T* dloss, T* dlogits, std::int64_t rows, std::int64_t cols,
                        T smoothing) {
  cross_entropy_grad<T>(logits, labels, dloss, nullptr, dlogits, rows, {0, cols, cols}, smoothing);
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::cross_entropy>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), loss = step.out(), rows = step.rows(), cols = step.cols(),
          smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::cross_entropy<T>(logits, labels, loss, rows, cols, smoothing);
  };
}

template <class T>
action bind(kernel_of<op::cross_entropy_grad>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), dloss = step.in(2), log_sum = step.in_or_null(3), dlogits = step.out(),
          l = step.last_line(step.in_value(0)), smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::cross_entropy_grad<T>(logits, labels, dloss, log_sum, dlogits, l.outer, {l.first, l.n, l.whole}, smoothing);
  };
}

template <class T>
action bind(kernel_of<op::block_cross_entropy>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), log_sum = step.out(0), target = step.out(1), l = step.last_line(step.in_value(0)),
          block = step.last_line(step.out_value(0)).first,
          smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::block_cross_entropy<T>(logits, labels, log_sum, target, l.outer, {l.first, l.n, l.whole}, smoothing, block);
  };
}

}}}  // namespace gshard::v0::detail
