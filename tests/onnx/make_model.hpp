// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes small ONNX models, and runs them on one device and with shardings of their inputs.

#include <gshard/io/plan/plan_file.hpp>
#include <gshard/onnx.hpp>

#include <protozero/pbf_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace onnx_tests {

namespace on = gshard::onnx;

using shape = std::vector<std::int64_t>;

/// A tensor of numbers.
inline on::model_tensor numbers(on::element type, const shape& extents, const std::vector<double>& all) {
  on::constant c = on::empty_like(type, extents);
  for (const double x : all) {
    if (c.is_real())
      c.reals.push_back(x);
    else
      c.integers.push_back(std::int64_t(x));
  }
  return on::tensor_of(c, "");
}
inline on::model_tensor f32(const shape& extents, const std::vector<double>& all) {
  return numbers(on::element::f32, extents, all);
}
inline on::model_tensor f64(const shape& extents, const std::vector<double>& all) {
  return numbers(on::element::f64, extents, all);
}
inline on::model_tensor i32(const shape& extents, const std::vector<double>& all) {
  return numbers(on::element::i32, extents, all);
}
inline on::model_tensor i64(const shape& extents, const std::vector<double>& all) {
  return numbers(on::element::i64, extents, all);
}
inline on::model_tensor truth(const shape& extents, const std::vector<double>& all) {
  return numbers(on::element::boolean, extents, all);
}

/// The message of a tensor.
inline std::string message_of(const on::model_tensor& t, const std::string& name = {}) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_packed_int64(1, t.shape.begin(), t.shape.end());
  w.add_int32(2, int(t.type));
  if (!name.empty()) w.add_string(8, name);
  w.add_bytes(9, reinterpret_cast<const char*>(t.data.data()), t.data.size());
  return bytes;
}

struct graph;
/// An attribute: its name and its value.
struct attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, on::model_tensor, std::shared_ptr<graph>>
      value;

  attribute(std::string n, int v) : name(std::move(n)), value(std::int64_t(v)) {}
  attribute(std::string n, double v) : name(std::move(n)), value(float(v)) {}
  attribute(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  attribute(std::string n, std::vector<std::int64_t> v) : name(std::move(n)), value(std::move(v)) {}
  attribute(std::string n, on::model_tensor v) : name(std::move(n)), value(std::move(v)) {}
  attribute(std::string n, graph v);
};

struct node {
  std::string operation;
  std::vector<std::string> inputs, outputs;
  std::vector<attribute> attributes{};
  std::string name{};
};
struct port {
  std::string name;
  on::element type = on::element::f32;
  std::vector<std::string> dims{};  // numbers, or names of dims
};
struct graph {
  std::vector<node> nodes;
  std::vector<port> inputs, outputs;
  std::vector<std::pair<std::string, on::model_tensor>> initializers{};
};
inline attribute::attribute(std::string n, graph v) : name(std::move(n)), value(std::make_shared<graph>(std::move(v))) {}

inline std::string message_of(const graph& g);

inline std::string message_of(const attribute& a) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, a.name);
  if (const auto* const v = std::get_if<std::int64_t>(&a.value)) w.add_int64(3, *v), w.add_int32(20, 2);
  if (const auto* const v = std::get_if<float>(&a.value)) w.add_float(2, *v), w.add_int32(20, 1);
  if (const auto* const v = std::get_if<std::string>(&a.value)) w.add_bytes(4, *v), w.add_int32(20, 3);
  if (const auto* const v = std::get_if<on::model_tensor>(&a.value)) w.add_message(5, message_of(*v)), w.add_int32(20, 4);
  if (const auto* const v = std::get_if<std::shared_ptr<graph>>(&a.value)) w.add_message(6, message_of(**v)), w.add_int32(20, 5);
  if (const auto* const v = std::get_if<std::vector<float>>(&a.value)) w.add_packed_float(7, v->begin(), v->end()), w.add_int32(20, 6);
  if (const auto* const v = std::get_if<std::vector<std::int64_t>>(&a.value))
    w.add_packed_int64(8, v->begin(), v->end()), w.add_int32(20, 7);
  return bytes;
}
inline std::string message_of(const port& p) {
  std::string dims, tensor, type, bytes;
  protozero::pbf_writer of_dims(dims), of_tensor(tensor), of_type(type), w(bytes);
  for (const std::string& d : p.dims) {
    std::string one;
    protozero::pbf_writer of_one(one);
    if (d.find_first_not_of("0123456789") == d.npos)
      of_one.add_int64(1, std::stoll(d));
    else
      of_one.add_string(2, d);
    of_dims.add_message(1, one);
  }
  of_tensor.add_int32(1, int(p.type));
  of_tensor.add_message(2, dims);
  of_type.add_message(1, tensor);
  w.add_string(1, p.name);
  w.add_message(2, type);
  return bytes;
}
inline std::string message_of(const node& n) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const std::string& in : n.inputs) w.add_string(1, in);
  for (const std::string& out : n.outputs) w.add_string(2, out);
  if (!n.name.empty()) w.add_string(3, n.name);
  w.add_string(4, n.operation);
  for (const attribute& a : n.attributes) w.add_message(5, message_of(a));
  return bytes;
}
inline std::string message_of(const graph& g) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const node& n : g.nodes) w.add_message(1, message_of(n));
  for (const auto& [name, t] : g.initializers) w.add_message(5, message_of(t, name));
  for (const port& p : g.inputs) w.add_message(11, message_of(p));
  for (const port& p : g.outputs) w.add_message(12, message_of(p));
  return bytes;
}
inline std::string message_of_model(const graph& g, int opset = 17) {
  std::string set, bytes;
  protozero::pbf_writer of_set(set), w(bytes);
  of_set.add_int64(2, opset);
  w.add_int64(1, 8);
  w.add_message(7, message_of(g));
  w.add_message(8, set);
  return bytes;
}

/// A model that owns its bytes.
inline on::model model_of(const graph& g, int opset = 17) {
  const auto bytes = std::make_shared<const std::string>(message_of_model(g, opset));
  return on::parse_model(std::as_bytes(std::span(*bytes)), bytes);
}
/// A model of one node, whose inputs are a, b, c, ... and whose outputs are y0, y1, ...
inline graph graph_of(const std::string& operation, const std::vector<on::model_tensor>& inputs, std::size_t outputs,
                      const std::vector<attribute>& attributes) {
  graph g;
  g.nodes.push_back({operation, {}, {}, attributes});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    port p{std::string(1, char('a' + int(i))), inputs[i].type};
    for (const std::int64_t e : inputs[i].shape) p.dims.push_back(std::to_string(e));
    g.nodes[0].inputs.push_back(p.name);
    g.inputs.push_back(p);
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    g.nodes[0].outputs.push_back("y" + std::to_string(i));
    g.outputs.push_back({g.nodes[0].outputs.back()});
  }
  return g;
}

/// The plan of a program as its file has it.
inline gshard::runtime_plan read_again(const on::imported_program& p) {
  const gshard::plan_functions functions = on::model_functions();
  const std::string text = gshard::plan_text(p.program.plan(), functions);
  gshard::runtime_plan read = gshard::parse_plan(text, "test", functions);
  if (gshard::plan_text(read.plan(), functions) != text) throw std::logic_error("the plan that was read is written differently");
  return read;
}
/// Runs a model on one device and with shardings of its inputs, with plans that were read from their files. Returns "" if all results are
/// the expected ones.
inline std::string wrong(const on::model& m, const std::vector<on::model_tensor>& inputs, const std::vector<on::model_tensor>& expected) {
  const on::check_result r = on::check_tensors(m, inputs, expected, {.plan = read_again});
  if (r.what == on::check_result::outcome::passed) return "";
  return (r.what == on::check_result::outcome::refused ? "refused: " : "wrong: ") + r.text;
}
inline std::string wrong(const std::string& operation, const std::vector<on::model_tensor>& inputs,
                         const std::vector<on::model_tensor>& expected, const std::vector<attribute>& attributes = {}, int opset = 17) {
  return wrong(model_of(graph_of(operation, inputs, expected.size(), attributes), opset), inputs, expected);
}
/// The sentence with which a model of one node is refused.
inline std::string refusal(const std::string& operation, const std::vector<on::model_tensor>& inputs,
                           const std::vector<attribute>& attributes, int opset = 17) {
  const on::check_result r = on::check_tensors(model_of(graph_of(operation, inputs, 1, attributes), opset), inputs, {});
  return r.what == on::check_result::outcome::refused ? r.text : "";
}

}  // namespace onnx_tests
