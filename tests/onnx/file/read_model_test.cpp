// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/read_model.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

std::string complaint_of(const std::string& bytes) {
  try {
    on::parse_model(std::as_bytes(std::span(bytes)));
  } catch (const gshard::error& e) {
    return e.what();
  }
  return "";
}
graph small() {
  graph g;
  g.nodes.push_back(
      {"Gemm", {"x", "w"}, {"y"}, {{"alpha", 2.0}, {"transA", 1}, {"k", std::vector<std::int64_t>{1, 2}}, {"mode", "m"}}, "first"});
  g.inputs.push_back({"x", on::element::f32, {"batch", "3"}});
  g.outputs.push_back({"y"});
  g.initializers.emplace_back("w", f32({1, 2}, {5, 6}));
  return g;
}

}  // namespace

TEST_CASE("a model is read as it was written") {
  const on::model m = model_of(small(), 13);
  CHECK(m.opset("") == 13);
  REQUIRE(m.graph.nodes.size() == 1);
  const on::model_node& n = m.graph.nodes[0];
  CHECK(n.name == "first");
  CHECK(n.operation == "Gemm");
  CHECK(n.inputs == std::vector<std::string>{"x", "w"});
  REQUIRE(n.attributes.size() == 4);
  CHECK(n.attributes[0].real == 2);
  CHECK(n.attributes[1].integer == 1);
  CHECK(n.attributes[2].integers == std::vector<std::int64_t>{1, 2});
  CHECK(n.attributes[3].text == "m");
  REQUIRE(m.graph.inputs.size() == 1);
  CHECK(m.graph.inputs[0].dims == std::vector<on::model_dim>{{-1, "batch"}, {3, ""}});
  CHECK(on::constant_of(m.graph.initializers.at(0)).reals == std::vector<double>{5, 6});
}

TEST_CASE("every prefix and every changed byte of a model is read, or refused with a sentence") {
  const std::string bytes = message_of_model(small());
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_NOTHROW(complaint_of(bytes.substr(0, n)));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    for (const char c : {'\0', '\1', '\x7f', '\xff'}) {
      std::string other = bytes;
      other[n] = c;
      CHECK_NOTHROW(complaint_of(other));
    }
  CHECK(complaint_of(bytes.substr(0, bytes.size() / 2)).find("is damaged (end of buffer exception)") != std::string::npos);
  CHECK(complaint_of("\x0f") == "the model: is no valid ONNX model: the model is damaged (unknown pbf field type exception)");
}

TEST_CASE("shardings of IR version 11 are read") {
  std::string simple, dim, spec, placement, n, g, bytes;
  protozero::pbf_writer(simple).add_int64(3, 4);
  protozero::pbf_writer of_dim(dim), of_spec(spec), of_placement(placement), of_node(n), of_graph(g), w(bytes);
  of_dim.add_int64(1, 1);
  of_dim.add_message(2, simple);
  const std::vector<std::int64_t> devices{0, 1, 2, 3};
  of_spec.add_string(1, "x");
  of_spec.add_packed_int64(2, devices.begin(), devices.end());
  of_spec.add_message(4, dim);
  of_placement.add_string(1, "mine");
  of_placement.add_message(2, spec);
  of_node.add_string(4, "Relu");
  of_node.add_message(10, placement);
  of_graph.add_message(1, n);
  w.add_message(7, g);
  const on::model m = on::parse_model(std::as_bytes(std::span(bytes)));
  const on::model_sharding& s = m.graph.nodes.at(0).placements.at(0).shardings.at(0);
  CHECK(s.tensor == "x");
  CHECK(s.devices == devices);
  CHECK(s.dims.at(0).axis == 1);
  CHECK(s.dims.at(0).shards == std::vector<std::int64_t>{4});
}
