// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/kernel/vector.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

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

}  // namespace detail

/// y = gamma * (x - mean) / sqrt(variance + eps) + beta over `rows` contiguous rows; gamma and beta have
/// `cols` elements. In place if y == x.
template <class T>
void layer_norm(const T* x, const T* gamma, const T* beta, T* y, std::int64_t rows, std::int64_t cols,
                T eps) {
  for (std::int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const detail::row_moments<T> moments(x, cols, eps);
    const auto [mean, scale] = moments;
    for (std::int64_t j = 0; j < cols; ++j) y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
  }
}

/// The derivatives of layer_norm: with h = (x - mean) / sqrt(variance + eps) and d = gamma * dy,
/// dx = (d - mean(d) - h * mean(h * d)) / sqrt(variance + eps); dgamma and dbeta are overwritten by the sums
/// of h * dy and of dy over the rows.
template <class T>
void layer_norm_grad(const T* x, const T* gamma, const T* dy, T* __restrict dx, T* __restrict dgamma,
                     T* __restrict dbeta, std::int64_t rows, std::int64_t cols, T eps) {
  std::fill_n(dgamma, cols, T(0));
  std::fill_n(dbeta, cols, T(0));
  for (std::int64_t i = 0; i < rows; ++i, x += cols, dy += cols, dx += cols) {
    const detail::row_moments<T> moments(x, cols, eps);
    const auto [mean, scale] = moments;
    const T d_mean = detail::dot(cols, gamma, dy) / T(cols);
    const T hd_mean = scale / T(cols) * detail::sum_of<T>(cols, [=, m = mean](auto at) {
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

}}}  // namespace gshard::v0::kernel
