// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The functions that ONNX's operators map, with their names in plan files and their texts in C++.

#include <gshard/core/ir/pointwise.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/runtime/plan_functions.hpp>

#include <string>
#include <string_view>

namespace gshard { inline namespace v0 { namespace onnx {

/// A function of maps. `a`, `b` and so on stand in its text for its operands.
struct operator_function {
  std::string_view name;
  const pointwise* function;
  std::string_view cpp{};  ///< Empty: exports refuse it.
};
/// Sorted by name.
inline constexpr operator_function operator_functions[]{
    {"onnx.absolute", &undifferentiated<functions::absolute{}, 1>, "gshard::abs(a)"},
    {"onnx.acos", &undifferentiated<functions::acos{}, 1>},
    {"onnx.acosh", &undifferentiated<functions::acosh{}, 1>},
    {"onnx.affine", &undifferentiated<functions::affine{}, 3>, "a * b + c"},
    {"onnx.asin", &undifferentiated<functions::asin{}, 1>},
    {"onnx.asinh", &undifferentiated<functions::asinh{}, 1>},
    {"onnx.atan", &undifferentiated<functions::atan{}, 1>},
    {"onnx.atanh", &undifferentiated<functions::atanh{}, 1>},
    {"onnx.ceil", &undifferentiated<functions::ceil{}, 1>},
    {"onnx.celu", &undifferentiated<functions::celu{}, 2>},
    {"onnx.cos", &undifferentiated<functions::cos{}, 1>, "gshard::cos(a)"},
    {"onnx.cosh", &undifferentiated<functions::cosh{}, 1>},
    {"onnx.elu", &undifferentiated<functions::elu{}, 2>, "a < 0.0 ? b * (gshard::exp(a) - 1.0) : 1.0 * a"},
    {"onnx.erf", &undifferentiated<functions::erf{}, 1>, "gshard::erf(a)"},
    {"onnx.exp", &undifferentiated<functions::exp{}, 1>, "gshard::exp(a)"},
    {"onnx.exp_of_difference", &undifferentiated<functions::exp_of_difference{}, 2>, "gshard::exp(a - b)"},
    {"onnx.floor", &undifferentiated<functions::floor{}, 1>},
    {"onnx.floor_remainder", &undifferentiated<functions::floor_remainder{}, 2>},
    {"onnx.gelu", &undifferentiated<functions::gelu{}, 1>, "0.5 * a * (1.0 + gshard::erf(a * 0.70710678118654752))"},
    {"onnx.gelu_by_tanh", &undifferentiated<functions::gelu_by_tanh{}, 1>},
    {"onnx.hard_sigmoid", &undifferentiated<functions::hard_sigmoid{}, 3>, "gshard::max(0.0 * a, gshard::min(0.0 * a + 1.0, b * a + c))"},
    {"onnx.hard_swish", &undifferentiated<functions::hard_swish{}, 1>,
     "a * gshard::max(0.0 * a, gshard::min(0.0 * a + 1.0, a / 6.0 + 0.5))"},
    {"onnx.inverse_deviation", &undifferentiated<functions::inverse_deviation{}, 2>, "1.0 / gshard::sqrt(a + b)"},
    {"onnx.is_nan", &undifferentiated<functions::is_nan{}, 1>},
    {"onnx.is_negative_infinity", &undifferentiated<functions::is_negative_infinity{}, 1>},
    {"onnx.is_positive_infinity", &undifferentiated<functions::is_positive_infinity{}, 1>},
    {"onnx.is_zero", &undifferentiated<functions::is_zero{}, 1>},
    {"onnx.larger", &undifferentiated<functions::larger{}, 2>, "gshard::max(a, decltype(a)(b))"},
    {"onnx.leaky_relu", &undifferentiated<functions::leaky_relu{}, 2>, "a < 0.0 ? b * a : 1.0 * a"},
    {"onnx.log", &undifferentiated<functions::log{}, 1>, "gshard::log(a)"},
    {"onnx.log_plus", &undifferentiated<functions::log_plus{}, 2>, "gshard::log(a) + b"},
    {"onnx.mish", &undifferentiated<functions::mish{}, 1>},
    {"onnx.negative", &undifferentiated<functions::negative{}, 1>, "-a"},
    {"onnx.normalized", &undifferentiated<functions::normalized{}, 4>, "(a - b) / gshard::sqrt(c + d)"},
    {"onnx.power", &undifferentiated<functions::power{}, 2>, "gshard::pow(a, decltype(a)(b))"},
    {"onnx.reciprocal", &undifferentiated<functions::reciprocal{}, 1>, "1.0 / a"},
    {"onnx.relu", &undifferentiated<functions::relu{}, 1>, "gshard::relu(a)"},
    {"onnx.remainder", &undifferentiated<functions::remainder{}, 2>},
    {"onnx.round_to_even", &undifferentiated<functions::round_to_even{}, 1>},
    {"onnx.selu", &undifferentiated<functions::selu{}, 3>, "a > 0.0 ? c * a : c * (b * gshard::exp(a) - b)"},
    {"onnx.shifted_left", &undifferentiated<functions::shifted_left{}, 2>},
    {"onnx.shifted_right", &undifferentiated<functions::shifted_right{}, 2>},
    {"onnx.shrink", &undifferentiated<functions::shrink{}, 3>},
    {"onnx.sigmoid", &undifferentiated<functions::sigmoid{}, 1>, "1.0 / (1.0 + gshard::exp(-a))"},
    {"onnx.sign", &undifferentiated<functions::sign{}, 1>},
    {"onnx.sin", &undifferentiated<functions::sin{}, 1>, "gshard::sin(a)"},
    {"onnx.sinh", &undifferentiated<functions::sinh{}, 1>},
    {"onnx.smaller", &undifferentiated<functions::smaller{}, 2>, "gshard::min(a, decltype(a)(b))"},
    {"onnx.softplus", &undifferentiated<functions::softplus{}, 1>, "gshard::relu(a) + gshard::log(1.0 + gshard::exp(-gshard::abs(a)))"},
    {"onnx.softsign", &undifferentiated<functions::softsign{}, 1>},
    {"onnx.sqrt", &undifferentiated<functions::sqrt{}, 1>, "gshard::sqrt(a)"},
    {"onnx.square", &undifferentiated<functions::square{}, 1>},
    {"onnx.swish", &undifferentiated<functions::swish{}, 2>},
    {"onnx.tan", &undifferentiated<functions::tan{}, 1>},
    {"onnx.tanh", &undifferentiated<functions::tanh{}, 1>, "gshard::tanh(a)"},
    {"onnx.thresholded_relu", &undifferentiated<functions::thresholded_relu{}, 2>},
    {"onnx.truncate", &undifferentiated<functions::truncate{}, 1>},
};

/// The functions of the library and of ONNX's operators, for files with plans of imported programs.
/// @see save_plan, read_plan
inline plan_functions model_functions() {
  plan_functions all;
  for (const operator_function& f : operator_functions) all.add(std::string(f.name), *f.function);
  return all;
}

}}}  // namespace gshard::v0::onnx
