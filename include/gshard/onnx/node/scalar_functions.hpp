// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The functions of ONNX's elementwise operators on numbers.

#include <gshard/core/base/compiler.hpp>

#include <cmath>

namespace gshard { inline namespace v0 { namespace onnx { namespace functions {

#define GSHARD_ONNX_FUNCTION(name, expression) \
  struct name {                                \
    template <class T>                         \
    T operator()(T v) const {                  \
      return T(expression);                    \
    }                                          \
  };
GSHARD_ONNX_FUNCTION(absolute, std::abs(v))
GSHARD_ONNX_FUNCTION(acos, std::acos(v))
GSHARD_ONNX_FUNCTION(acosh, std::acosh(v))
GSHARD_ONNX_FUNCTION(asin, std::asin(v))
GSHARD_ONNX_FUNCTION(asinh, std::asinh(v))
GSHARD_ONNX_FUNCTION(atan, std::atan(v))
GSHARD_ONNX_FUNCTION(atanh, std::atanh(v))
GSHARD_ONNX_FUNCTION(ceil, std::ceil(v))
GSHARD_ONNX_FUNCTION(cos, std::cos(v))
GSHARD_ONNX_FUNCTION(cosh, std::cosh(v))
GSHARD_ONNX_FUNCTION(erf, std::erf(v))
GSHARD_ONNX_FUNCTION(exp, std::exp(v))
GSHARD_ONNX_FUNCTION(floor, std::floor(v))
GSHARD_ONNX_FUNCTION(log, std::log(v))
GSHARD_ONNX_FUNCTION(negative, -v)
GSHARD_ONNX_FUNCTION(reciprocal, T(1) / v)
GSHARD_ONNX_FUNCTION(relu, v != v || v > T(0) ? v : T(0))
GSHARD_ONNX_FUNCTION(round_to_even, std::nearbyint(v))
GSHARD_ONNX_FUNCTION(sigmoid, v < T(0) ? std::exp(v) / (T(1) + std::exp(v)) : T(1) / (T(1) + std::exp(-v)))
GSHARD_ONNX_FUNCTION(sign, v != v ? v : v > T(0) ? T(1) : v < T(0) ? T(-1) : T(0))
GSHARD_ONNX_FUNCTION(sin, std::sin(v))
GSHARD_ONNX_FUNCTION(sinh, std::sinh(v))
GSHARD_ONNX_FUNCTION(softplus, v > T(0) ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)))
GSHARD_ONNX_FUNCTION(softsign, v / (T(1) + std::abs(v)))
GSHARD_ONNX_FUNCTION(sqrt, std::sqrt(v))
GSHARD_ONNX_FUNCTION(square, v* v)
GSHARD_ONNX_FUNCTION(tan, std::tan(v))
GSHARD_ONNX_FUNCTION(tanh, std::tanh(v))
GSHARD_ONNX_FUNCTION(truncate, std::trunc(v))
GSHARD_ONNX_FUNCTION(is_nan, v != v ? T(1) : T(0))
GSHARD_ONNX_FUNCTION(is_positive_infinity, v == v && v - v != v - v && v > T(0) ? T(1) : T(0))
GSHARD_ONNX_FUNCTION(is_negative_infinity, v == v && v - v != v - v && v < T(0) ? T(1) : T(0))
GSHARD_ONNX_FUNCTION(hard_swish, v*(v / T(6) + T(0.5) < T(0) ? T(0) : v / T(6) + T(0.5) > T(1) ? T(1) : v / T(6) + T(0.5)))
GSHARD_ONNX_FUNCTION(mish, v* std::tanh(v > T(0) ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v))))
GSHARD_ONNX_FUNCTION(gelu, T(0.5) * v * (T(1) + std::erf(v * T(0.70710678118654752440))))
GSHARD_ONNX_FUNCTION(gelu_by_tanh, T(0.5) * v * (T(1) + std::tanh(T(0.79788456080286535588) * (v + T(0.044715) * v * v * v))))
GSHARD_ONNX_FUNCTION(is_zero, v == T(0) ? T(1) : T(0))
#undef GSHARD_ONNX_FUNCTION

#define GSHARD_ONNX_FUNCTION(name, parameters, expression) \
  struct name {                                            \
    template <class T>                                     \
    T operator() parameters const {                        \
      return T(expression);                                \
    }                                                      \
  };
GSHARD_ONNX_FUNCTION(power, (T v, T p), std::pow(v, p))
GSHARD_ONNX_FUNCTION(remainder, (T v, T by), std::fmod(v, by))
GSHARD_ONNX_FUNCTION(floor_remainder, (T v, T by), v - by * std::floor(v / by))
GSHARD_ONNX_FUNCTION(smaller, (T v, T w), v < w || v != v ? v : w)
GSHARD_ONNX_FUNCTION(larger, (T v, T w), v > w || v != v ? v : w)
GSHARD_ONNX_FUNCTION(shifted_left, (T v, T by), v* std::exp2(by))
GSHARD_ONNX_FUNCTION(shifted_right, (T v, T by), std::floor(v* std::exp2(-by)))
GSHARD_ONNX_FUNCTION(leaky_relu, (T v, T slope), v < T(0) ? slope * v : v)
GSHARD_ONNX_FUNCTION(elu, (T v, T alpha), v < T(0) ? alpha * (std::exp(v) - T(1)) : v)
GSHARD_ONNX_FUNCTION(celu, (T v, T alpha), v < T(0) ? alpha * (std::exp(v / alpha) - T(1)) : v)
GSHARD_ONNX_FUNCTION(thresholded_relu, (T v, T alpha), v > alpha || v != v ? v : T(0))
GSHARD_ONNX_FUNCTION(selu, (T v, T alpha, T gamma), v > T(0) ? gamma * v : gamma * (alpha * std::exp(v) - alpha))
GSHARD_ONNX_FUNCTION(hard_sigmoid, (T v, T alpha, T beta),
                     alpha* v + beta < T(0)    ? T(0)
                     : alpha * v + beta > T(1) ? T(1)
                                               : alpha * v + beta)
GSHARD_ONNX_FUNCTION(shrink, (T v, T limit, T bias), v<-limit ? v + bias : v> limit ? v - bias : v != v ? v : T(0))
GSHARD_ONNX_FUNCTION(affine, (T v, T by, T plus), v* by + plus)
GSHARD_ONNX_FUNCTION(swish, (T v, T alpha), v / (T(1) + std::exp(-alpha * v)))
GSHARD_ONNX_FUNCTION(exp_of_difference, (T v, T top), std::exp(v - (top - top == T(0) ? top : T(0))))
GSHARD_ONNX_FUNCTION(log_plus, (T sum, T top), std::log(sum) + (top - top == T(0) ? top : T(0)))
GSHARD_ONNX_FUNCTION(normalized, (T v, T mean, T variance, T epsilon), (v - mean) / std::sqrt(variance + epsilon))
GSHARD_ONNX_FUNCTION(inverse_deviation, (T variance, T epsilon), T(1) / std::sqrt(variance + epsilon))
#undef GSHARD_ONNX_FUNCTION

}}}}  // namespace gshard::v0::onnx::functions
