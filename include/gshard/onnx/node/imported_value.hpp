// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The values of a model while it is imported: tensors of the program, tensors of the file, and known elements.

#include <gshard/core/trace/builder.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// An operator needs elements that are known only when the program runs.
class unknown_value : public error {
 public:
  unknown_value(const std::string& text, std::string which) : error(text), value(std::move(which)) {}

  std::string value;  ///< Its name in the model.
};

/// A node of a model that is refused. The text names it.
class refused_node : public error {
 public:
  using error::error;
};

/// A value of a model: at least one of a tensor of the program, a tensor of the file, and known elements.
struct imported_value {
  std::string name;
  element type = element::undefined;
  extent_list extents;
  symbol tensor{};
  std::shared_ptr<const constant> known{};
  std::shared_ptr<const model_tensor> stored{};
};

/// A parameter of an imported program, and its elements.
struct stored_tensor {
  std::string parameter;  ///< Its name in the program and the store.
  element type = element::undefined;
  extent_list extents;
  std::vector<model_tensor> parts;  ///< One after the other, row-major: usually one, or one for each expert.
};

/// What all nodes of an imported program share.
struct import_state {
  builder* program = nullptr;
  std::vector<stored_tensor> stored;
  int constants = 0;        ///< The number of parameters without a name in the model.
  std::string expert_axis;  ///< The mesh axis that shards experts, or empty.
  /// x, sharded as the model annotates the value of this name.
  std::function<symbol(symbol x, const std::string& name)> annotated;
  /// Imports the nodes of an inner graph, whose inputs have these values. Returns its outputs.
  std::function<std::vector<imported_value>(const model_graph&, std::vector<imported_value>)> run_graph;
};

namespace values {
/// Names of tensors in a store have at most 63 characters: a longer one keeps its end, behind a hash of all of it.
inline std::string parameter_name(const std::string& name) {
  if (tensor_name::fits(name)) return name;
  std::uint64_t h = 1469598103934665603u;  // FNV-1a
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string digits;
  for (int i = 0; i < 16; ++i) digits += "0123456789abcdef"[(h >> (4 * i)) & 15u];
  return digits + "." + name.substr(name.size() - 46);
}

/// Adds a parameter, whose extents are those of the dims.
inline symbol add_stored(import_state& state, stored_tensor s, const dim_list& dims) {
  builder& b = *state.program;
  while (b.find_parameter(tensor_name(s.parameter)) >= 0) s.parameter = "constant." + std::to_string(state.constants++);
  parameter p;
  p.name = tensor_name(s.parameter);
  p.trainable = is_float(s.type);
  symbol made = checked(b.add_parameter(p, dims, traits(s.type).carrier));
  if (state.annotated && s.parts.size() == 1) made = state.annotated(made, s.parts[0].name);
  s.extents = extents_of(made);
  state.stored.push_back(std::move(s));
  return made;
}
/// True if all elements are one small number.
inline bool is_filled(const constant& c) {
  for (std::size_t i = 1; i < c.size(); ++i)
    if (c.real(i) != c.real(0)) return false;
  if (c.size() == 0) return true;
  const double x = c.real(0);
  const bool is_negative_zero = x == 0 && std::signbit(x);
  return x == x && x - x == 0 && !is_negative_zero && (c.is_real() || (x >= -0x1p31 && x < 0x1p31));
}
}  // namespace values

/// The tensor of a value in the program: a parameter, or a filled tensor for single numbers, and for equal numbers that no file has.
inline symbol tensor_of(import_state& state, imported_value& v) {
  if (v.tensor.id >= 0) return v.tensor;
  const dtype carrier = traits(v.type).carrier;
  if (carrier == dtype::count_) throw error("gets elements of type " + name(v.type) + ", which gshard does not compute with");
  if (v.known && values::is_filled(*v.known) && (!v.stored || v.known->size() <= 1)) {
    v.tensor = filled(*state.program, carrier, v.extents, v.known->size() == 0 ? 0 : v.known->real(0));
  } else {
    if (!v.stored) v.stored = std::make_shared<const model_tensor>(tensor_of(*v.known, v.name));
    const std::string name = v.name.empty() ? "constant." + std::to_string(state.constants++) : values::parameter_name(v.name);
    v.tensor = values::add_stored(state, {name, v.stored->type, {}, {*v.stored}}, fixed_dims(*state.program, v.stored->shape));
  }
  return v.tensor;
}

inline imported_value value_of(constant c, std::string name = {}) {
  imported_value v{std::move(name), c.type, c.extents, {}, {}, {}};
  v.known = std::make_shared<const constant>(std::move(c));
  return v;
}
/// The elements of larger tensors of a file are not known while importing.
inline constexpr std::int64_t most_known = 1 << 16;
inline imported_value value_of(std::shared_ptr<const model_tensor> t, std::string name) {
  imported_value v{std::move(name), t->type, t->shape, {}, {}, {}};
  if (can_be_known(t->type) && t->elements() <= most_known) v.known = std::make_shared<const constant>(constant_of(*t));
  v.stored = std::move(t);
  return v;
}
inline imported_value value_of(symbol s, element type, std::string name = {}) {
  return {std::move(name), type, extents_of(s), s, {}, {}};
}

}}}  // namespace gshard::v0::onnx
