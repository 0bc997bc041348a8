// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes a run-time program of an ONNX model, and loads its weights: import_program, load.

#include <gshard/core/base/hash.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/tensor_text.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/program/annotations.hpp>
#include <gshard/onnx/program/importer.hpp>
#include <gshard/onnx/rewrite/find_experts.hpp>
#include <gshard/runtime/runtime_program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// What a model does not say.
struct import_options {
  std::map<std::string, std::int64_t> sizes{};     ///< The extents of named dims.
  std::map<std::string, extent_list> shapes{};     ///< The extents of inputs, in place of the declared ones.
  std::map<std::string, constant> fixed{};         ///< Inputs whose elements are known; they are no inputs of the program.
  std::map<std::string, std::string> shardings{};  ///< Of inputs: "B@x,S". The letters only count the dims.
  /// The device configuration of the model whose sharding annotations hold; empty: the first one.
  std::string configuration{};
  bool annotations = true;  ///< Applies the sharding annotations of the model, if it has any.
  bool experts = true;      ///< Sends tokens to their experts where the model computes all experts for all tokens. @see find_experts
  /// The mesh axis that shards these experts. Its extent must be stated, and divide their number.
  std::string expert_axis{};
  program_options program{};
};

/// An input or output of an imported program.
struct imported_port {
  std::string name;
  element type = element::undefined;
  extent_list extents;
};

/// A program made of a model.
struct imported_program {
  runtime_program program;
  dims extents;  ///< Of the letters of its inputs.
  std::vector<imported_port> inputs, outputs;
  std::vector<stored_tensor> stored;  ///< The parameters.
  std::string path;
};

namespace importing {

/// The extents of a declared input.
inline extent_list declared_extents(const model_value& v, const import_options& options) {
  const auto stated = options.shapes.find(v.name);
  if (stated != options.shapes.end()) return stated->second;
  if (!v.has_shape) throw error("the input \"" + v.name + "\" has no declared shape: state it");
  extent_list all;
  for (const model_dim& d : v.dims) {
    std::int64_t extent = d.extent;
    if (!d.name.empty()) {
      const auto found = options.sizes.find(d.name);
      if (found == options.sizes.end()) throw error("the dim \"" + d.name + "\" of the input \"" + v.name + "\" has no size: state it");
      extent = found->second;
    }
    if (extent < 0) throw error("the input \"" + v.name + "\" has a dim without an extent: state its shape");
    all.push_back(extent);
  }
  return all;
}

/// Inputs and outputs are tensors.
inline void check_kinds(const model& m) {
  const auto check = [](const model_value& v, const char* what) {
    const std::string article = v.kind == "optional" ? "an optional value" : "a " + std::string(v.kind);
    if (v.kind != "tensor") throw error(std::string("the ") + what + " \"" + v.name + "\" is " + article + ", and gshard has only tensors");
    if (v.type == element::string) throw error(std::string("the ") + what + " \"" + v.name + "\" has elements of type string");
  };
  for (const model_value& v : m.graph.inputs) check(v, "input");
  for (const model_value& v : m.graph.outputs) check(v, "output");
}

/// Letters for extents: one for each extent.
class letters {
 public:
  char of(std::int64_t extent) {
    const auto found = by_extent_.find(extent);
    if (found != by_extent_.end()) return found->second;
    if (by_extent_.size() == dims::most) throw error("the inputs have more than 52 different extents");
    const auto i = int(by_extent_.size());
    const char letter = i < 26 ? char('A' + i) : char('a' + i - 26);
    by_extent_[extent] = letter;
    known.set(letter, extent);
    return letter;
  }
  dims known;

 private:
  std::map<std::int64_t, char> by_extent_;
};

/// An input as the program declares it.
inline tensor_text text_of_input(const imported_port& in, const import_options& options, letters& all) {
  tensor_text text("");
  text.type = traits(in.type).carrier;
  std::string own;
  for (const std::int64_t e : in.extents) own += all.of(e);
  const auto stated = options.shardings.find(in.name);
  if (stated == options.shardings.end()) {
    text.dims = dims_text(own);
    return text;
  }
  const dims_text given(stated->second);
  if (!given.is_valid() || given.sharding.rank != int(own.size()))
    throw error("the sharding \"" + stated->second + "\" is not one of the " + std::to_string(own.size()) + " dims of the input \"" +
                in.name + "\"");
  text.dims.letters = std::string_view(own);
  text.dims.is_sharded = true;
  text.dims.sharding = given.sharding;
  return text;
}

/// The program of a model as its graph is.
inline imported_program import_graph(const model& m, const any_mesh& mesh, const import_options& options) {
  importing::check_kinds(m);
  std::set<std::string> initializers;
  for (const model_tensor& t : m.graph.initializers) initializers.insert(t.name);
  std::vector<imported_port> inputs, outputs;
  std::map<std::string, imported_value> given;
  std::set<std::string> names;
  for (const model_value& v : m.graph.inputs) {
    if (!names.insert(v.name).second) throw error("the graph has two inputs \"" + v.name + "\"");
    if (const auto fixed = options.fixed.find(v.name); fixed != options.fixed.end()) {
      given[v.name] = value_of(fixed->second, v.name);
      continue;
    }
    if (initializers.contains(v.name)) continue;  // a default that no caller overrides
    if (traits(v.type).carrier == dtype::count_) throw error("the input \"" + v.name + "\" has elements of type " + name(v.type));
    inputs.push_back({v.name, v.type, importing::declared_extents(v, options)});
    if (inputs.back().extents.size() > std::size_t(max_rank))
      throw error("the input \"" + v.name + "\" has more than " + std::to_string(max_rank) + " dims");
  }
  importing::letters all;
  std::vector<tensor_text> texts;
  for (const imported_port& in : inputs) texts.push_back(importing::text_of_input(in, options, all));
  program_options program = options.program;
  program.compile.known = all.known;
  program.compile.uneven = true;
  std::vector<stored_tensor> stored;
  const auto of_nodes = std::make_shared<std::deque<std::string>>();
  std::map<std::string, sharded_axes> annotations;
  if (options.annotations) annotations = annotations_of(m, mesh, options.configuration);
  const auto trace = [&](parameter_scope& scope, list_view<symbol> x) {
    builder& b = scope.owner();
    checked(b.nothing());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      symbol fixed = checked(detail::emit_rename(x[i], fixed_dims(b, inputs[i].extents)));
      if (const auto found = annotations.find(inputs[i].name); found != annotations.end() && !options.shardings.contains(inputs[i].name))
        fixed = checked(annotate(fixed, spec_of(found->second, b.mesh, fixed.rank(), inputs[i].name)));
      given[inputs[i].name] = value_of(fixed, inputs[i].type, inputs[i].name);
    }
    importer one(m, b, *of_nodes, annotations, options.expert_axis);
    std::vector<symbol> results;
    for (imported_value& v : one.run(std::move(given))) {
      results.push_back(one.output(v));
      outputs.push_back({v.name, v.type, v.extents});
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].name = m.graph.outputs[i].name;
    stored = std::move(one.stored());
    return results;
  };
  runtime_program made(trace, mesh, std::span<const tensor_text>(texts), program, of_nodes);
  return {std::move(made), all.known, std::move(inputs), std::move(outputs), std::move(stored), m.path};
}

}  // namespace importing

/// import_program(model, mesh, {.sizes = {{"batch", 8}}, .shardings = {{"x", "B@data,C,H,W"}}}): the model as a program on this mesh. The
/// extents of all inputs are known when it is made. Its parameters are the initializers, by their names, and constants.
/// Communicates: nothing.
/// Throws `gshard::error`: for an operator, an attribute or an element type that gshard does not compute, in one sentence that names them;
/// for an input without a shape; `unknown_value` if an operator needs the elements of a tensor that is not known.
/// @see load, runtime_executable
inline imported_program import_program(const model& m, const any_mesh& mesh, const import_options& options = {}) {
  if (m.opset(operators::experts_domain) >= 0)
    throw error("the model has operators of the domain " + std::string(operators::experts_domain) + ", which no file has");
  if (!options.experts) return importing::import_graph(m, mesh, options);
  std::set<std::string> given;
  for (const auto& [name, elements] : options.fixed) given.insert(name);
  for (const auto& [name, extents] : options.shapes) given.insert(name);
  const std::optional<model> found = find_experts(m, given);
  if (!found && !options.expert_axis.empty())
    throw error("the model has no mixture of experts for the mesh axis \"" + options.expert_axis + "\"");
  if (found) try {
      return importing::import_graph(*found, mesh, options);
    } catch (const refused_node&) {
      if (!options.expert_axis.empty()) throw;  // otherwise the loop over all experts may be one that gshard imports
    }
  return importing::import_graph(m, mesh, options);
}

namespace importing {
/// A hash of the names and shapes of tensors, and of some of their bytes. It differs between different models.
inline std::string text_of_weights(const std::vector<stored_tensor>& all) {
  fnv1a<std::uint64_t> h;
  for (const stored_tensor& s : all) {
    h.add(s.parameter).add(text_of(s.extents));
    for (const model_tensor& t : s.parts) {
      const std::size_t most = 256, n = std::min(t.data.size(), most);
      for (const std::span<const std::byte> part : {t.data.first(n), t.data.last(n)})
        h.add(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
    }
  }
  return std::to_string(all.size()) + " tensors with hash " + std::to_string(h.value());
}
/// The elements [first, first + n) of a stored tensor, in the carrier of its type.
inline void read_elements(const stored_tensor& s, std::int64_t first, std::int64_t n, std::byte* to) {
  const std::int64_t of_part = s.parts[0].elements(), width = traits(s.type).size, carried = size_of(traits(s.type).carrier);
  while (n > 0) {
    const model_tensor& part = s.parts[std::size_t(first / of_part)];
    const std::int64_t at = first % of_part, here = std::min(n, of_part - at);
    element_access::to_carrier(s.type, part.data.data() + at * width, to, here);
    first += here, n -= here, to += here * carried;
  }
}
}  // namespace importing

/// Fills the parameters of an imported program. Each process reads only the elements of its shards, from the mapped file. Collective.
/// Throws `gshard::error`, on every process, if their weights differ.
inline void load(const imported_program& from, parameter_store store) {
  backend& on = store.cluster().backend();
  const detail::thread_rule::use in_use = on.enter();
  on.begin(std::vector<fact>{{"the call", "load of an ONNX model"}, {"the weights of the model", importing::text_of_weights(from.stored)}});
  const process_error problem = detail::problem_of([&] {
    for (const stored_tensor& s : from.stored) {
      parameter_store::entry* const e = store.find(s.parameter);
      if (!e) continue;  // no step reads it
      const detail::bound_value& to = e->value;
      if (to.extents != s.extents) throw error("the parameter \"" + s.parameter + "\" has other extents in the store");
      for (std::size_t i = 0; i < to.places.size(); ++i)
        kernel::for_each_run(to.places[i], [&](std::int64_t local, std::int64_t global, std::int64_t n) {
          importing::read_elements(s, global, n, to.data[i] + local * size_of(to.type));
        });
    }
  });
  on.agree({}, problem);
}

}}}  // namespace gshard::v0::onnx
