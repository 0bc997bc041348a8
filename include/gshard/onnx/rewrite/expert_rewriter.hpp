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
    make(own, kind::weights, "ExpertWeights", operators::experts_domain, inputs);
    return values_[own];
  }
  /// Adds an operator whose output takes the place of a value of the first expert.
  void make(const std::string& out, kind what, const std::string& operation, std::string_view domain,
            const std::vector<std::string>& inputs, const std::vector<model_attribute>& attributes = {}) {
    add(operation, domain, inputs, {of_experts(out)}, attributes);
    values_[out] = {name(of_experts(out)), what};
  }
  void make_product(const std::string& out, const std::string& x, const std::string& w) {
    make(out, kind::rows, "ExpertProduct", operators::experts_domain, {x, w, name("rows"), name("count")});
  }
  /// The matrix of each expert, transposed.
  void make_transposed(const std::string& out, const std::string& w) {
    model_attribute order;
    order.name = "perm";
    order.type = model_attribute::kind::integers;
    order.integers = {0, 1, 3, 2};
    make(out, kind::weights, "Transpose", {}, {w}, {order});
  }
  bool add_bias(const std::string& x, const std::string& bias, const std::string& own, const std::string& out) {
    const model_tensor* const t = all_.tensor(own);
    if (!t || t->shape.size() != 1) return false;
    make(out, kind::rows, "ExpertBias", operators::experts_domain, {x, bias, name("rows"), name("count")});
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
    const bool by_matrix = in.size() > 1 && in[0].what == kind::rows && in[1].what == kind::weights && rank_of_weights(n.inputs[1]) == 2;
    if (n.operation == "MatMul" && by_matrix && in.size() == 2) return make_product(out, in[0].name, in[1].name), true;
    if (n.operation == "Gemm" && by_matrix) return add_gemm(n, in, out);
    if (n.operation == "Add" && in.size() == 2 && any_weights) {
      const std::size_t bias = in[0].what == kind::weights ? 0 : 1;
      return add_bias(in[1 - bias].name, in[bias].name, n.inputs[bias], out);
    }
    if (any_weights || !is_elementwise(n.operation)) return false;
    std::vector<std::string> inputs;
    for (const operand& o : in) inputs.push_back(o.name);
    make(out, kind::rows, n.operation, {}, inputs, n.attributes);
    return true;
  }
  /// An operator of a matrix of each expert alone.
  bool add_weights(const model_node& n, const std::string& w, const std::string& out) {
    if (rank_of_weights(n.inputs[0]) != 2) return false;
    if (n.operation == "Identity") return values_[out] = {w, kind::weights}, true;
    const std::vector<std::int64_t> order = all_.integers(n, "perm", 1);
    if (n.operation != "Transpose" || (!order.empty() && order != std::vector<std::int64_t>{1, 0})) return false;
    make_transposed(out, w);
    return true;
  }
  bool add_gemm(const model_node& n, const std::vector<operand>& in, const std::string& out) {
    const auto real = [&](std::string_view attribute) {
      const model_attribute* const a = all_.attribute(n, attribute);
      return a ? a->real : 1.0f;
    };
    if (real("alpha") != 1 || real("beta") != 1 || all_.integer(n, "transA", 0) != 0) return false;
    const bool has_bias = in.size() > 2 && in[2].what != kind::none;
    if (has_bias && in[2].what != kind::weights) return false;
    const std::string transposed = "transposed/" + out, product = has_bias ? "product/" + out : out;
    const bool transposes = all_.integer(n, "transB", 0) != 0;
    if (transposes) make_transposed(transposed, in[1].name);
    make_product(product, in[0].name, transposes ? values_[transposed].name : in[1].name);
    return !has_bias || add_bias(values_[product].name, in[2].name, n.inputs[2], out);
  }
  /// Operators that compute each row alone, whatever its dims.
  static bool is_elementwise(std::string_view operation) {
    constexpr std::string_view all[]{"Abs",         "Add",       "Cast",     "Clip",      "Div",      "Elu",  "Erf",   "Exp",  "Gelu",
                                     "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish",     "Mul",  "Neg",   "Pow",  "Relu",
                                     "Selu",        "Sigmoid",   "Softplus", "Softsign",  "Sqrt",     "Sub",  "Swish", "Tanh"};
    return std::find(std::begin(all), std::end(all), operation) != std::end(all);
  }
};

}  // namespace rewriting

}}}  // namespace gshard::v0::onnx
