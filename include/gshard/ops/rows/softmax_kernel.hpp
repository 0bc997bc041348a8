// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of softmax and its gradient.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
vector<T> lane_numbers() {
  vector<T> v{};
  for (std::size_t l = 0; l < std::size_t(lanes<T>); ++l) v[l] = T(l);
  return v;
}

/// Lanewise maxima of the first n elements, with n rounded up to complete vectors.
template <class T>
vector<T> maxima(std::int64_t n, const T* x) {
  constexpr std::int64_t width = lanes<T>;
  vector<T> even = vector<T>{} - std::numeric_limits<T>::infinity(), odd = even;
  std::int64_t j = 0;
  for (; j + width < n; j += 2 * width) {
    even = larger_number(even, load<T>(x + j));
    odd = larger_number(odd, load<T>(x + j + width));
  }
  if (j < n) even = larger_number(even, load<T>(x + j));
  return larger_number(even, odd);
}

/// y = exp(x - max(x)) for a row of at least one vector. The last vector of the row overlaps the one before it.
template <class T>
struct exponential_row {
  T top, sum;

  exponential_row(const T* x, T* y, std::int64_t cols) {
    constexpr std::int64_t width = lanes<T>;
    const std::int64_t last = cols - width, overlap = (width - cols % width) % width;
    vector<T> end = load<T>(x + last);
    const vector<T> tops = across<T>(larger_number(end, maxima(last, x)), larger_number);
    vector<T> total{};
    for (std::int64_t j = 0; j < last; j += width) {
      const vector<T> e = falling_exponential<T>(load<T>(x + j) - tops);
      total += e;
      store<T>(e, y + j);
    }
    end = falling_exponential<T>(end - tops);
    store<T>(end, y + last);
    top = tops[0];
    sum = across<T>(total + (lane_numbers<T>() < T(overlap) ? vector<T>{} : end), plus)[0];
  }
};

// Several short rows in each vector.
template <std::size_t Cols, class T>
vector<T> softmax_groups(const vector<T>& x) {
  const vector<T> e = falling_exponential<T>(x - across<T, Cols>(x, larger_number));
  return e / across<T, Cols>(e, plus);
}

template <std::size_t Cols, class T>
void softmax_short_rows(const T* x, T* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store<T>(softmax_groups<Cols, T>(load<T>(x + i)), y + i);
  if (i == n) return;
  store_few<T>(softmax_groups<Cols, T>(load_few<T>(x + i, n - i)), y + i, n - i);
}

// Rows shorter than a vector, each padded to a full one. Works in blocks, because reading a vector right after writing its parts stalls.
template <class T>
void softmax_padded_rows(const T* x, T* y, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t block = 32;
  constexpr auto width = std::size_t(lanes<T>);
  T in[std::size_t(block)][width], out[std::size_t(block)][width];
  for (auto& row : in) std::fill_n(row, width, -std::numeric_limits<T>::infinity());
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t n = std::min(block, rows - first);
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(x + (first + i) * cols, cols, in[i]);
    for (std::int64_t i = 0; i < n; ++i) store<T>(softmax_groups<width, T>(load<T>(in[i])), out[i]);
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(out[i], cols, y + (first + i) * cols);
  }
}

template <class T, std::size_t Cols = std::size_t(lanes<T>)>
void softmax_few_cols(const T* x, T* y, std::int64_t rows, std::int64_t cols) {
  if (cols == std::int64_t(Cols))
    softmax_short_rows<Cols>(x, y, rows * cols);
  else if constexpr (Cols > 1)
    softmax_few_cols<T, Cols / 2>(x, y, rows, cols);
  else
    softmax_padded_rows(x, y, rows, cols);
}

template <std::size_t Cols, class T>
vector<T> softmax_grad_groups(const vector<T>& y, const vector<T>& dy) {
  return y * (dy - across<T, Cols>(y * dy, plus));
}

template <class T, std::size_t Cols = std::size_t(lanes<T>)>
void softmax_grad_few_cols(const T* y, const T* dy, T* dx, std::int64_t rows, std::int64_t cols) {
  if constexpr (Cols > 1)
    if (cols < std::int64_t(Cols)) return softmax_grad_few_cols<T, Cols / 2>(y, dy, dx, rows, cols);
  const std::int64_t n = rows * cols;
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store<T>(softmax_grad_groups<Cols, T>(load<T>(y + i), load<T>(dy + i)), dx + i);
  if (i < n) store_few<T>(softmax_grad_groups<Cols, T>(load_few<T>(y + i, n - i), load_few<T>(dy + i, n - i)), dx + i, n - i);
}

}  // namespace detail

/// y[i, :] = exp(x[i, :]) / sum(exp(x[i, :])) for `rows` contiguous rows. In place if y == x. A row with NaN or +inf, or with -inf only,
/// becomes NaN.
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t cols) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    if (cols <= detail::lanes<T>) return detail::softmax_few_cols(x + begin * cols, y + begin * cols, end - begin, cols);
    for (std::int64_t i = begin; i < end; ++i) {
      T* const row = y + i * cols;
      const T scale = 1 / detail::exponential_row<T>(x + i * cols, row, cols).sum;
      for (std::int64_t j = 0; j < cols; ++j) row[j] *= scale;
    }
  });
}

/// dx = y * (dy - <y, dy>), row by row, where y = softmax(x). In place if dx == dy.
template <class T>
void softmax_grad(const T* y, const T* dy, T* dx, std::int64_t rows, std::int64_t cols) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    if (cols <= detail::lanes<T> && std::has_single_bit(std::uint64_t(cols)))
      return detail::softmax_grad_few_cols(y + begin * cols, dy + begin * cols, dx + begin * cols, end - begin, cols);
    for (std::int64_t i = begin * cols; i < end * cols; i += cols) {
      const T mean = detail::dot(cols, y + i, dy + i);
      for (std::int64_t j = i; j < i + cols; ++j) dx[j] = y[j] * (dy[j] - mean);
    }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::softmax>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), rows = step.rows(), cols = step.cols()](const run_context&) {
    kernel::softmax<T>(x, y, rows, cols);
  };
}

template <class T>
action bind(kernel_of<op::softmax_grad>, const local_step<T>& step) {
  return [y = step.in(0), dy = step.in(1), dx = step.out(), rows = step.rows(), cols = step.cols()](const run_context&) {
    kernel::softmax_grad<T>(y, dy, dx, rows, cols);
  };
}

}}}  // namespace gshard::v0::detail
