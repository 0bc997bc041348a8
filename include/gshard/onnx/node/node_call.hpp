// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A node of a model with the values of its inputs: what the functions of operators get.

#include <gshard/core/trace/map.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/node/imported_value.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// A call of an operator. Its functions throw `gshard::error`: a sentence without a subject, to which the importer adds the node.
class node_call {
 public:
  node_call(import_state& state, const model_node& node, std::int64_t opset, std::vector<imported_value*> inputs)
      : state_(&state), node_(&node), opset_(opset), inputs_(std::move(inputs)), outputs_(node.outputs.size()) {}

  const std::string& operation() const { return node_->operation; }
  std::int64_t opset() const { return opset_; }
  builder& program() const { return *state_->program; }
  import_state& state() const { return *state_; }

  // Inputs.
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  imported_value& in(std::size_t i) const {
    if (!has(i)) throw error("lacks its input " + std::to_string(i));
    return *inputs_[i];
  }
  element type(std::size_t i) const { return in(i).type; }
  const extent_list& extents(std::size_t i) const { return in(i).extents; }
  int rank(std::size_t i) const { return int(in(i).extents.size()); }
  /// The tensor of an input, in the carrier of its type.
  symbol tensor(std::size_t i) const { return tensor_of(*state_, in(i)); }
  /// The same in a type with arithmetic: half precision as float.
  symbol number(std::size_t i) const { return as_number(tensor(i)); }
  static symbol as_number(symbol s) { return traits(s.get().type).arithmetic == arithmetic_of::storage ? checked(cast(s, dtype::f32)) : s; }
  /// The same for an operator of real numbers alone.
  symbol real(std::size_t i) const {
    if (!is_float(type(i))) throw error("has the input " + std::to_string(i) + " of type " + name(type(i)) + ", not of real numbers");
    return number(i);
  }
  bool is_known(std::size_t i) const { return has(i) && in(i).known; }
  /// The elements of an input that must be known while importing.
  const constant& known(std::size_t i) const {
    if (!in(i).known)
      throw unknown_value("needs the elements of its input " + std::to_string(i) + " (\"" + in(i).name +
                              "\") while the program is made; give them as a fixed input",
                          in(i).name);
    return *in(i).known;
  }
  std::vector<std::int64_t> known_integers(std::size_t i) const {
    const constant& c = known(i);
    std::vector<std::int64_t> all;
    for (std::size_t k = 0; k < c.size(); ++k) all.push_back(c.integer(k));
    return all;
  }
  double known_real(std::size_t i) const {
    const constant& c = known(i);
    if (c.size() != 1) throw error("has the input " + std::to_string(i) + " with " + std::to_string(c.size()) + " elements, not 1");
    return c.real(0);
  }

  // Outputs.
  std::size_t outputs() const { return outputs_.size(); }
  bool wants(std::size_t i) const { return i < node_->outputs.size() && !node_->outputs[i].empty(); }
  void set(std::size_t i, symbol s, element type) {
    if (!wants(i)) return;
    const dtype carrier = traits(type).carrier;
    outputs_[i] = value_of(checked(s).get().type == carrier ? s : checked(cast(s, carrier)), type, node_->outputs[i]);
  }
  void set(std::size_t i, constant c) {
    if (wants(i)) outputs_[i] = value_of(std::move(c), node_->outputs[i]);
  }
  void set(std::size_t i, imported_value v) {
    if (!wants(i)) return;
    outputs_[i] = std::move(v);
    outputs_[i].name = node_->outputs[i];
  }
  std::vector<imported_value>& results() { return outputs_; }

  // Attributes. Each attribute of the node must be read: the importer refuses the others.
  using kind = model_attribute::kind;
  const model_attribute* find(std::string_view name) {
    for (const model_attribute& a : node_->attributes)
      if (a.name == name && a.refers_to.empty()) {
        read_.insert(a.name);
        return &a;
      }
    return nullptr;
  }
  bool states(std::string_view name) { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) {
    const model_attribute* const a = find(name, kind::integer);
    return a ? a->integer : otherwise;
  }
  std::int64_t integer(std::string_view name) {
    if (!states(name)) lacks(name);
    return integer(name, 0);
  }
  double real(std::string_view name, double otherwise) {
    const model_attribute* const a = find(name, kind::real);
    return a ? double(a->real) : otherwise;
  }
  std::string text(std::string_view name, std::string otherwise) {
    const model_attribute* const a = find(name, kind::text);
    return a ? a->text : otherwise;
  }
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {}) {
    const model_attribute* const a = find(name, kind::integers);
    return a ? a->integers : otherwise;
  }
  std::vector<float> reals(std::string_view name) {
    const model_attribute* const a = find(name, kind::reals);
    return a ? a->reals : std::vector<float>{};
  }
  std::vector<std::string> texts(std::string_view name) {
    const model_attribute* const a = find(name, kind::texts);
    return a ? a->texts : std::vector<std::string>{};
  }
  const model_graph& graph(std::string_view name) {
    const model_attribute* const a = find(name, kind::graph);
    if (!a) lacks(name);
    return *a->graph;
  }
  /// Reads attributes that change nothing here.
  void ignore(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) find(name);
  }
  /// The text of an attribute that no function has read, or nothing.
  std::string unread() const {
    for (const model_attribute& a : node_->attributes)
      if (!read_.contains(a.name)) return a.name + value_text(a);
    return {};
  }
  /// Throws: the operator has an attribute with a value that gshard does not compute.
  [[noreturn]] void refuse(std::string_view attribute) {
    const model_attribute* const a = find(attribute);
    throw error("has " + std::string(attribute) + (a ? value_text(*a) : " as its default is") + ", which gshard does not compute");
  }

  // Dims.
  /// A dim from an attribute: a negative number counts from the back.
  static int dim(std::int64_t at, int rank, std::string_view name = "axis") {
    if (at < -rank || at >= rank)
      throw error("has " + std::string(name) + " = " + std::to_string(at) + " for a tensor of " + std::to_string(rank) + " dims");
    return int(at < 0 ? at + rank : at);
  }
  static std::vector<int> dims(const std::vector<std::int64_t>& all, int rank, std::string_view name = "axes") {
    std::vector<int> found;
    for (const std::int64_t at : all) {
      const int d = dim(at, rank, name);
      for (const int other : found)
        if (other == d) throw error("has " + std::string(name) + " with dim " + std::to_string(d) + " twice");
      found.push_back(d);
    }
    return found;
  }

 private:
  import_state* state_;
  const model_node* node_;
  std::int64_t opset_;
  std::vector<imported_value*> inputs_;
  std::vector<imported_value> outputs_;
  std::set<std::string, std::less<>> read_;

  [[noreturn]] static void lacks(std::string_view name) { throw error("lacks its attribute " + std::string(name)); }
  const model_attribute* find(std::string_view name, kind wanted) {
    const model_attribute* const a = find(name);
    if (a && a->type != wanted) throw error("has the attribute " + std::string(name) + " of another type than ONNX says");
    return a;
  }
  static std::string value_text(const model_attribute& a) {
    switch (a.type) {
      case kind::integer:
        return " = " + std::to_string(a.integer);
      case kind::real:
        return " = " + std::to_string(a.real);
      case kind::text:
        return " = \"" + a.text.substr(0, 80) + '"';
      case kind::integers:
        return " = " + text_of(a.integers);
      default:
        return "";
    }
  }
};

/// An operator of ONNX, and the function that adds it to a program.
struct operator_row {
  std::string_view name;
  void (*add)(node_call& n);
  std::string_view domain = {};
};

}}}  // namespace gshard::v0::onnx
