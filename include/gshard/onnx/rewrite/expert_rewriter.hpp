// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes the nodes that take the place of a sum over experts.

#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/operators/experts.hpp>
#include <gshard/onnx/rewrite/expert_nodes.hpp>
#include <gshard/onnx/rewrite/graph_values.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace rewriting {

/// A sum over experts.
struct expert_sum {
  std::string result;                ///< The name of y.
  std::vector<std::string> weights;  ///< w_e
  std::vector<std::string> rest;     ///< Other terms.
  std::int64_t k = 0;
  expert_nodes experts;
};

/// Writes the nodes that take the place of a sum over experts.
class expert_rewriter {
 public:
  expert_rewriter(const graph_values& all, const expert_sum& s) : all_(all), sum_(s), base_(s.result + "/experts/") {}

  /// The nodes, or nothing if an expert has an operator that rows do not have.
  std::optional<std::vector<model_node>> nodes() {
    add("Concat", {}, sum_.weights, {"gates"}, {integer("axis", -1)});
    add("SendToExperts", operators::experts_domain, {sum_.experts.x(), name("gates")}, {"rows", "count", "row", "weight"},
        {integer("k", sum_.k)});
    values_[sum_.experts.x()] = {name("rows"), kind::rows};
    for (const std::size_t i : sum_.experts.nodes())
      if (!add_node(all_.graph().nodes[i])) return std::nullopt;
    const operand result = value(sum_.experts.result());
    if (result.what != kind::rows) return std::nullopt;
    add("CombineExperts", operators::experts_domain,
        {result.name, name("row"), name("weight"), name("rows"), name("count"), sum_.experts.x()}, {"sum0"}, {});
    std::string total = name("sum0");
    for (std::size_t i = 0; i < sum_.rest.size(); ++i) {
      const std::string next = "sum" + std::to_string(i + 1);
      add("Add", {}, {total, sum_.rest[i]}, {next}, {});
      total = name(next);
    }
    made_.back().outputs[0] = sum_.result;
    return std::move(made_);
  }

 private:
  enum class kind { none, rows, weights, number };
  struct operand {
    std::string name;
    kind what = kind::none;
  };
  const graph_values& all_;
  const expert_sum& sum_;
  std::string base_;
  std::map<std::string, operand> values_;  // of the first expert
  std::vector<model_node> made_;

  std::string name(const std::string& own) const { return base_ + own; }
  /// The name that a value of the first expert gets.
  static std::string of_experts(const std::string& own) { return "of/" + own; }
  static model_attribute integer(const std::string& name, std::int64_t n) {
    model_attribute a;
    a.name = name;
    a.type = model_attribute::kind::integer;
    a.integer = n;
    return a;
  }
  void add(const std::string& operation, std::string_view domain, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::vector<model_attribute>& attributes) {
    model_node n;
    n.operation = operation;
    n.domain = std::string(domain);
    n.inputs = inputs;
    for (const std::string& out : outputs) n.outputs.push_back(name(out));
    n.attributes = attributes;
    made_.push_back(std::move(n));
  }
  /// A value of the first expert, for all experts.
  operand value(const std::string& own) {
    if (const auto found = values_.find(own); found != values_.end()) return found->second;
    if (!sum_.experts.constants().contains(own)) return {};
    const model_tensor* const t = all_.tensor(own);
    if (sum_.experts.number(own) && t->elements() == 1 && t->shape.size() < 2) return values_[own] = {own, kind::number};
    std::vector<std::string> inputs{name("count")};
    for (const std::string& one : sum_.experts.constants().at(own)) inputs.push_back(one);
    add("ExpertWeights", operators::experts_domain, inputs, {of_experts(own)}, {});
    return values_[own] = {name(of_experts(own)), kind::weights};
  }
  bool add_product(const std::string& x, std::string w, bool transposes, const std::string& out) {
    if (transposes) {
      model_attribute order;
      order.name = "perm";
      order.type = model_attribute::kind::integers;
      order.integers = {0, 1, 3, 2};
      const std::string transposed = "transposed/" + out;
      add("Transpose", {}, {w}, {transposed}, {order});
      w = name(transposed);
    }
    add("ExpertProduct", operators::experts_domain, {x, w, name("rows"), name("count")}, {of_experts(out)}, {});
    values_[out] = {name(of_experts(out)), kind::rows};
    return true;
  }
  bool add_bias(const std::string& x, const std::string& bias, const std::string& own, const std::string& out) {
    const model_tensor* const t = all_.tensor(own);
    if (!t || t->shape.size() != 1) return false;
    add("ExpertBias", operators::experts_domain, {x, bias, name("rows"), name("count")}, {of_experts(out)}, {});
    values_[out] = {name(of_experts(out)), kind::rows};
    return true;
  }
  int rank_of_weights(const std::string& own) const {
    const model_tensor* const t = all_.tensor(own);
    return t ? int(t->shape.size()) : 2;  // transposed ones are matrices
  }
  bool add_node(const model_node& n) {
    if (!n.domain.empty()) return false;
    std::vector<operand> in;
    bool any_rows = false, any_weights = false;
    for (const std::string& own : n.inputs) {
      in.push_back(value(own));
      if (in.back().what == kind::none && !own.empty()) return false;
      any_rows = any_rows || in.back().what == kind::rows;
      any_weights = any_weights || in.back().what == kind::weights;
    }
    const std::string& out = n.outputs[0];
    if (in.empty() || (!any_rows && !any_weights)) return false;
    if (!any_rows) return add_weights(n, in[0].name, out);
    if (n.operation == "MatMul" && in.size() == 2 && in[0].what == kind::rows && in[1].what == kind::weights)
      return rank_of_weights(n.inputs[1]) == 2 && add_product(in[0].name, in[1].name, false, out);
    if (n.operation == "Gemm" && in.size() > 1 && in[0].what == kind::rows && in[1].what == kind::weights) return add_gemm(n, in, out);
    if (n.operation == "Add" && in.size() == 2 && any_weights) {
      const std::size_t bias = in[0].what == kind::weights ? 0 : 1;
      return add_bias(in[1 - bias].name, in[bias].name, n.inputs[bias], out);
    }
    if (any_weights || !is_elementwise(n.operation)) return false;
    std::vector<std::string> inputs;
    for (const operand& o : in) inputs.push_back(o.name);
    add(n.operation, {}, inputs, {of_experts(out)}, n.attributes);
    values_[out] = {name(of_experts(out)), kind::rows};
    return true;
  }
  /// A transposed matrix of each expert.
  bool add_weights(const model_node& n, const std::string& w, const std::string& out) {
    const bool is_same = n.operation == "Identity", transposes = n.operation == "Transpose" && rank_of_weights(n.inputs[0]) == 2;
    if (!is_same && !transposes) return false;
    const std::vector<std::int64_t> order = all_.integers(n, "perm", 1);
    if (transposes && !order.empty() && order != std::vector<std::int64_t>{1, 0}) return false;
    if (is_same) return values_[out] = {w, kind::weights}, rank_of_weights(n.inputs[0]) == 2;
    model_attribute all;
    all.name = "perm";
    all.type = model_attribute::kind::integers;
    all.integers = {0, 1, 3, 2};
    add("Transpose", {}, {w}, {of_experts(out)}, {all});
    values_[out] = {name(of_experts(out)), kind::weights};
    return true;
  }
  bool add_gemm(const model_node& n, const std::vector<operand>& in, const std::string& out) {
    const auto real = [&](std::string_view attribute) {
      const model_attribute* const a = all_.attribute(n, attribute);
      return a ? a->real : 1.0f;
    };
    if (real("alpha") != 1 || real("beta") != 1 || all_.integer(n, "transA", 0) != 0 || rank_of_weights(n.inputs[1]) != 2) return false;
    const bool has_bias = in.size() > 2 && in[2].what != kind::none;
    if (has_bias && in[2].what != kind::weights) return false;
    const std::string product = has_bias ? "product/" + out : out;
    add_product(in[0].name, in[1].name, all_.integer(n, "transB", 0) != 0, product);
    return !has_bias || add_bias(name(of_experts(product)), in[2].name, n.inputs[2], out);
  }
  /// Operators that compute each row alone, whatever its dims.
  static bool is_elementwise(std::string_view operation) {
    constexpr std::string_view all[]{"Abs",  "Add",  "Cast",    "Clip",     "Div",  "Elu",      "Erf",      "Exp",  "Gelu",
                                     "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish", "Mul", "Neg", "Pow",
                                     "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tanh"};
    return std::find(std::begin(all), std::end(all), operation) != std::end(all);
  }
};

}  // namespace rewriting

}}}  // namespace gshard::v0::onnx
