// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's operators on signals: windows, and Fourier transforms as products with known matrices.

#include <gshard/core/trace/einsum.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/ops/window/pad.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// A window of a known size: a - b cos(2 pi t) + c cos(4 pi t).
inline void cosine_window(node_call& n, double a, double b, double c) {
  const std::int64_t size = n.known(0).integer(0);
  const bool periodic = n.integer("periodic", 1) != 0;
  const element type = n.states("output_datatype") ? element_of(n.integer("output_datatype")) : element::f32;
  if (!is_float(type)) n.refuse("output_datatype");
  if (size < 0 || size > most_known) throw error("makes a window of " + std::to_string(size) + " numbers");
  constant w = empty_like(type, {size});
  const double period = double(periodic ? size : size - 1);
  for (std::int64_t i = 0; i < size; ++i) {
    const double turn = 2 * std::numbers::pi * double(i) / period;
    w.reals.push_back(rounded(type, a - b * std::cos(turn) + c * std::cos(2 * turn)));
  }
  n.set(0, w);
}

/// The discrete Fourier transform along a dim of a tensor whose last dim has the real part, and maybe the imaginary part.
inline symbol fourier(node_call& n, symbol x, int at, std::int64_t length, bool inverse, bool one_sided) {
  constexpr std::int64_t most = 1 << 12;  // of a dense matrix
  if (length < 1 || length > most)
    throw error("transforms " + std::to_string(length) + " elements; gshard transforms at most " + std::to_string(most));
  const int last = x.rank() - 1;
  const std::int64_t own = extents_of(x)[std::size_t(at)], parts = extents_of(x)[std::size_t(last)];
  if (parts != 1 && parts != 2) throw error("has a last dim of " + std::to_string(parts) + ", and not of a real or a complex number");
  if (own > length) x = sliced(x, at, 0, length);
  if (own < length) x = checked(pad(x, at, 0, int(length - own)));
  const std::int64_t frequencies = one_sided ? length / 2 + 1 : length;
  std::vector<double> cosines, sines;
  for (std::int64_t k = 0; k < frequencies; ++k)
    for (std::int64_t t = 0; t < length; ++t) {
      const double turn = 2 * std::numbers::pi * double(k * t % length) / double(length);
      cosines.push_back(std::cos(turn) * (inverse ? 1 / double(length) : 1));
      sines.push_back(std::sin(turn) * (inverse ? -1 / double(length) : 1));
    }
  const dtype type = x.get().type;
  const symbol by_cosine = real_tensor(n.state(), cosines, {frequencies, length}, type);
  const symbol by_sine = real_tensor(n.state(), sines, {frequencies, length}, type);
  const std::string letters = letters_of(last);
  std::string to = letters;
  to[std::size_t(at)] = 'z';
  const std::string text = letters + ",z" + letters[std::size_t(at)] + "->" + to;
  const auto part = [&](std::int64_t i) { return without_dim(sliced(x, last, i, i + 1), last); };
  const auto transformed = [&](symbol s, symbol matrix) { return checked(einsum(text, {s, matrix})); };
  const symbol real = part(0);
  symbol re = transformed(real, by_cosine), im = scaled(transformed(real, by_sine), -1);
  if (parts == 2) {
    const symbol imaginary = part(1);
    re = sum_of(re, transformed(imaginary, by_sine));
    im = sum_of(im, transformed(imaginary, by_cosine));
  }
  return joined({with_dim(re, last), with_dim(im, last)}, last);
}
inline void dft(node_call& n) {
  const symbol x = n.real(0);
  const int at = node_call::dim(n.has(2) ? n.known(2).integer(0) : n.integer("axis", n.opset() < 20 ? 1 : -2), n.rank(0));
  if (at == n.rank(0) - 1) throw error("has an axis that is the last dim");
  const std::int64_t length = n.has(1) ? n.known(1).integer(0) : n.extents(0)[std::size_t(at)];
  const bool inverse = n.integer("inverse", 0) != 0, one_sided = n.integer("onesided", 0) != 0;
  n.set(0, fourier(n, x, at, length, inverse, one_sided), n.type(0));
}
inline void stft(node_call& n) {
  const bool one_sided = n.integer("onesided", 1) != 0;
  symbol x = n.real(0);
  if (n.rank(0) == 2) x = with_dim(x, 2);
  const extent_list own = extents_of(x);
  const std::int64_t step = n.known(1).integer(0);
  const std::int64_t length = n.has(3) ? n.known(3).integer(0) : n.has(2) ? count_elements(n.extents(2)) : 0;
  if (step < 1 || length < 1 || length > own[1])
    throw error("has frames of " + std::to_string(length) + " elements, " + std::to_string(step) + " apart");
  const std::int64_t frames = (own[1] - length) / step + 1;
  std::vector<std::int64_t> from;
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < length; ++i) from.push_back(f * step + i);
  x = reshaped(taken(n, x, 1, from), {own[0], frames, length, own[2]});
  if (n.has(2)) x = product(x, reshaped(n.real(2), {length, 1}));
  n.set(0, fourier(n, x, 2, length, false, one_sided), n.type(0));
}

inline constexpr operator_row signals[]{
    {"BlackmanWindow", [](node_call& n) { cosine_window(n, 0.42, 0.5, 0.08); }},
    {"DFT", dft},
    {"HammingWindow", [](node_call& n) { cosine_window(n, 25.0 / 46, 21.0 / 46, 0); }},
    {"HannWindow", [](node_call& n) { cosine_window(n, 0.5, 0.5, 0); }},
    {"STFT", stft},
};

}}}}  // namespace gshard::v0::onnx::operators
