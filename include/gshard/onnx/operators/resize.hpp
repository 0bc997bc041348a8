// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's Resize and Upsample: a known matrix for each resized dim.

#include <gshard/core/trace/einsum.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// How Resize reads the elements of a dim.
struct resampling {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false;
};

/// Position `at` of the result as a position of the input.
inline double original_position(const resampling& how, double at, double scale, std::int64_t in, std::int64_t out) {
  const double exact = scale * double(in);  // the extent of the result before rounding
  if (how.coordinates == "asymmetric") return at / scale;
  if (how.coordinates == "align_corners") return exact == 1 || out == 1 ? 0 : at * double(in - 1) / (exact - 1);
  if (how.coordinates == "pytorch_half_pixel") return exact > 1 && out > 1 ? (at + 0.5) / scale - 0.5 : 0;
  if (how.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
  return (at + 0.5) / scale - 0.5;
}
/// The weights of the input's positions, from position `first` on.
inline std::vector<double> resize_weights(const resampling& how, double position, std::int64_t& first) {
  const double below = std::floor(position), rest = position - below;
  first = std::int64_t(below);
  if (how.mode == "linear") return {1 - rest, rest};
  if (how.mode == "cubic") {
    const double a = how.cubic;
    const auto near = [&](double t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
    const auto far = [&](double t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
    --first;
    return {far(1 + rest), near(rest), near(1 - rest), far(2 - rest)};
  }
  if (how.nearest == "round_prefer_floor")
    first = std::int64_t(std::ceil(position - 0.5));
  else if (how.nearest == "round_prefer_ceil")
    first = std::int64_t(std::floor(position + 0.5));
  else if (how.nearest == "ceil")
    first = std::int64_t(std::ceil(position));
  return {1};
}
/// The matrix [out, in] of one dim, row-major.
inline std::vector<double> resize_matrix(const resampling& how, double scale, std::int64_t in, std::int64_t out) {
  std::vector<double> all(std::size_t(in * out), 0);
  for (std::int64_t o = 0; o < out; ++o) {
    std::int64_t first = 0;
    std::vector<double> weights = resize_weights(how, original_position(how, double(o), scale, in, out), first);
    if (how.excludes_outside) {
      double total = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const std::int64_t at = first + std::int64_t(k);
        if (at < 0 || at >= in) weights[k] = 0;
        total += weights[k];
      }
      for (double& w : weights) w /= total;
    }
    for (std::size_t k = 0; k < weights.size(); ++k)
      all[std::size_t(o * in + std::clamp<std::int64_t>(first + std::int64_t(k), 0, in - 1))] += weights[k];
  }
  return all;
}

/// x with one dim resized: by index if each position reads one element, otherwise by a product with the matrix of the dim.
inline symbol resized(node_call& n, symbol x, int dim, const resampling& how, double scale, std::int64_t out) {
  const extent_list own = extents_of(x);
  const std::int64_t in = own[std::size_t(dim)];
  if (how.mode == "nearest") {
    std::vector<std::int64_t> from;
    for (std::int64_t o = 0; o < out; ++o) {
      std::int64_t first = 0;
      resize_weights(how, original_position(how, double(o), scale, in, out), first);
      from.push_back(std::clamp<std::int64_t>(first, 0, in - 1));
    }
    return taken(n, x, dim, from);
  }
  const symbol matrix = real_tensor(n.state(), resize_matrix(how, scale, in, out), {out, in}, x.get().type);
  std::string letters = letters_of(x.rank()), to = letters;
  to[std::size_t(dim)] = 'z';
  const std::string text = letters + ",z" + letters[std::size_t(dim)] + "->" + to;
  return checked(einsum(text, {x, matrix}));
}

inline void resize(node_call& n) {
  const bool is_old = n.opset() < 11, is_upsample = n.operation() == "Upsample";
  resampling how;
  how.mode = n.text("mode", "nearest");
  how.coordinates = n.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  how.nearest = n.text("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  how.cubic = n.real("cubic_coeff_a", -0.75);
  how.excludes_outside = n.integer("exclude_outside", 0) != 0;
  n.ignore({"extrapolation_value"});
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic") n.refuse("mode");
  for (const std::string_view known : {"asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn", "half_pixel", ""})
    if (known == how.coordinates)
      break;
    else if (known.empty())
      n.refuse("coordinate_transformation_mode");
  if (n.integer("antialias", 0) != 0) n.refuse("antialias");
  if (n.text("keep_aspect_ratio_policy", "stretch") != "stretch") n.refuse("keep_aspect_ratio_policy");
  if (how.nearest != "floor" && how.nearest != "ceil" && how.nearest != "round_prefer_floor" && how.nearest != "round_prefer_ceil")
    n.refuse("nearest_mode");
  std::vector<int> axes;
  const std::vector<std::int64_t> stated = n.integers("axes");
  if (stated.empty())
    for (int d = 0; d < n.rank(0); ++d) axes.push_back(d);
  else
    axes = node_call::dims(stated, n.rank(0));

  std::vector<double> scales;
  std::vector<std::int64_t> sizes;
  const std::size_t at_scales = is_old ? 1 : 2;
  if (is_upsample && n.opset() < 9)
    for (const float s : n.reals("scales")) scales.push_back(double(s));
  else if (n.has(at_scales))
    for (std::size_t i = 0; i < n.known(at_scales).size(); ++i) scales.push_back(n.known(at_scales).real(i));
  if (scales.empty() && n.has(3)) sizes = n.known_integers(3);
  if (scales.empty() && sizes.size() != axes.size())
    throw error("has sizes for " + std::to_string(sizes.size()) + " of " + std::to_string(axes.size()) + " dims");
  if (!scales.empty() && scales.size() != axes.size())
    throw error("has scales for " + std::to_string(scales.size()) + " of " + std::to_string(axes.size()) + " dims");
  const element type = n.type(0);
  symbol x = is_float(type)          ? n.real(0)
             : how.mode == "nearest" ? n.tensor(0)
                                     : throw error("resizes integers with mode = \"" + how.mode + "\"");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t in = n.extents(0)[std::size_t(axes[i])];
    const std::int64_t out = scales.empty() ? sizes[i] : std::int64_t(std::floor(double(in) * scales[i]));
    const double scale = scales.empty() ? double(out) / double(in) : scales[i];
    if (in < 1 || out < 1 || out > (std::int64_t(1) << 24) || !(scale > 0))
      throw error("resizes a dim of " + std::to_string(in) + " to " + std::to_string(out));
    if (in != out || scale != 1) x = resized(n, x, axes[i], how, scale, out);
  }
  n.set(0, x, type);
}

inline constexpr operator_row resizes[]{
    {"Resize", resize},
    {"Upsample", resize},
};

}}}}  // namespace gshard::v0::onnx::operators
