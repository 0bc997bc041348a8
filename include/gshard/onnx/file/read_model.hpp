// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads ONNX models and files of tensors: read_model, parse_model, read_tensor.

#include <gshard/onnx/file/mapped_file.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/file/read_tensor.hpp>
#include <gshard/onnx/file/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace onnx {

/// Reads the messages of a model. Field numbers are those of onnx.proto.
class model_reader {
 public:
  model_reader(data_files& files, std::shared_ptr<const void> owner) : files_(&files), owner_(std::move(owner)) {}

  model read_model(const protozero::pbf_reader& message) {
    return with_place([&] {
      model m;
      for_each_field(message, state_, [&](wire_field& f) {
        switch (f.tag()) {
          case 1:
            return f.read(m.ir_version);
          case 2:
            return f.read(m.producer);
          case 7:
            return f.message("graph", [&](const auto& graph) { m.graph = read_graph(graph); });
          case 8:
            return f.message("opset_import", [&](const auto& set) { m.opsets.push_back(read_opset(set)); });
          case 25:
            return f.message(indexed("functions", m.functions.size()), [&](const auto& one) { m.functions.push_back(read_function(one)); });
          case 26:
            return f.message("configuration", [&](const auto& one) { read_devices(m, one); });
          default:
            return f.skip();
        }
      });
      return m;
    });
  }
  model_tensor read_one_tensor(const protozero::pbf_reader& message) {
    return with_place([&] { return read_tensor(message); });
  }

 private:
  data_files* files_;
  std::shared_ptr<const void> owner_;
  wire_state state_;

  /// f() with the place in the errors of protozero.
  template <class F>
  std::invoke_result_t<const F&> with_place(const F& f) {
    try {
      return f();
    } catch (const protozero::exception& e) {
      state_.fail(std::string("is damaged (") + e.what() + ")");
    }
  }
  model_tensor read_tensor(const protozero::pbf_reader& message) { return tensor_reader(state_, *files_).read(message, owner_); }

  std::pair<std::string, std::int64_t> read_opset(const protozero::pbf_reader& message) {
    std::pair<std::string, std::int64_t> set;
    for_each_field(message, state_, [&](wire_field& f) {
      if (f.tag() == 1)
        f.read(set.first);
      else if (f.tag() == 2)
        f.read(set.second);
      else
        f.skip();
    });
    if (set.first == "ai.onnx") set.first.clear();  // the same domain
    return set;
  }
  model_function read_function(const protozero::pbf_reader& message) {
    model_function made;
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(made.name);
        case 4:
          return f.read(made.inputs);
        case 5:
          return f.read(made.outputs);
        case 7:
          return f.message(indexed("node", made.nodes.size()), [&](const auto& one) { made.nodes.push_back(read_node(one)); });
        case 9:
          return f.message("opset_import", [&](const auto& set) { made.opsets.push_back(read_opset(set)); });
        case 10:
          return f.read(made.domain);
        case 11:
          return f.message("attribute_proto", [&](const auto& one) { made.defaults.push_back(read_attribute(one)); });
        case 13:
          return f.read(made.overload);
        default:
          return f.skip();
      }
    });
    return made;
  }
  void read_devices(model& m, const protozero::pbf_reader& message) {
    model_devices d;
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(d.name);
        case 2:
          return f.read(d.count);
        case 3:
          return f.read(d.devices);
        default:
          return f.skip();
      }
    });
    m.configurations.push_back(std::move(d));
  }

  static std::string indexed(const char* what, std::size_t i) { return std::string(what) + '[' + std::to_string(i) + ']'; }

  model_graph read_graph(const protozero::pbf_reader& message) {
    model_graph g;
    for_each_field(message, state_, [&](wire_field& f) {
      const auto value = [&](std::vector<model_value>& to, const char* what) {
        f.message(indexed(what, to.size()), [&](const auto& one) { to.push_back(read_value(one)); });
      };
      switch (f.tag()) {
        case 1:
          return f.message(indexed("node", g.nodes.size()), [&](const auto& one) { g.nodes.push_back(read_node(one)); });
        case 2:
          return f.read(g.name);
        case 5:
          return f.message(indexed("initializer", g.initializers.size()),
                           [&](const auto& one) { g.initializers.push_back(read_tensor(one)); });
        case 11:
          return value(g.inputs, "input");
        case 12:
          return value(g.outputs, "output");
        case 13:
          return value(g.values, "value_info");
        case 15:
          g.has_sparse_initializers = true;
          return f.skip();
        default:
          return f.skip();
      }
    });
    return g;
  }

  model_node read_node(const protozero::pbf_reader& message) {
    model_node n;
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(n.inputs);
        case 2:
          return f.read(n.outputs);
        case 3:
          return f.read(n.name);
        case 4:
          return f.read(n.operation);
        case 5:
          return f.message(indexed("attribute", n.attributes.size()),
                           [&](const auto& one) { n.attributes.push_back(read_attribute(one)); });
        case 7:
          return f.read(n.domain);
        case 8:
          return f.read(n.overload);
        case 10:
          return f.message("device_configurations", [&](const auto& one) { n.placements.push_back(read_placement(one)); });
        default:
          return f.skip();
      }
    });
    if (n.domain == "ai.onnx") n.domain.clear();
    return n;
  }

  model_attribute read_attribute(const protozero::pbf_reader& message) {
    using kind = model_attribute::kind;
    model_attribute a;
    std::int64_t stated = 0;
    kind seen = kind::undefined;
    const auto one = [&](kind what) { seen = what; };
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(a.name);
        case 2:
          return one(kind::real), f.read(a.real);
        case 3:
          return one(kind::integer), f.read(a.integer);
        case 4:
          return one(kind::text), f.read(a.text);
        case 5:
          return one(kind::tensor), f.message("t", [&](const auto& t) { a.tensor = std::make_shared<const model_tensor>(read_tensor(t)); });
        case 6:
          return one(kind::graph), f.message("g", [&](const auto& g) { a.graph = std::make_shared<const model_graph>(read_graph(g)); });
        case 7:
          return one(kind::reals), f.read(a.reals);
        case 8:
          return one(kind::integers), f.read(a.integers);
        case 9:
          return one(kind::texts), f.read(a.texts);
        case 10:
        case 11:
        case 14:
        case 15:
        case 22:
        case 23:
          return one(kind::other), f.skip();
        case 20:
          return f.read(stated);
        case 21:
          return f.read(a.refers_to);
        default:
          return f.skip();
      }
    });
    // AttributeType. Files of IR version 1 do not state it. An empty list has no field.
    constexpr kind kinds[]{kind::undefined, kind::real,     kind::integer, kind::text,    kind::tensor, kind::graph,
                           kind::reals,     kind::integers, kind::texts,   kind::tensors, kind::graphs};
    a.type = stated == 0 ? seen : stated > 0 && stated < std::int64_t(std::size(kinds)) ? kinds[stated] : kind::other;
    const bool lacks = a.refers_to.empty() && ((a.type == kind::tensor && !a.tensor) || (a.type == kind::graph && !a.graph));
    if (lacks) state_.fail("is the attribute \"" + a.name.substr(0, 200) + "\" without its value");
    return a;
  }

  model_value read_value(const protozero::pbf_reader& message) {
    model_value v;
    for_each_field(message, state_, [&](wire_field& f) {
      if (f.tag() == 1)
        f.read(v.name);
      else if (f.tag() == 2)
        f.message("type", [&](const auto& type) { read_type(v, type); });
      else
        f.skip();
    });
    return v;
  }
  void read_type(model_value& v, const protozero::pbf_reader& message) {
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.message("tensor_type", [&](const auto& type) { read_tensor_type(v, type); });
        case 4:
          v.kind = "sequence";
          return f.skip();
        case 5:
          v.kind = "map";
          return f.skip();
        case 8:
          v.kind = "sparse tensor";
          return f.skip();
        case 9:
          v.kind = "optional";
          return f.skip();
        default:
          return f.skip();
      }
    });
  }
  void read_tensor_type(model_value& v, const protozero::pbf_reader& message) {
    std::int64_t type = 0;
    for_each_field(message, state_, [&](wire_field& f) {
      if (f.tag() == 1)
        f.read(type);
      else if (f.tag() == 2)
        f.message("shape", [&](const auto& shape) { read_shape(v, shape); });
      else
        f.skip();
    });
    v.type = element_of(type);
  }
  void read_shape(model_value& v, const protozero::pbf_reader& message) {
    v.has_shape = true;
    for_each_field(message, state_, [&](wire_field& f) {
      if (f.tag() != 1) return f.skip();
      f.message(indexed("dim", v.dims.size()), [&](const auto& one) {
        model_dim d;
        for_each_field(one, state_, [&](wire_field& g) {
          if (g.tag() == 1)
            g.read(d.extent);
          else if (g.tag() == 2)
            g.read(d.name);
          else
            g.skip();
        });
        v.dims.push_back(std::move(d));
      });
    });
  }

  model_placement read_placement(const protozero::pbf_reader& message) {
    model_placement p;
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(p.configuration);
        case 2:
          return f.message("sharding_spec", [&](const auto& one) { p.shardings.push_back(read_sharding(one)); });
        case 3:
          return f.read(p.pipeline_stage);
        default:
          return f.skip();
      }
    });
    return p;
  }
  model_sharding read_sharding(const protozero::pbf_reader& message) {
    model_sharding s;
    for_each_field(message, state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(s.tensor);
        case 2:
          return f.read(s.devices);
        case 3:
          return f.message("index_to_device_group_map", [&](const auto& one) {
            auto& group = s.groups.emplace_back();
            for_each_field(one, state_, [&](wire_field& g) {
              if (g.tag() == 1)
                g.read(group.first);
              else if (g.tag() == 2)
                g.read(group.second);
              else
                g.skip();
            });
          });
        case 4:
          return f.message("sharded_dim", [&](const auto& one) {
            auto& dim = s.dims.emplace_back();
            for_each_field(one, state_, [&](wire_field& g) {
              if (g.tag() == 1)
                g.read(dim.axis);
              else if (g.tag() == 2)
                g.message("simple_sharding", [&](const auto& simple) { dim.shards.push_back(read_shards(simple)); });
              else
                g.skip();
            });
          });
        default:
          return f.skip();
      }
    });
    return s;
  }
  std::int64_t read_shards(const protozero::pbf_reader& message) {
    std::int64_t shards = 0;
    for_each_field(message, state_, [&](wire_field& f) {
      if (f.tag() == 3)
        f.read(shards);
      else
        f.skip();
    });
    return shards;
  }
};

namespace files {
/// f() with errors that name the file. Protocol Buffers' messages have at most 2 GiB.
template <class F>
auto read_as(const std::string& path, std::span<const std::byte> bytes, const char* what, const F& f) {
  if (bytes.size() > 0x7fffffff)
    throw error(path + ": is no " + what + ": it has " + std::to_string(bytes.size()) + " bytes, and a message has at most 2147483647");
  const protozero::pbf_reader message(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    return f(message);
  } catch (const error& e) {
    throw error(path + ": is no valid " + what + ": " + e.what());
  }
}
}  // namespace files

/// The model in a message. Its tensors are views of the bytes, which `owner` keeps; without an owner, the caller does. `folder`: that of
/// external data, with a slash at its end; empty: external data is refused. `path`: for messages.
/// Throws `gshard::error` with the place in the model, if it is not a valid one.
inline model parse_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = {}, const std::string& folder = {},
                         const std::string& path = "the model") {
  data_files external(folder);
  model m = files::read_as(path, bytes, "ONNX model", [&](const protozero::pbf_reader& message) {
    return model_reader(external, std::move(owner)).read_model(message);
  });
  m.path = path;
  if (m.opsets.empty()) m.opsets.emplace_back("", 1);  // as files of IR version 1 and 2
  return m;
}
/// The model in a file, which stays mapped as long as its tensors.
inline model read_model(const std::string& path) {
  const auto file = std::make_shared<const mapped_file>(path);
  const std::string folder = detail::directory_of(path);
  return parse_model(file->bytes(), file, folder == "." ? "./" : folder, path);
}

/// The tensor in a file of ONNX's test data.
inline model_tensor read_tensor(const std::string& path) {
  const auto file = std::make_shared<const mapped_file>(path);
  data_files external("");
  return files::read_as(path, file->bytes(), "tensor of ONNX",
                        [&](const protozero::pbf_reader& message) { return model_reader(external, file).read_one_tensor(message); });
}

}}}  // namespace gshard::v0::onnx
