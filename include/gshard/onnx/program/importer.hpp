// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Walks the nodes of a model, and adds them to a program.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/node/imported_value.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/program/annotations.hpp>
#include <gshard/onnx/program/find_operator.hpp>
#include <gshard/onnx/program/fold.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// The values of a graph and of the graphs around it, by name.
class value_scope {
 public:
  explicit value_scope(value_scope* around = nullptr) : around_(around) {}

  imported_value* find(const std::string& name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return &found->second;
    return around_ ? around_->find(name) : nullptr;
  }
  /// The same in the graph alone.
  bool find_own(const std::string& name) const { return values_.contains(name); }
  /// False if the graph has a value of this name.
  bool add(const std::string& name, imported_value v) { return values_.emplace(name, std::move(v)).second; }

 private:
  std::map<std::string, imported_value> values_;
  value_scope* around_;
};

/// Imports the graphs of a model into one program.
class importer {
 public:
  /// `names`: of the file and of nodes, to which the places of the program's operations refer.
  importer(const model& m, builder& program, std::deque<std::string>& names, std::map<std::string, sharded_axes> annotations,
           std::string expert_axis = {})
      : model_(m), names_(names) {
    state_.program = &program;
    names_.push_back(m.path);
    program.keeps_place = true;
    state_.expert_axis = std::move(expert_axis);
    if (!annotations.empty())
      state_.annotated = [&program, all = std::move(annotations)](symbol x, const std::string& name) {
        const auto found = all.find(name);
        if (found == all.end()) return x;
        return checked(annotate(x, spec_of(found->second, program.mesh, x.rank(), name)));
      };
    state_.run_graph = [this](const model_graph& g, std::vector<imported_value> given) { return run(g, std::move(given), scope_); };
  }
  importer(const importer&) = delete;
  importer& operator=(const importer&) = delete;

  /// The outputs of the model's graph. `given`: the values of its inputs, by name; an input without one is an initializer.
  std::vector<imported_value> run(std::map<std::string, imported_value> given) {
    value_scope values;
    for (auto& [name, v] : given) values.add(name, std::move(v));
    return run(model_.graph, values);
  }
  /// An output as a tensor of the program.
  symbol output(imported_value& v) { return tensor_of(state_, v); }
  std::vector<stored_tensor>& stored() { return state_.stored; }

 private:
  static constexpr int most_depth = 32;  // of graphs in nodes

  const model& model_;
  std::deque<std::string>& names_;
  import_state state_;
  value_scope* scope_ = nullptr;
  const opset_list* opsets_ = &model_.opsets;  // of the model, or of the function that is being called
  int depth_ = 0;

  static std::string quoted(const std::string& text) {
    std::string shown;
    for (const char c : text.substr(0, 200)) shown += c >= 0 && c < ' ' ? '?' : c;
    return '"' + shown + '"';
  }
  static std::string text_of_node(const model_node& n) {
    std::string text = "the operator ";
    if (!n.domain.empty()) text += n.domain + ".";
    text += n.operation;
    if (!n.name.empty()) return text + " (node " + quoted(n.name) + ")";
    for (const std::string& out : n.outputs)
      if (!out.empty()) return text + " (of " + quoted(out) + ")";
    return text;
  }

  std::vector<imported_value> run(const model_graph& g, std::vector<imported_value> given, value_scope* around) {
    if (given.size() > g.inputs.size())
      throw error("calls a graph of " + std::to_string(g.inputs.size()) + " inputs with " + std::to_string(given.size()));
    value_scope values(around);
    for (std::size_t i = 0; i < given.size(); ++i) values.add(g.inputs[i].name, std::move(given[i]));
    return run(g, values);
  }
  std::vector<imported_value> run(const model_graph& g, value_scope& values) {
    if (depth_ == most_depth) throw error("has graphs in more than " + std::to_string(most_depth) + " nodes");
    if (g.has_sparse_initializers) throw error("the graph has sparse initializers, which gshard does not read");
    value_scope* const around = std::exchange(scope_, &values);
    ++depth_;
    std::set<std::string> initialized;
    for (const model_tensor& t : g.initializers) {
      if (!initialized.insert(t.name).second) throw error("the graph has two initializers " + quoted(t.name));
      if (!values.find_own(t.name)) values.add(t.name, value_of(std::make_shared<const model_tensor>(t), t.name));
    }
    for (const model_node& n : g.nodes) add(n, values);
    std::vector<imported_value> outputs;
    for (const model_value& out : g.outputs) {
      imported_value* const v = values.find(out.name);
      if (!v) throw error("no node has the output " + quoted(out.name) + " of the graph");
      outputs.push_back(*v);
    }
    --depth_;
    scope_ = around;
    return outputs;
  }

  /// The operations of a node are at its number in the file. Those of inner graphs are at the outer node.
  void set_place(const model_node& node) {
    std::string name = node.name;
    for (std::size_t i = 0; i < node.outputs.size() && name.empty(); ++i) name = node.outputs[i];
    names_.push_back(std::move(name));
    code_place& place = state_.program->place;
    const auto number = node.number > 0 ? node.number : std::uint32_t(&node - model_.graph.nodes.data() + 1);
    place = {.file = names_.front().c_str(), .line = number, .scope = names_.back().c_str()};
  }
  void add(const model_node& node, value_scope& values) {
    if (depth_ == 1) set_place(node);
    try {
      std::vector<imported_value> results = results_of(node, values);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        if (results[i].type == element::undefined) throw error("has its output " + std::to_string(i) + ", which gshard does not compute");
        if (state_.annotated && depth_ == 1 && results[i].tensor.id >= 0)
          results[i].tensor = state_.annotated(results[i].tensor, node.outputs[i]);
        if (!values.add(node.outputs[i], std::move(results[i])))
          throw error("makes the value " + quoted(node.outputs[i]) + " a second time");
      }
    } catch (const unknown_value& e) {
      if (depth_ > 1) throw;
      throw unknown_value(text_of_node(node) + " " + e.what(), e.value);
    } catch (const refused_node&) {
      throw;  // of an inner graph
    } catch (const error& e) {
      throw refused_node(text_of_node(node) + " " + e.what());
    }
  }
  const model_function* function_of(const model_node& node) const {
    for (const model_function& f : model_.functions)
      if (f.name == node.operation && f.domain == node.domain && f.overload == node.overload) return &f;
    return nullptr;
  }
  /// The attributes of a node in a function: those that refer to the call have its values, or the defaults.
  static std::vector<model_attribute> attributes_of_call(const model_function& f, const model_node& node, const model_node& call) {
    std::vector<model_attribute> all;
    for (const model_attribute& a : node.attributes) {
      if (a.refers_to.empty()) {
        all.push_back(a);
        continue;
      }
      for (const std::vector<model_attribute>* const from : {&call.attributes, &f.defaults}) {
        const auto found = std::find_if(from->begin(), from->end(), [&](const model_attribute& b) { return b.name == a.refers_to; });
        if (found == from->end()) continue;
        all.push_back(*found);
        all.back().name = a.name;
        break;
      }
    }
    return all;
  }
  /// The nodes of a function in place of its call.
  std::vector<imported_value> call_function(const model_function& f, const model_node& call, const std::vector<imported_value*>& inputs) {
    if (depth_ == most_depth) throw error("is a function in more than " + std::to_string(most_depth) + " others");
    value_scope values;
    for (std::size_t i = 0; i < inputs.size() && i < f.inputs.size(); ++i)
      if (inputs[i]) values.add(f.inputs[i], *inputs[i]);
    value_scope* const around = std::exchange(scope_, &values);
    const opset_list* const before = std::exchange(opsets_, &f.opsets);
    ++depth_;
    for (model_node node : f.nodes) {
      node.attributes = attributes_of_call(f, node, call);
      for (std::string& name : node.inputs)  // optional inputs that the call leaves out
        if (!values.find(name) && std::find(f.inputs.begin(), f.inputs.end(), name) != f.inputs.end()) name.clear();
      add(node, values);
    }
    std::vector<imported_value> outputs(call.outputs.size());
    for (std::size_t i = 0; i < call.outputs.size() && i < f.outputs.size(); ++i)
      if (const imported_value* const v = values.find(f.outputs[i])) outputs[i] = *v;
    --depth_;
    opsets_ = before;
    scope_ = around;
    return outputs;
  }
  std::vector<imported_value> results_of(const model_node& node, value_scope& values) {
    std::vector<imported_value*> inputs;
    for (const std::string& name : node.inputs) {
      inputs.push_back(name.empty() ? nullptr : values.find(name));
      if (!name.empty() && !inputs.back()) throw error("reads " + quoted(name) + ", which no node before it makes");
    }
    if (const model_function* const f = function_of(node)) return call_function(*f, node, inputs);
    const std::int64_t opset = opset_of(*opsets_, node.domain);
    if (opset < 0) throw error("belongs to a domain that opset_import does not name");
    node_call call(state_, node, opset, std::move(inputs));
    if (node.domain.empty() && folding::fold(call)) return std::move(call.results());
    const operator_row* const found = find_operator(node.domain, node.operation);
    if (!found) throw error("is not one that gshard imports");
    call.results().assign(node.outputs.size(), {});
    found->add(call);
    if (const std::string left = call.unread(); !left.empty()) throw error("has the attribute " + left + ", which gshard does not know");
    return std::move(call.results());
  }
};

}}}  // namespace gshard::v0::onnx
