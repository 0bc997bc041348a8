// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An ONNX model as plain structs: graph, nodes, attributes, tensors and sharding annotations.

#include <gshard/onnx/file/element.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// A tensor with elements: an initializer, a constant, or a file of test data.
struct model_tensor {
  std::string name;
  element type = element::undefined;
  std::vector<std::int64_t> shape;
  /// Row-major and little-endian. Usually a view of the mapped file. As many bytes as the shape says. Empty for strings.
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner{};  ///< Keeps the bytes.

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
};

/// A dim of a declared shape: a number, a name, or unknown.
struct model_dim {
  std::int64_t extent = -1;
  std::string name;

  bool operator==(const model_dim&) const = default;
};

/// The declared type of a value.
struct model_value {
  std::string name;
  element type = element::undefined;
  std::string_view kind = "tensor";  ///< Or sequence, map, optional, sparse tensor.
  bool has_shape = false;
  std::vector<model_dim> dims;
};

struct model_graph;

struct model_attribute {
  enum class kind : std::uint8_t { undefined, real, integer, text, tensor, graph, reals, integers, texts, tensors, graphs, other };

  std::string name;
  std::string refers_to;  ///< In a function: the attribute of its call that is meant.
  kind type = kind::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::shared_ptr<const model_tensor> tensor{};
  std::shared_ptr<const model_graph> graph{};
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
};

/// How devices share one dim of a tensor: ONNX's ShardedDimProto.
struct model_sharded_dim {
  std::int64_t axis = 0;
  std::vector<std::int64_t> shards;  ///< The numbers of shards, major to minor.
};
/// The sharding of a tensor: ONNX's ShardingSpecProto, since IR version 11.
struct model_sharding {
  std::string tensor;
  std::vector<std::int64_t> devices;
  std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> groups;  ///< Of devices, by the numbers in `devices`.
  std::vector<model_sharded_dim> dims;
};
/// The shardings of a node's tensors in one device configuration.
struct model_placement {
  std::string configuration;
  std::vector<model_sharding> shardings;
  std::int64_t pipeline_stage = -1;
};
struct model_devices {
  std::string name;
  std::int64_t count = 0;
  std::vector<std::string> devices;
};

struct model_node {
  std::string name, operation, domain, overload;
  std::vector<std::string> inputs, outputs;  ///< An empty name: no such input or output.
  std::vector<model_attribute> attributes;
  std::vector<model_placement> placements;
  std::uint32_t number = 0;  ///< In the graph of the file, from 1 on; 0: its place in the list says it.
};

struct model_graph {
  std::string name;
  std::vector<model_node> nodes;  ///< In an order in which they can run.
  std::vector<model_tensor> initializers;
  std::vector<model_value> inputs, outputs, values;
  bool has_sparse_initializers = false;
};

/// The version of each domain's operators. The domain of ONNX itself is empty.
using opset_list = std::vector<std::pair<std::string, std::int64_t>>;
/// The version of a domain, or -1.
inline std::int64_t opset_of(const opset_list& all, std::string_view domain) {
  for (const auto& [name, version] : all)
    if (name == domain) return version;
  return -1;
}

/// An operator that the model itself defines by other operators.
struct model_function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<model_attribute> defaults;
  std::vector<model_node> nodes;
  opset_list opsets;
};

struct model {
  std::string path;  ///< For messages.
  std::int64_t ir_version = 0;
  std::string producer;
  opset_list opsets;
  std::vector<model_devices> configurations;
  model_graph graph;
  std::vector<model_function> functions;

  std::int64_t opset(std::string_view domain) const { return opset_of(opsets, domain); }
};

}}}  // namespace gshard::v0::onnx
