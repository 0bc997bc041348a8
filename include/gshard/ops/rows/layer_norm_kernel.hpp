// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of layer normalization and its gradient.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/ops/rows/layer_norm.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

/// Mean and 1 / sqrt(variance + eps) of a row.
template <class T>
struct row_moments {
  T mean, scale;

  row_moments(const T* x, std::int64_t cols, T eps) {
    const T m = sum(cols, x) / T(cols);
    const T square = sum_of<T>(cols, [=](auto at) { return (at(x) - m) * (at(x) - m); });
    mean = m;
    scale = 1 / std::sqrt(square / T(cols) + eps);
  }
};

/// layer_norm_grad for some rows, one after another. Adds to dgamma and dbeta.
template <class T>
void layer_norm_grad_rows(const T* x, const T* gamma, const T* dy, T* __restrict dx, T* __restrict dgamma, T* __restrict dbeta,
                          std::int64_t rows, std::int64_t cols, T eps) {
  for (std::int64_t i = 0; i < rows; ++i, x += cols, dy += cols, dx += cols) {
    const row_moments<T> moments(x, cols, eps);
    const auto [mean, scale] = moments;
    const T d_mean = dot(cols, gamma, dy) / T(cols);
    const T hd_mean = scale / T(cols) * sum_of<T>(cols, [=, m = mean](auto at) {
                        return (at(x) - m) * at(gamma) * at(dy);
                      });
    for (std::int64_t j = 0; j < cols; ++j) {
      const T h = (x[j] - mean) * scale;
      dgamma[j] += h * dy[j];
      dbeta[j] += dy[j];
      dx[j] = scale * (gamma[j] * dy[j] - d_mean - h * hd_mean);
    }
  }
}

}  // namespace detail

/// y = gamma * (x - mean) / sqrt(variance + eps) + beta over `rows` contiguous rows. gamma and beta have `cols` elements. In place if y ==
/// x.
template <class T>
void layer_norm(const T* x, const T* gamma, const T* beta, T* y, std::int64_t rows, std::int64_t cols,
                T eps) {
  parallel_rows(rows, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const from = x + i * cols;
      T* const to = y + i * cols;
      const detail::row_moments<T> moments(from, cols, eps);
      const auto [mean, scale] = moments;
      for (std::int64_t j = 0; j < cols; ++j) to[j] = (from[j] - mean) * scale * gamma[j] + beta[j];
    }
  });
}

/// The derivatives of layer_norm. With h = (x - mean) / sqrt(variance + eps) and d = gamma * dy:
///   dx = (d - mean(d) - h * mean(h * d)) / sqrt(variance + eps)
/// dgamma and dbeta are overwritten by the sums of h * dy and of dy over the rows.
template <class T>
void layer_norm_grad(const T* x, const T* gamma, const T* dy, T* __restrict dx, T* __restrict dgamma,
                     T* __restrict dbeta, std::int64_t rows, std::int64_t cols, T eps) {
  // Blocks of rows are summed separately and then added in order. The number of blocks depends on `rows` alone.
  constexpr std::int64_t most = 16, least_rows = 64;
  const std::int64_t blocks = std::clamp<std::int64_t>(rows / least_rows, 1, most);
  thread_local std::vector<T> scratch;
  scratch.assign(std::size_t(2 * blocks * cols), T(0));
  T* const sums = scratch.data();  // of the calling thread
  parallel_rows(blocks, rows / blocks * cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = rows * b / blocks, last = rows * (b + 1) / blocks;
      detail::layer_norm_grad_rows(x + first * cols, gamma, dy + first * cols, dx + first * cols, sums + 2 * b * cols,
                                   sums + (2 * b + 1) * cols, last - first, cols, eps);
    }
  });
  std::copy_n(sums, cols, dgamma);
  std::copy_n(sums + cols, cols, dbeta);
  for (std::int64_t b = 1; b < blocks; ++b)
    for (std::int64_t j = 0; j < cols; ++j) {
      dgamma[j] += sums[2 * b * cols + j];
      dbeta[j] += sums[(2 * b + 1) * cols + j];
    }
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::layer_norm>, const local_step<T>& step) {
  return [x = step.in(0), gamma = step.in(1), beta = step.in(2), y = step.out(), rows = step.rows(), cols = step.cols(),
          epsilon = T(own<layer_norm_attributes>(step.n).epsilon)](const run_context&) {
    kernel::layer_norm<T>(x, gamma, beta, y, rows, cols, epsilon);
  };
}

template <class T>
action bind(kernel_of<op::layer_norm_grad>, const local_step<T>& step) {
  return [x = step.in(0), gamma = step.in(1), dy = step.in(2), dx = step.out(0), dgamma = step.out(1), dbeta = step.out(2),
          rows = step.rows(), cols = step.cols(), epsilon = T(own<layer_norm_attributes>(step.n).epsilon)](const run_context&) {
    kernel::layer_norm_grad<T>(x, gamma, dy, dx, dgamma, dbeta, rows, cols, epsilon);
  };
}

}}}  // namespace gshard::v0::detail
