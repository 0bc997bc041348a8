// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The values of a graph: who makes and reads them, and which are constants.

#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/file/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace rewriting {

/// The makers and constants of a graph's values.
class graph_values {
 public:
  /// `given`: the inputs whose elements or shape the caller states. Initializers with these names do not count, nor declared shapes.
  explicit graph_values(const model_graph& g, const std::set<std::string>& given = {}) : graph_(g) {
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      for (const std::string& out : g.nodes[i].outputs)
        if (!out.empty()) makers_[out] = i;
    for (const model_tensor& t : g.initializers)
      if (!given.contains(t.name)) tensors_[t.name] = &t;
    for (const model_node& n : g.nodes)
      for (const std::string& in : n.inputs) ++readers_[in];
    for (const model_value& out : g.outputs) ++readers_[out.name];
    if (!given.empty()) return;
    for (const std::vector<model_value>* const values : {&g.inputs, &g.values})
      for (const model_value& v : *values)
        if (v.has_shape) ranks_[v.name] = int(v.dims.size());
  }

  const model_graph& graph() const { return graph_; }
  /// The node that makes a value, or null.
  const model_node* maker(const std::string& value) const {
    const auto found = makers_.find(value);
    return found == makers_.end() ? nullptr : &graph_.nodes[found->second];
  }
  /// The same if it is an operator of ONNX itself.
  const model_node* operator_of(const std::string& value) const {
    const model_node* const n = maker(value);
    return n && n->domain.empty() ? n : nullptr;
  }
  std::size_t index_of(const model_node& n) const { return std::size_t(&n - graph_.nodes.data()); }
  int readers(const std::string& value) const {
    const auto found = readers_.find(value);
    return found == readers_.end() ? 0 : found->second;
  }
  bool is_constant(const std::string& value) const {
    const model_node* const n = maker(value);
    return n ? n->inputs.empty() && n->operation == "Constant" : tensors_.contains(value);
  }
  /// The elements of an initializer or a constant, or null.
  const model_tensor* tensor(const std::string& value) const {
    if (const auto found = tensors_.find(value); found != tensors_.end()) return found->second;
    const model_node* const n = maker(value);
    if (!n || n->operation != "Constant" || n->attributes.size() != 1) return nullptr;
    return n->attributes[0].tensor.get();
  }
  /// The number that all elements of a constant are.
  std::optional<double> number(const std::string& value) const {
    if (const model_node* const n = maker(value); n && n->operation == "Constant" && n->attributes.size() == 1) {
      const model_attribute& a = n->attributes[0];
      if (a.name == "value_int") return double(a.integer);
      if (a.name == "value_float") return double(a.real);
    }
    const model_tensor* const t = tensor(value);
    if (!t || !can_be_known(t->type) || t->elements() < 1 || t->elements() > 4096) return std::nullopt;
    const constant all = constant_of(*t);
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all.real(i) != all.real(0)) return std::nullopt;
    return all.real(0);
  }
  bool is_zero(const std::string& value) const {
    if (const std::optional<double> n = number(value)) return *n == 0;
    const model_node* const n = operator_of(value);
    if (!n || n->operation != "ConstantOfShape") return false;
    const model_attribute* const filling = attribute(*n, "value");
    if (!filling) return true;
    return filling->tensor && can_be_known(filling->tensor->type) && filling->tensor->elements() == 1 &&
           constant_of(*filling->tensor).real(0) == 0;
  }
  /// The name of an input, or an empty one.
  static const std::string& input(const model_node& n, std::size_t i) {
    static const std::string none;
    return i < n.inputs.size() ? n.inputs[i] : none;
  }
  /// A value behind nodes that change nothing but its type.
  std::string behind_casts(std::string value) const {
    for (int left = 16; left > 0; --left) {
      const model_node* const n = operator_of(value);
      if (!n || (n->operation != "Cast" && n->operation != "Identity")) break;
      value = input(*n, 0);
    }
    return value;
  }
  const model_node* maker_behind_casts(const std::string& value) const { return operator_of(behind_casts(value)); }
  /// The integers of an attribute, or of an input that has replaced it in later versions of the operator.
  std::vector<std::int64_t> integers(const model_node& n, std::string_view name, std::size_t at) const {
    if (const model_attribute* const a = attribute(n, name)) return a->integers.empty() ? std::vector{a->integer} : a->integers;
    const model_tensor* const t = tensor(graph_values::input(n, at));
    return t && is_integer(t->type) && t->elements() < 64 ? constant_of(*t).integers : std::vector<std::int64_t>{};
  }
  static const model_attribute* attribute(const model_node& n, std::string_view name) {
    for (const model_attribute& a : n.attributes)
      if (a.name == name) return &a;
    return nullptr;
  }
  static std::int64_t integer(const model_node& n, std::string_view name, std::int64_t otherwise) {
    const model_attribute* const a = attribute(n, name);
    return a ? a->integer : otherwise;
  }
  /// The number of dims of a value, or -1 if the graph does not say it.
  int rank(const std::string& value, int depth = 8) const {
    if (const auto found = ranks_.find(value); found != ranks_.end()) return found->second;
    if (const model_tensor* const t = tensor(value)) return int(t->shape.size());
    const model_node* const n = operator_of(value);
    if (!n || depth == 0) return -1;
    if (n->operation == "Gemm") return 2;
    for (const std::string_view same : {"TopK", "Softmax", "Cast", "Identity", "MatMul", "Add", "Sub", "Mul", "Div", "Sigmoid", "Equal"})
      if (n->operation == same) {
        const int first = rank(input(*n, 0), depth - 1);
        const int second = same == "TopK" || n->inputs.size() < 2 ? first : rank(n->inputs[1], depth - 1);
        return first < 0 || second < 0 ? -1 : std::max(first, second);
      }
    return -1;
  }
  /// A dim of a value, counted from the back if the rank is known or the number is negative.
  std::int64_t from_back(std::int64_t axis, const std::string& value) const {
    if (axis < 0) return axis;
    const int dims = rank(value);
    return dims >= 0 ? axis - dims : axis;
  }

 private:
  const model_graph& graph_;
  std::map<std::string, std::size_t> makers_;
  std::map<std::string, const model_tensor*> tensors_;
  std::map<std::string, int> readers_, ranks_;
};

}  // namespace rewriting

}}}  // namespace gshard::v0::onnx
