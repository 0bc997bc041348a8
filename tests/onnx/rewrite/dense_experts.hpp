// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A mixture of experts as exporters write it: all experts compute all tokens, and most weights are zero.

#include "../make_model.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace onnx_tests {

/// How the weights of one expert are computed from the choices of tokens.
enum class expert_weights { masked_product, masked_choice, scattered, one_hot };

struct dense_experts {
  static constexpr int tokens = 6, features = 3, hidden = 5, experts = 4, k = 2;

  expert_weights weights = expert_weights::masked_product;
  bool uses_gemm = false;
  graph g{};

  static on::model_tensor waves(const shape& extents, double step) {
    std::vector<double> all;
    std::size_t count = 1;
    for (const std::int64_t e : extents) count *= std::size_t(e);
    for (std::size_t i = 0; i < count; ++i) all.push_back(double(float(std::sin(step * double(i + 1)))));
    return f32(extents, all);
  }
  static on::model_tensor input() { return waves({tokens, features}, 1.7); }

  void weight(const std::string& e) {
    const std::vector<std::int64_t> last{-1};
    switch (weights) {
      case expert_weights::masked_product:
        g.nodes.push_back({"Equal", {"choices", "number." + e}, {"chosen." + e}});
        g.nodes.push_back({"Cast", {"chosen." + e}, {"mask." + e}, {{"to", 1}}});
        g.nodes.push_back({"Mul", {"weights", "mask." + e}, {"masked." + e}});
        g.nodes.push_back({"ReduceSum", {"masked." + e, "last"}, {"weight." + e}});
        break;
      case expert_weights::masked_choice:
        g.nodes.push_back({"Equal", {"number." + e, "choices"}, {"chosen." + e}});
        g.nodes.push_back({"Where", {"chosen." + e, "weights", "zero"}, {"masked." + e}});
        g.nodes.push_back({"ReduceSum", {"masked." + e, "last"}, {"sum." + e}, {{"keepdims", 0}}});
        g.nodes.push_back({"Unsqueeze", {"sum." + e, "last"}, {"weight." + e}});
        break;
      case expert_weights::scattered:
        g.nodes.push_back({"Gather", {"all", "number." + e}, {"column." + e}, {{"axis", -1}}});
        g.nodes.push_back({"Unsqueeze", {"column." + e, "last"}, {"weight." + e}});
        break;
      case expert_weights::one_hot:
        g.nodes.push_back({"Slice", {"all", "from." + e, "to." + e, "last"}, {"weight." + e}});
        break;
    }
  }
  void expert(int number) {
    const std::string e = std::to_string(number);
    const std::string of = "experts." + e + ".";
    g.initializers.emplace_back(of + "w1", uses_gemm ? waves({hidden, features}, 0.7 + number) : waves({features, hidden}, 0.7 + number));
    g.initializers.emplace_back(of + "b1", waves({hidden}, 0.3 + number));
    g.initializers.emplace_back(of + "w2", waves({hidden, features}, 0.9 + number));
    g.initializers.emplace_back("number." + e, i64({}, {double(number)}));
    g.initializers.emplace_back("from." + e, i64({1}, {double(number)}));
    g.initializers.emplace_back("to." + e, i64({1}, {double(number + 1)}));
    weight(e);
    if (uses_gemm) {
      g.nodes.push_back({"Gemm", {"x", of + "w1", of + "b1"}, {of + "h"}, {{"transB", 1}}});
    } else {
      g.nodes.push_back({"MatMul", {"x", of + "w1"}, {of + "product"}});
      g.nodes.push_back({"Add", {of + "b1", of + "product"}, {of + "h"}});
    }
    g.nodes.push_back({"Sigmoid", {of + "h"}, {of + "gate"}});
    g.nodes.push_back({"Mul", {of + "h", of + "gate"}, {of + "active"}});
    g.nodes.push_back({"MatMul", {of + "active", of + "w2"}, {of + "y"}});
    g.nodes.push_back({"Mul", {of + "y", "weight." + e}, {of + "term"}});
    const std::string before = number == 0 ? "x" : "sum." + std::to_string(number - 1) + ".all";
    g.nodes.push_back({"Add", {before, of + "term"}, {number + 1 == experts ? "y" : "sum." + e + ".all"}});
  }
  on::model make() {
    g.inputs.push_back({"x", on::element::f32, {std::to_string(tokens), std::to_string(features)}});
    g.initializers = {{"router", waves({features, experts}, 2.3)},
                      {"count", i64({1}, {double(k)})},
                      {"last", i64({1}, {-1})},
                      {"before_last", i64({1}, {-2})},
                      {"zero", f32({}, {0})},
                      {"depth", i64({}, {double(experts)})},
                      {"off_on", f32({2}, {0, 1})}};
    g.nodes = {{"MatMul", {"x", "router"}, {"logits"}},
               {"Softmax", {"logits"}, {"probabilities"}, {{"axis", -1}}},
               {"TopK", {"probabilities", "count"}, {"gates", "choices"}},
               {"ReduceSum", {"gates", "last"}, {"total"}},
               {"Div", {"gates", "total"}, {"weights"}}};
    if (weights == expert_weights::scattered) {
      g.nodes.push_back({"Shape", {"probabilities"}, {"shape"}});
      g.nodes.push_back({"ConstantOfShape", {"shape"}, {"zeros"}});
      g.nodes.push_back({"ScatterElements", {"zeros", "choices", "weights"}, {"all"}, {{"axis", 1}}});
    }
    if (weights == expert_weights::one_hot) {
      g.nodes.push_back({"OneHot", {"choices", "depth", "off_on"}, {"hot"}});
      g.nodes.push_back({"Unsqueeze", {"weights", "last"}, {"column"}});
      g.nodes.push_back({"Mul", {"hot", "column"}, {"weighted"}});
      g.nodes.push_back({"ReduceSum", {"weighted", "before_last"}, {"all"}, {{"keepdims", 0}}});
    }
    for (int e = 0; e < experts; ++e) expert(e);
    g.outputs.push_back({"y"});
    return model_of(g);
  }
};

}  // namespace onnx_tests
