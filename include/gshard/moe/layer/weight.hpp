// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The weights of layers, and the element type in which they are stored.

#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <string_view>

namespace gshard { inline namespace v0 { namespace nn {

/// The option `.param_dtype` of layers: the stored element type of embeddings and of weights of products, such as `dtype::bf16`. They are
/// cast to the model's type where they are used. The default is the model's type. Norms, biases and routers always have it: they are small,
/// and routing is sensitive to rounding.
struct param_dtype_option {
  bool is_set = false;
  dtype type = dtype::f32;

  constexpr param_dtype_option() = default;
  constexpr param_dtype_option(dtype stored) : is_set(true), type(stored) {}  // implicit: .param_dtype = dtype::bf16

  /// The scope, whose parameters have this type if the option is set.
  constexpr parameter_scope in(const parameter_scope& m) const { return is_set ? m.with_type(type) : m; }
  /// This option of an inner layer, if it is set; otherwise the option of the outer layer.
  constexpr param_dtype_option or_else(const param_dtype_option& outer) const { return is_set ? *this : outer; }
};

namespace detail {

/// The tensor, cast to the element type of the scope.
constexpr symbol in_type_of(const parameter_scope& m, symbol x) {
  return !m.owner().has(x) || x.get().type == m.type() ? x : gshard::detail::emit_cast(x, m.type());
}
constexpr symbol weight(const parameter_scope& m, std::string_view name, std::string_view letters, init start, param_dtype_option stored) {
  return in_type_of(m, stored.in(m).param(name, letters, start));
}

}  // namespace detail

}}}  // namespace gshard::v0::nn
