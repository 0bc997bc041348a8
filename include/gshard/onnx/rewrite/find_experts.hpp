// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Recognises a mixture of experts that a model computes as a loop over all experts, as exporters write it:
//
//   y = sum over e of w_e * f_e(x)
//
// The weights w_e of a token are zero, but for the k experts of a TopK. The f_e are the same operators with other initializers. The graph
// is rewritten: each token is sent to its k experts, and their results are combined.

#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/operators/experts.hpp>
#include <gshard/onnx/rewrite/expert_nodes.hpp>
#include <gshard/onnx/rewrite/expert_rewriter.hpp>
#include <gshard/onnx/rewrite/expert_weight.hpp>
#include <gshard/onnx/rewrite/graph_values.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace rewriting {

/// Finds the sums over experts of a graph.
class sum_finder {
 public:
  sum_finder(const model_graph& g, const std::set<std::string>& given) : all_(g, given), weights_(all_) {}

  /// The graph with experts that get their tokens alone, or nothing if it has no sum over experts.
  std::optional<model_graph> rewritten() {
    std::map<std::size_t, std::vector<model_node>> made;  // in place of these nodes
    std::set<std::size_t> inner;                          // of sums that were looked at
    const std::vector<model_node>& nodes = all_.graph().nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (!is_sum(nodes[i]) || inner.contains(i)) continue;
      std::vector<std::string> terms;
      add_terms(nodes[i], terms, inner);
      const std::optional<expert_sum> found = find(nodes[i].outputs[0], terms);
      if (!found) continue;
      if (auto in_place = expert_rewriter(all_, *found).nodes()) made[i] = std::move(*in_place);
    }
    if (made.empty()) return std::nullopt;
    model_graph g = all_.graph();
    g.nodes.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto in_place = made.find(i);
      const std::size_t first = g.nodes.size();
      if (in_place == made.end()) g.nodes.push_back(nodes[i]);
      else std::move(in_place->second.begin(), in_place->second.end(), std::back_inserter(g.nodes));
      for (std::size_t k = first; k < g.nodes.size(); ++k) g.nodes[k].number = std::uint32_t(i + 1);
    }
    remove_unread(g);
    return g;
  }

 private:
  graph_values all_;
  weight_finder weights_;

  static bool is_sum(const model_node& n) {
    return n.domain.empty() && n.outputs.size() == 1 && (n.operation == "Add" || n.operation == "Sum");
  }
  /// Adds the terms of a sum and of the sums in it, which nobody else reads.
  void add_terms(const model_node& n, std::vector<std::string>& terms, std::set<std::size_t>& inner) const {
    std::vector<const model_node*> open{&n};
    inner.insert(all_.index_of(n));
    while (!open.empty()) {
      const model_node* const sum = open.back();
      open.pop_back();
      for (const std::string& in : sum->inputs) {
        const model_node* const m = all_.maker(in);
        if (m && is_sum(*m) && all_.readers(in) == 1 && inner.insert(all_.index_of(*m)).second) open.push_back(m);
        else terms.push_back(in);
      }
    }
  }
  /// The values that a value is made of.
  std::set<std::string> cone(const std::string& value) const {
    std::set<std::string> found;
    std::vector<std::string> open{value};
    while (!open.empty()) {
      const std::string v = std::move(open.back());
      open.pop_back();
      if (v.empty() || all_.is_constant(v) || !found.insert(v).second) continue;
      if (const model_node* const n = all_.maker(v)) open.insert(open.end(), n->inputs.begin(), n->inputs.end());
    }
    return found;
  }
  /// The one value of which both are made, or nothing.
  std::optional<std::string> common_input(const std::string& a, const std::string& b) const {
    const std::set<std::string> of_b = cone(b);
    std::set<std::string> found, seen;
    std::vector<std::string> open{a};
    while (!open.empty()) {
      const std::string v = std::move(open.back());
      open.pop_back();
      if (v.empty() || all_.is_constant(v) || !seen.insert(v).second) continue;
      const model_node* const n = all_.maker(v);
      if (of_b.contains(v)) found.insert(v);
      else if (n) open.insert(open.end(), n->inputs.begin(), n->inputs.end());
      else return std::nullopt;
    }
    return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
  }
  std::optional<expert_sum> find(const std::string& result, const std::vector<std::string>& terms) const {
    struct term {
      expert_weight weight;
      std::string name, expert, term;  // of the weight, the expert's result, and their product
    };
    std::vector<term> of_experts;
    std::vector<std::string> rest;
    for (const std::string& t : terms) {
      const model_node* const n = all_.maker(t);
      std::optional<expert_weight> w;
      if (n && n->domain.empty() && n->operation == "Mul" && n->inputs.size() == 2)
        for (const std::size_t i : {0u, 1u}) {
          if (w) continue;
          w = weights_.find(n->inputs[i]);
          if (w) of_experts.push_back({*w, n->inputs[i], n->inputs[1 - i], t});
        }
      if (!w) rest.push_back(t);
    }
    // Experts of other choices are computed as they are written.
    for (std::size_t i = of_experts.size(); i-- > 1;)
      if (of_experts[i].weight.choices != of_experts[0].weight.choices) {
        rest.push_back(of_experts[i].term);
        of_experts.erase(of_experts.begin() + std::ptrdiff_t(i));
      }
    if (of_experts.size() < 2) return std::nullopt;
    std::sort(of_experts.begin(), of_experts.end(), [](const term& a, const term& b) { return a.weight.expert < b.weight.expert; });
    const std::optional<std::string> x = common_input(of_experts[0].expert, of_experts[1].expert);
    if (!x) return std::nullopt;
    expert_sum sum{result, {}, std::move(rest), of_experts[0].weight.k, expert_nodes(all_, *x, of_experts[0].expert)};
    std::set<std::int64_t> numbers;
    for (const term& t : of_experts) {
      if (!numbers.insert(t.weight.expert).second || !sum.experts.add(t.expert)) return std::nullopt;
      sum.weights.push_back(t.name);
    }
    return sum;
  }
  /// Removes the nodes whose outputs nobody reads.
  static void remove_unread(model_graph& g) {
    std::set<std::string> read;
    for (const model_value& out : g.outputs) read.insert(out.name);
    std::vector<model_node> kept;
    for (std::size_t i = g.nodes.size(); i-- > 0;) {
      const model_node& n = g.nodes[i];
      if (std::none_of(n.outputs.begin(), n.outputs.end(), [&](const std::string& out) { return read.contains(out); })) continue;
      add_reads(n, read);
      kept.push_back(n);
    }
    std::reverse(kept.begin(), kept.end());
    g.nodes = std::move(kept);
  }
  static void add_reads(const model_node& n, std::set<std::string>& read) {
    read.insert(n.inputs.begin(), n.inputs.end());
    for (const model_attribute& a : n.attributes) {
      if (!a.graph) continue;
      for (const model_node& inner : a.graph->nodes) add_reads(inner, read);
      for (const model_value& out : a.graph->outputs) read.insert(out.name);
    }
  }
};

}  // namespace rewriting

/// The model with mixtures of experts in place of loops over all experts, or nothing if it has none. `given`: the inputs whose elements or
/// shape the caller states.
inline std::optional<model> find_experts(const model& m, const std::set<std::string>& given = {}) {
  std::optional<model_graph> g = rewriting::sum_finder(m.graph, given).rewritten();
  if (!g) return std::nullopt;
  model found = m;
  found.graph = std::move(*g);
  found.opsets.emplace_back(operators::experts_domain, 1);
  return found;
}

}}}  // namespace gshard::v0::onnx
