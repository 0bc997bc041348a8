// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks that all experts apply the same operators, with different constants.

#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/rewrite/graph_values.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace rewriting {

/// The same operators for all experts, with other constants.
class expert_nodes {
 public:
  /// `x`: the input of all experts. `first`: the result of the first expert.
  expert_nodes(const graph_values& all, std::string x, std::string first) : all_(all), x_(std::move(x)), first_(std::move(first)) {}

  /// Adds the expert with this result. False if its operators differ from the first one's.
  bool add(const std::string& result) {
    others_.clear();
    depth_ = 0;
    for (auto& [name, values] : constants_) values.resize(std::size_t(count_));
    if (!same(first_, result)) return false;
    for (auto& [name, values] : constants_)
      if (values.size() != std::size_t(count_) + 1) return false;
    ++count_;
    return true;
  }
  const std::string& x() const { return x_; }
  const std::string& result() const { return first_; }
  /// The nodes of the first expert, in order.
  const std::set<std::size_t>& nodes() const { return nodes_; }
  /// The constants of the experts, by the name of the first one's. All are of one type and shape.
  const std::map<std::string, std::vector<std::string>>& constants() const { return constants_; }
  /// The number that a constant is for all experts.
  std::optional<double> number(const std::string& constant) const {
    std::optional<double> found;
    for (const std::string& one : constants_.at(constant)) {
      const std::optional<double> n = all_.number(one);
      if (!n || (found && *found != *n)) return std::nullopt;
      found = n;
    }
    return found;
  }

 private:
  const graph_values& all_;
  std::string x_, first_;
  int count_ = 0;
  std::set<std::size_t> nodes_;
  std::map<std::string, std::vector<std::string>> constants_;
  std::map<std::string, std::string> others_;  // values of the first expert, and those of the added one

  static constexpr int most_depth = 1000;
  int depth_ = 0;

  bool same(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == x_ || b == x_) return a == b;
    if (const auto seen = others_.find(a); seen != others_.end()) return seen->second == b;
    others_[a] = b;
    if (all_.is_constant(a) || all_.is_constant(b)) {
      const model_tensor *const one = all_.tensor(a), *const other = all_.tensor(b);
      if (!one || !other || one->type != other->type || one->shape != other->shape) return false;
      constants_[a].push_back(b);
      return true;
    }
    const model_node *const n = all_.maker(a), *const m = all_.maker(b);
    if (!n || !m || n->operation != m->operation || n->domain != m->domain || n->inputs.size() != m->inputs.size()) return false;
    if (n->outputs.size() != 1 || m->outputs.size() != 1 || !same(n->attributes, m->attributes)) return false;
    if (depth_ == most_depth) return false;
    ++depth_;
    for (std::size_t i = 0; i < n->inputs.size(); ++i)
      if (!same(n->inputs[i], m->inputs[i])) return false;
    --depth_;
    nodes_.insert(all_.index_of(*n));
    return true;
  }
  static bool same(const std::vector<model_attribute>& a, const std::vector<model_attribute>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const model_attribute& x, const model_attribute& y) {
      return x.name == y.name && x.type == y.type && x.real == y.real && x.integer == y.integer && x.text == y.text &&
             x.reals == y.reals && x.integers == y.integers && !x.tensor && !y.tensor && !x.graph && !y.graph;
    });
  }
};

}  // namespace rewriting

}}}  // namespace gshard::v0::onnx
