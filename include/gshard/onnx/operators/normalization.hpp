// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's normalizations.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/ops/rows/layer_norm.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// x * scale + bias, with a number for each channel of a tensor [N, C, ...].
inline symbol scaled_channels(symbol x, symbol scale, symbol bias) {
  return mapped_along(undifferentiated<functions::affine{}, 3>, x, std::min(1, x.rank() - 1), {scale, bias});
}
/// (x - mean) / sqrt(variance + epsilon)
inline symbol normalized(symbol x, symbol mean, symbol variance, double epsilon) {
  return mapped<functions::normalized{}, 4>({x, mean, variance, scalar_like(x, epsilon)});
}
struct moments {
  symbol mean, variance;
};
inline moments moments_over(symbol x, const std::vector<int>& over) {
  const symbol mean = averaged(x, over, true), centered = difference(x, mean);
  return {mean, averaged(product(centered, centered), over, true)};
}
inline symbol in_type(symbol s, symbol like) {
  return s.get().type == like.get().type ? s : checked(cast(s, like.get().type));
}

inline void batch_normalization(node_call& n) {
  n.ignore({"consumed_inputs"});
  if (n.opset() < 7 && n.integer("is_test", 0) == 0) n.refuse("is_test");
  const double epsilon = n.real("epsilon", 1e-5), momentum = n.real("momentum", 0.9);
  const bool trains = n.integer("training_mode", 0) != 0;
  if (n.integer("spatial", 1) == 0) n.refuse("spatial");
  const symbol x = n.real(0), scale = in_type(n.real(1), x), bias = in_type(n.real(2), x);
  symbol mean = in_type(n.real(3), x), variance = in_type(n.real(4), x);
  const int rank = n.rank(0);
  if (trains) {
    std::vector<int> over;
    for (int d = 0; d < rank; ++d)
      if (d != 1) over.push_back(d);
    const moments own = moments_over(x, over);
    const auto running = [&](symbol before, symbol now) {
      return sum_of(scaled(before, momentum), scaled(reshaped(now, extents_of(before)), 1 - momentum));
    };
    n.set(1, running(mean, own.mean), n.type(3));
    n.set(2, running(variance, own.variance), n.type(4));
    mean = reshaped(own.mean, extents_of(mean));
    variance = reshaped(own.variance, extents_of(variance));
  } else if (n.wants(1)) {
    throw error("has outputs of training without training_mode = 1, which gshard does not compute");
  }
  const symbol centered = mapped_along(pointwise_subtract, x, std::min(1, n.rank(0) - 1), {mean});
  const symbol factor = product(scale, mapped<functions::inverse_deviation{}, 2>({variance, scalar_like(variance, epsilon)}));
  n.set(0, scaled_channels(centered, factor, bias), n.type(0));
}

inline void instance_normalization(node_call& n) {
  n.ignore({"consumed_inputs"});
  const double epsilon = n.real("epsilon", 1e-5);
  const symbol x = n.real(0);
  std::vector<int> over;
  for (int d = 2; d < n.rank(0); ++d) over.push_back(d);
  const moments own = moments_over(x, over);
  const symbol y = normalized(x, own.mean, own.variance, epsilon);
  n.set(0, scaled_channels(y, n.real(1), n.real(2)), n.type(0));
}
inline void group_normalization(node_call& n) {
  const double epsilon = n.real("epsilon", 1e-5);
  const std::int64_t groups = n.integer("num_groups");
  n.ignore({"stash_type"});
  const extent_list own = n.extents(0);
  if (groups < 1 || own.size() < 2 || own[1] % groups != 0) n.refuse("num_groups");
  if (n.opset() < 21)
    throw error("has opset_import " + std::to_string(n.opset()) + ", in which scales belong to groups; gshard has those of channels");
  extent_list split = own;
  split[1] = groups;
  split.insert(split.begin() + 2, own[1] / groups);
  const symbol x = reshaped(n.real(0), split);
  std::vector<int> over;
  for (int d = 2; d < x.rank(); ++d) over.push_back(d);
  const moments m = moments_over(x, over);
  const symbol y = reshaped(normalized(x, m.mean, m.variance, epsilon), own);
  n.set(0, scaled_channels(y, n.real(1), n.real(2)), n.type(0));
}

inline void layer_normalization(node_call& n) {
  const int rank = n.rank(0), first = node_call::dim(n.integer("axis", -1), rank);
  const double epsilon = n.real("epsilon", 1e-5);
  n.ignore({"stash_type"});
  const symbol x = n.real(0), scale = n.real(1);
  std::vector<int> over;
  for (int d = first; d < rank; ++d) over.push_back(d);
  const bool is_row = over.size() == 1 && n.rank(1) == 1 && n.extents(1) == extent_list{n.extents(0).back()} && !n.wants(1) && !n.wants(2);
  if (is_row && n.has(2) && n.extents(2) == n.extents(1))
    return n.set(0, checked(layer_norm(here(x), scale, n.real(2), epsilon)), n.type(0));
  const moments own = moments_over(x, over);
  n.set(1, own.mean, n.type(0) == element::f64 ? element::f64 : element::f32);
  n.set(2, mapped<functions::inverse_deviation{}, 2>({own.variance, scalar_like(x, epsilon)}),
        n.type(0) == element::f64 ? element::f64 : element::f32);
  symbol y = product(normalized(x, own.mean, own.variance, epsilon), scale);
  if (n.has(2)) y = sum_of(y, n.real(2));
  n.set(0, y, n.type(0));
}

/// (x - mean) / deviation, with ONNX's 1e-9 added to the deviation.
inline void mean_variance_normalization(node_call& n) {
  const std::vector<int> over = node_call::dims(n.integers("axes", {0, 2, 3}), n.rank(0));
  const symbol x = n.real(0);
  const moments own = moments_over(x, over);
  const symbol deviation = sum_of(mapped<functions::sqrt{}, 1>({own.variance}), scalar_like(x, 1e-9));
  n.set(0, quotient(difference(x, own.mean), deviation), n.type(0));
}
inline void lp_normalization(node_call& n) {
  const int at = node_call::dim(n.integer("axis", -1), n.rank(0));
  const std::int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2) n.refuse("p");
  const symbol x = n.real(0);
  const symbol sizes = p == 1 ? mapped<functions::absolute{}, 1>({x}) : product(x, x);
  const symbol total = summed(sizes, {at}, true);
  n.set(0, quotient(x, p == 1 ? total : mapped<functions::sqrt{}, 1>({total})), n.type(0));
}

inline constexpr operator_row normalizations[]{
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
    {"InstanceNormalization", instance_normalization},
    {"LayerNormalization", layer_normalization},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance_normalization},
};

}}}}  // namespace gshard::v0::onnx::operators
