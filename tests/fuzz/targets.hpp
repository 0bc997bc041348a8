// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Requirements of parsers for any bytes: refuse them with an error of the library, or return a value that prints as text that parses to the
// same value.

#include <gshard/core/ir/equation.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/plan/plan_file.hpp>
#include <gshard/io/safetensors_header.hpp>
#include <gshard/sim/report/describe.hpp>
#if __has_include(<openssl/evp.h>)
#include <gshard/survive/checkpoint/manifest.hpp>
#endif
#if __has_include(<protozero/pbf_reader.hpp>)
#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/file/read_model.hpp>
#include <gshard/onnx/program/write_annotations.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

namespace gs = gshard;

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// The equation of an einsum.
inline void equation(std::string_view text) {
  gs::diagnostic problem;
  const gs::equation e = gs::parse_equation(text, problem);
  if (problem) return;
  require(e.count >= 1 && e.count <= gs::equation::most_operands, "an equation has 1 to 16 operands");
  std::string printed;
  const auto print = [&](const gs::short_list& dims) {
    for (int d = 0; d < dims.size(); ++d) {
      require(dims[d] < e.factors, "a dim has a factor of the equation");
      printed += e.letters[std::size_t(dims[d])];
    }
  };
  for (int i = 0; i < e.count; ++i) {
    printed += i == 0 ? "" : ",";
    print(e.operand(i));
  }
  printed += "->";
  print(e.output);
  std::string without_spaces;
  for (const char c : text)
    if (c != ' ') without_spaces += c;
  require(printed == without_spaces, "an equation prints as it was written");
}

/// The header of a safetensors file: the size of the data, 8 bytes, then the text.
inline void header(std::string_view bytes) {
  std::int64_t data_bytes = 0;
  if (bytes.size() < sizeof data_bytes) return;
  std::memcpy(&data_bytes, bytes.data(), sizeof data_bytes);
  gs::safetensors_header found;
  try {
    found = gs::parse_safetensors_header(bytes.substr(sizeof data_bytes), data_bytes);
  } catch (const gs::error&) {
    return;
  }
  std::int64_t end = 0;
  for (std::size_t i = 0; i < found.arrays.size(); ++i) {
    require(found.begin[i] == end, "arrays follow each other");
    end += found.arrays[i].bytes();
    require(found.find(found.arrays[i].name) == i, "arrays are found by their names");
  }
  require(end == data_bytes, "arrays end with the data");
  const gs::safetensors_header again = gs::parse_safetensors_header(gs::safetensors_header_text(found.arrays, found.metadata), data_bytes);
  require(again.arrays == found.arrays && again.metadata == found.metadata, "a header that is written again is the same");
}

/// A plan file, whatever its digest. A plan that is accepted can be described and counted.
inline void plan(std::string_view text) {
  static gs::plan_functions functions = gs::plan_functions::of_any_name();
  static int uses = 0;
  if (++uses % 1000 == 0) functions = gs::plan_functions::of_any_name();  // it keeps the names that it has seen
  const auto read = [&](std::string_view t) { return gs::parse_plan(t, "fuzz", functions, gs::plan_digest::ignored); };
  try {
    const gs::runtime_plan accepted = read(text);
    const gs::plan_view& p = accepted.plan();
    const std::string written = gs::plan_text(p, functions);
    require(gs::plan_text(read(written).plan(), functions) == written, "a plan that is read prints as it was written");
    require(!gs::describe(p).empty(), "a plan has a text");
    gs::dims sizes;
    for (const gs::dim& d : p.dims)
      if (d.what == gs::dim::kind::bound && !d.known) sizes.set(d.letter, 5);
    std::vector<int> axes;
    for (int a = 0; a < p.mesh.rank(); ++a) axes.push_back(p.mesh.static_extent(a) == gs::dynamic ? 2 : p.mesh.static_extent(a));
    if (const gs::extents e = p.bind(sizes, axes); e.devices(e.known_axes) <= 64)
      require(p.bytes_received(e) >= 0, "a plan receives a number of bytes");
  } catch (const gs::error&) {
  }
}

#if __has_include(<openssl/evp.h>)
/// The manifest with this text after its digest. The digest is right, as an attacker would write it.
inline std::string sealed(std::string_view rest) {
  const std::string begin(gs::detail::manifest_begin);
  std::string text = begin + std::string(gs::sha256::hex_digits, '0') + "\"," + std::string(rest);
  text.replace(begin.size(), gs::sha256::hex_digits, gs::sha256_of(text));
  return text;
}

/// The manifest of a checkpoint: the text itself, and the text after a right digest.
inline void manifest(std::string_view text) {
  const auto parse = [](const std::string& t) {
    try {
      const gs::manifest m = gs::detail::parse_manifest(t);
      require(gs::detail::text_of(m) == t, "a manifest prints as it was written");
    } catch (const gs::error&) {
    }
  };
  parse(std::string(text));
  parse(sealed(text));
}
#endif

#if __has_include(<protozero/pbf_reader.hpp>)
/// Every tensor of a graph has the bytes that its shape says.
inline void check_graph(const gs::onnx::model_graph& g) {
  const auto check = [](const gs::onnx::model_tensor& t) {
    for (const std::int64_t e : t.shape) require(e >= 0, "extents are not negative");
    const std::int64_t size = gs::onnx::traits(t.type).size;
    require(size == 0 || std::int64_t(t.data.size()) == t.elements() * size, "a tensor has the bytes of its shape");
    if (!gs::onnx::can_be_known(t.type)) return;
    const gs::onnx::constant known = gs::onnx::constant_of(t);
    require(known.type == t.type && std::int64_t(known.size()) == t.elements(), "a tensor has its elements");
  };
  for (const gs::onnx::model_tensor& t : g.initializers) check(t);
  for (const gs::onnx::model_node& n : g.nodes)
    for (const gs::onnx::model_attribute& a : n.attributes) {
      if (a.tensor) check(*a.tensor);
      if (a.graph) check_graph(*a.graph);
    }
}
/// Annotations that are written into a valid model are read from it, and it is valid still.
inline void check_annotations(std::span<const std::byte> bytes, const gs::onnx::model& m) {
  const gs::mesh_shape mesh = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>::shape;
  gs::onnx::tensor_shardings given;
  for (const gs::onnx::model_node& n : m.graph.nodes)
    for (const std::string& name : n.inputs) {
      gs::sharding s = gs::sharding::replicated(1);
      s[0].push_back(int(name.size() % 2));
      given[name] = s;
    }
  const std::string annotated = gs::onnx::annotated_model(bytes, mesh, "fuzz", given);
  const gs::onnx::model again = gs::onnx::parse_model(std::as_bytes(std::span(annotated)));
  require(again.graph.nodes.size() == m.graph.nodes.size(), "an annotated model has the same nodes");
  const auto found = gs::onnx::annotations_of(again, mesh, "fuzz");
  require(found.size() == given.size(), "all inputs of nodes are annotated");
  for (const auto& [name, axes] : found)
    require(axes == gs::onnx::sharded_axes{{0, int(name.size() % 2)}}, "annotations are read as they were written");
}
/// The message of an ONNX model.
inline void onnx(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  try {
    const gs::onnx::model m = gs::onnx::parse_model(bytes);
    check_graph(m.graph);
    try {
      check_annotations(bytes, m);
    } catch (const gs::error&) {
      require(false, "a valid model can be annotated");
    }
    gs::onnx::annotations_of(m, gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>::shape, {});  // those of the file
  } catch (const gs::error&) {
  }
}
#endif

}  // namespace fuzz
