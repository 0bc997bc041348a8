// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes shardings into the message of a model, as ONNX's ShardingSpecProto: annotated_model.

#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/program/annotations.hpp>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// Shardings of a model's tensors, by name.
using tensor_shardings = std::map<std::string, sharding>;

namespace annotating {

/// The message of a ShardingSpecProto. Shards that several devices hold are on groups, which have negative numbers.
inline std::string message_of(const std::string& tensor, const sharding& s, const mesh_shape& mesh) {
  sharded_axes axes;
  std::int64_t shards = 1;
  for (int d = 0; d < s.rank; ++d)
    for (int k = 0; k < s[d].size(); ++k) {
      axes.emplace_back(d, s[d][k]);
      shards *= mesh.static_extent(s[d][k]);
    }
  std::vector<std::int64_t> devices;
  std::vector<std::string> groups;
  for (std::int64_t i = 0; i < shards; ++i) {
    const std::vector<std::int64_t> all = expected_holders(mesh, axes, i);
    devices.push_back(all.size() == 1 ? all[0] : -1 - i);
    if (all.size() == 1) continue;
    protozero::pbf_writer group(groups.emplace_back());
    group.add_int64(1, -1 - i);
    group.add_packed_int64(2, all.begin(), all.end());
  }
  std::string bytes;
  protozero::pbf_writer spec(bytes);
  spec.add_string(1, tensor);
  spec.add_packed_int64(2, devices.begin(), devices.end());
  for (const std::string& group : groups) spec.add_message(3, group);
  for (int d = 0; d < s.rank; ++d) {
    std::int64_t along = 1;
    for (int k = 0; k < s[d].size(); ++k) along *= mesh.static_extent(s[d][k]);
    if (along == 1) continue;
    protozero::pbf_writer dim(spec, 4);
    dim.add_int64(1, d);
    protozero::pbf_writer(dim, 2).add_int64(3, along);
  }
  return bytes;
}

/// f(field) for the fields of a message. Those for which f returns false are copied as they are.
template <class F>
void copy_fields(protozero::pbf_reader from, std::string& to, const F& f) {
  while (from) {
    const protozero::data_view left = from.data();
    from.next();
    protozero::pbf_reader field = from;
    from.skip();
    if (!f(field)) to.append(left.data(), left.size() - from.data().size());
  }
}
inline bool is_message(const protozero::pbf_reader& field, std::uint32_t tag) {
  return field.tag() == tag && field.wire_type() == protozero::pbf_wire_type::length_delimited;
}

/// A node with the shardings of its inputs.
inline std::string annotated_node(const protozero::pbf_reader& node, const mesh_shape& mesh, const std::string& configuration,
                                  const tensor_shardings& all) {
  std::string bytes;
  std::vector<std::string> inputs;
  copy_fields(node, bytes, [&](protozero::pbf_reader& field) {
    if (is_message(field, 1)) {
      protozero::pbf_reader text = field;  // a copy, because the field itself is copied later
      std::string name(text.get_string());
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) inputs.push_back(std::move(name));
    }
    return field.tag() == 10;  // the configurations that it had
  });
  std::string placement;
  protozero::pbf_writer to(placement);
  to.add_string(1, configuration);
  bool any = false;
  for (const std::string& name : inputs)
    if (const auto found = all.find(name); found != all.end()) {
      to.add_message(2, message_of(name, found->second, mesh));
      any = true;
    }
  if (any) protozero::pbf_writer(bytes).add_message(10, placement);
  return bytes;
}

}  // namespace annotating

/// The message of a model with these shardings of inputs and initializers, at the nodes of its graph that read them. It has one device
/// configuration, of this name. Those that the model had are left out. All else is copied.
/// Throws `gshard::error` if the message is damaged, or if an extent of the mesh is not known.
/// @see annotations_of, which reads them
inline std::string annotated_model(std::span<const std::byte> model, const mesh_shape& mesh, const std::string& configuration,
                                   const tensor_shardings& all) {
  constexpr std::int64_t first_version = 11;  // of models with device configurations
  for (int a = 0; a < mesh.rank(); ++a)
    if (mesh.static_extent(a) == dynamic) throw error("annotations number devices: state the extents of all mesh axes");
  const protozero::pbf_reader message(reinterpret_cast<const char*>(model.data()), model.size());
  std::string bytes;
  std::int64_t version = first_version;
  try {
    annotating::copy_fields(message, bytes, [&](protozero::pbf_reader& field) {
      if (field.tag() == 1 && field.wire_type() == protozero::pbf_wire_type::varint) {
        version = std::max(version, field.get_int64());
        return true;
      }
      if (!annotating::is_message(field, 7)) return field.tag() == 26;
      std::string graph;
      annotating::copy_fields(field.get_message(), graph, [&](protozero::pbf_reader& part) {
        if (!annotating::is_message(part, 1)) return false;
        protozero::pbf_writer(graph).add_message(1, annotating::annotated_node(part.get_message(), mesh, configuration, all));
        return true;
      });
      protozero::pbf_writer(bytes).add_message(7, graph);
      return true;
    });
  } catch (const protozero::exception& e) {
    throw error(std::string("the model is damaged (") + e.what() + ")");
  }
  protozero::pbf_writer to(bytes);
  to.add_int64(1, version);
  protozero::pbf_writer devices(to, 26);
  devices.add_string(1, configuration);
  devices.add_int32(2, std::int32_t(mesh.static_devices()));
  return bytes;
}

}}}  // namespace gshard::v0::onnx
