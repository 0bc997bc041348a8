// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks a model against a folder of test data: on one device, and with shardings of its inputs on meshes of simulated devices.

#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/onnx/file/read_model.hpp>
#include <gshard/onnx/program/import_program.hpp>
#include <gshard/onnx/program/input_shardings.hpp>
#include <gshard/onnx/program/run_model.hpp>
#include <gshard/runtime/runtime_plan.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

struct check_options {
  onnx::tolerance tolerance{};
  std::vector<std::vector<int>> meshes{{2}, {3}, {2, 2}};  ///< The extents of their axes.
  std::size_t most = 12;                                   ///< The most shardings on one mesh; more of them are sampled.
  /// The plan that runs, in place of the program's own: such as one that was written to a file and read.
  std::function<runtime_plan(const imported_program&)> plan{};
};
struct check_result {
  enum class outcome : std::uint8_t { passed, refused, wrong };
  outcome what = outcome::passed;
  std::string text;  ///< Why it is refused, or the first wrong result.
  int runs = 0;
  bool is_known = false;  ///< All results were computed while importing.
};

namespace checking {

/// The tensors of a data set: input_0.pb, input_1.pb, ...
inline std::vector<model_tensor> tensors_in(const std::string& folder, const std::string& kind) {
  std::vector<model_tensor> all;
  for (std::string path; path = folder + "/" + kind + "_" + std::to_string(all.size()) + ".pb", ::access(path.c_str(), F_OK) == 0;)
    all.push_back(read_tensor(path));
  return all;
}

/// ONNX's own writer of test data stores bfloat16 as uint16.
inline void correct_type(model_tensor& t, element declared) {
  if (declared == element::bf16 && t.type == element::u16) t.type = element::bf16;
}

/// The inputs of a graph on which a value depends.
inline std::set<std::string> inputs_behind(const model_graph& g, const std::string& value) {
  std::set<std::string> found, open{value}, inputs;
  for (const model_value& v : g.inputs) inputs.insert(v.name);
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const model_node& n = g.nodes[i];
    if (std::any_of(n.outputs.begin(), n.outputs.end(), [&](const std::string& out) { return open.contains(out); }))
      open.insert(n.inputs.begin(), n.inputs.end());
  }
  for (const std::string& name : open)
    if (inputs.contains(name)) found.insert(name);
  return found;
}

/// A model with its inputs: which of them are fixed, because their elements must be known.
class fixed_inputs {
 public:
  fixed_inputs(const model& m, std::vector<model_tensor> given) : model_(m) {
    std::set<std::string> initializers;
    for (const model_tensor& t : m.graph.initializers) initializers.insert(t.name);
    std::vector<std::string> names;
    for (const model_value& v : m.graph.inputs)
      if (!initializers.contains(v.name)) names.push_back(v.name);
    if (given.size() > names.size()) {  // data for inputs that have defaults
      names.clear();
      for (const model_value& v : m.graph.inputs) names.push_back(v.name);
    }
    for (std::size_t i = 0; i < given.size() && i < names.size(); ++i) {
      options_.shapes[names[i]] = given[i].shape;
      if (initializers.contains(names[i]))
        options_.fixed[names[i]] = constant_of(given[i]);
      else
        given_.emplace_back(names[i], std::move(given[i]));
    }
  }

  /// The program on a mesh. Inputs whose elements it needs become fixed.
  imported_program program(const any_mesh& mesh, const std::map<std::string, std::string>& shardings) {
    options_.shardings = shardings;
    for (;;) {
      try {
        return import_program(model_, mesh, options_);
      } catch (const unknown_value& e) {
        if (!fix(inputs_behind(model_.graph, e.value)) && !fix_integers()) throw;
      }
    }
  }
  std::vector<model_tensor> tensors() const {
    std::vector<model_tensor> all;
    for (const auto& [name, t] : given_)
      if (!options_.fixed.contains(name)) all.push_back(t);
    return all;
  }

 private:
  const model& model_;
  std::vector<std::pair<std::string, model_tensor>> given_;
  import_options options_;

  bool fix(const std::set<std::string>& names) {
    bool any = false;
    for (const auto& [name, t] : given_)
      if (names.contains(name) && can_be_known(t.type)) any = options_.fixed.emplace(name, constant_of(t)).second || any;
    return any;
  }
  bool fix_integers() {
    std::set<std::string> names;
    for (const auto& [name, t] : given_)
      if (is_integer(t.type) || t.type == element::boolean) names.insert(name);
    return fix(names);
  }
};

inline std::string difference_of_all(const imported_program& p, const std::vector<runtime_tensor>& found,
                                     const std::vector<model_tensor>& expected, const tolerance& allowed) {
  if (expected.size() > found.size())
    return "it has " + std::to_string(found.size()) + " outputs, and not " + std::to_string(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const std::string text = difference_of(found[i], expected[i], allowed); !text.empty())
      return "the output \"" + p.outputs[i].name + "\" " + text;
  return {};
}

}  // namespace checking

/// Checks a model with these inputs and outputs. What a mesh of one device refuses is refused; later, an error is a wrong result.
inline check_result check_tensors(const model& m, std::vector<model_tensor> given, const std::vector<model_tensor>& expected,
                                  const check_options& options = {}) {
  check_result result;
  std::string at = "one device";
  const auto fails = [&](check_result::outcome what, const std::string& text) {
    result.what = what;
    result.text = text;
    return result;
  };
  try {
    checking::fixed_inputs inputs(m, std::move(given));
    std::vector<imported_port> ports;
    const auto run = [&](const std::vector<int>& extents, const std::map<std::string, std::string>& shardings) {
      const any_cluster on = simulate(any_mesh(extents.size() == 1 ? "x" : "x,y"), extents);
      const imported_program p = inputs.program(on.mesh(), shardings);
      ports = p.inputs;
      ++result.runs;
      const runtime_plan plan = options.plan ? options.plan(p) : runtime_plan(p.program);
      return checking::difference_of_all(p, run_once(p, plan, on, inputs.tensors()), expected, options.tolerance);
    };
    if (const std::string text = run({1}, {}); !text.empty()) return fails(check_result::outcome::wrong, at + ": " + text);
    result.is_known = ports.empty();
    const std::vector<imported_port> free = ports;
    for (const std::vector<int>& mesh : options.meshes) {
      const std::vector<std::string> axes = mesh.size() == 1 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "y"};
      std::vector<std::vector<std::string>> choices;
      for (const imported_port& in : free) choices.push_back(all_sharding_texts(int(in.extents.size()), axes));
      for (const std::vector<std::string>& chosen : combinations(choices, options.most)) {
        std::map<std::string, std::string> shardings;
        at = std::to_string(mesh[0]) + (mesh.size() == 1 ? "" : "x" + std::to_string(mesh[1])) + " devices";
        for (std::size_t i = 0; i < chosen.size(); ++i) {
          shardings[free[i].name] = chosen[i];
          at += (i ? " " : ", ") + chosen[i];
        }
        if (const std::string text = run(mesh, shardings); !text.empty()) return fails(check_result::outcome::wrong, at + ": " + text);
      }
    }
  } catch (const error& e) {
    return fails(at == "one device" ? check_result::outcome::refused : check_result::outcome::wrong,
                 at == "one device" ? std::string(e.what()) : at + ": " + e.what());
  }
  return result;
}

/// The same with a data set: a folder with the files input_0.pb, output_0.pb, and so on. A file that is not a tensor is refused.
inline check_result check_data_set(const model& m, const std::string& folder, const check_options& options = {}) {
  try {
    importing::check_kinds(m);
    std::vector<model_tensor> inputs = checking::tensors_in(folder, "input"), outputs = checking::tensors_in(folder, "output");
    for (std::size_t i = 0; i < inputs.size() && i < m.graph.inputs.size(); ++i) checking::correct_type(inputs[i], m.graph.inputs[i].type);
    for (std::size_t i = 0; i < outputs.size() && i < m.graph.outputs.size(); ++i)
      checking::correct_type(outputs[i], m.graph.outputs[i].type);
    return check_tensors(m, std::move(inputs), outputs, options);
  } catch (const error& e) {
    check_result result;
    result.what = check_result::outcome::refused;
    result.text = e.what();
    return result;
  }
}

}}}  // namespace gshard::v0::onnx
