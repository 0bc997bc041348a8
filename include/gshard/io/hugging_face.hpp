// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Loads the weights of Hugging Face's Mixtral into the parameters of nn::language_model, and saves parameters in its format.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/kernel/finite.hpp>
#include <gshard/exec/kernel/move/cast.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/collective.hpp>
#include <gshard/io/file_shards.hpp>
#include <gshard/io/hugging_face_files.hpp>
#include <gshard/io/hugging_face_place.hpp>
#include <gshard/io/pieces.hpp>
#include <gshard/io/tensor_differences.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// Options of save_hugging_face. They must be the same on all processes.
struct hugging_face_options {
  std::optional<dtype> type{};                ///< Element type in the files: f32, f64, f16 or bf16. Default: that of the parameters.
  std::int64_t file_bytes = 5'000'000'000;    ///< More bytes go to several files with an index. At least 1.
  bool allow_not_finite = false;              ///< True also saves NaN and infinities.
};

namespace detail {

/// Calls f with a null pointer to the C++ type. False if the type is not a floating-point type.
template <class F>
bool with_floating_point(dtype type, F f) {
  switch (type) {
    case dtype::f32: f(static_cast<float*>(nullptr)); return true;
    case dtype::f64: f(static_cast<double*>(nullptr)); return true;
    case dtype::f16: f(static_cast<half*>(nullptr)); return true;
    case dtype::bf16: f(static_cast<bfloat16*>(nullptr)); return true;
    default: return false;
  }
}
inline bool is_floating_point(dtype type) {
  return with_floating_point(type, [](auto*) {});
}
constexpr dtype elements_of(array_type t) { return array_types[std::size_t(t)].element; }

/// Converts floating-point numbers, rounded to nearest. Throws if a finite one becomes infinite.
inline void convert_elements(dtype from, const std::byte* x, dtype to, std::byte* y, std::int64_t n, const std::string& tensor) {
  with_floating_point(from, [&]<class From>(From*) {
    with_floating_point(to, [&]<class To>(To*) {
      const From* const in = reinterpret_cast<const From*>(x);
      To* const out = reinterpret_cast<To*>(y);
      kernel::cast(in, out, n);
      for (std::int64_t i = 0; i < n; ++i)
        if (!kernel::is_finite(out[i]) && kernel::is_finite(in[i]))
          throw error("tensor " + in_quotes(tensor) + ": has " + number_text(double(in[i])) + ", more than an element of type " +
                      std::string(cpp_name(to)) + " can hold");
    });
  });
}

struct hugging_face_parameter {
  std::string name;
  const bound_value* value;
  hugging_face_place place;
  std::vector<array_info> tensors;  // in the files, with the types of a save
};

/// The parameters of a store, without state of optimizers and caches.
inline std::vector<hugging_face_parameter> hugging_face_parameters(const parameter_store& store, std::optional<dtype> type) {
  if (type && !is_floating_point(*type))
    throw error("hugging_face_options::type is " + std::string(cpp_name(*type)) + ", not a type of floating-point numbers");
  std::vector<hugging_face_parameter> all;
  for (const auto& [name, entry] : store.saved()) {
    if (entry.of_optimizer) continue;
    const std::optional<hugging_face_place> place = hugging_face_place_of(name);
    if (!place) throw error("parameter " + in_quotes(name) + ": files of Hugging Face's Mixtral have no place for it");
    if (!is_floating_point(entry.value.type))
      throw error("parameter " + in_quotes(name) + ": its elements are " + std::string(cpp_name(entry.value.type)) +
                  ", not floating-point numbers");
    if (entry.value.layout.partial != 0) throw error("parameter " + in_quotes(name) + ": is a partial sum");
    all.push_back({name, &entry.value, *place, place->tensors(entry.value.extents, array_type_of(type.value_or(entry.value.type)))});
    if (!place->experts) continue;
    const auto* const router = store.find(name.substr(0, name.rfind('.') + 1) + "wg");
    if (const auto count = std::int64_t(all.back().tensors.size()); router != nullptr && router->value.extents.back() != count)
      throw error("parameter " + in_quotes(name) + ": has " + std::to_string(count) + " experts, but the router has " +
                  std::to_string(router->value.extents.back()) + ": the number of groups divides that of experts");
  }
  if (all.empty()) throw error("the parameter store is empty: bind the model's programs to it before its weights are loaded or saved");
  return all;
}

inline std::vector<fact> hugging_face_facts(const std::string& call, const parameter_store& store) {
  std::vector<fact> facts{{"the call", call}, {"the store", store_text(store.number())}};
  for (const auto& [name, entry] : store.saved())
    facts.push_back({"tensor " + in_quotes(name), layout_text(entry.value, store.cluster().mesh())});
  return facts;
}

/// The differences between files and parameters as text; empty if there are none. Floating-point numbers of any type fit.
inline std::string misfit(const hugging_face_files& files, const std::vector<hugging_face_parameter>& parameters) {
  const auto shape_of = [](array_info a) {
    a.type = array_type::f32;
    return text_of(a);
  };
  std::vector<described_tensor> here, there;
  for (const hugging_face_parameter& p : parameters)
    for (const array_info& a : p.tensors) here.push_back({a.name, text_of(a), shape_of(a), " of parameter " + in_quotes(p.name)});
  for (const safetensors_reader& file : files.files())
    for (const array_info& a : file.arrays()) {
      const bool fits = is_floating_point(elements_of(a.type));
      const std::string is = text_of(a) + (fits ? "" : ", not F32, F64, F16 or BF16,");
      there.push_back({a.name, is, fits ? shape_of(a) : is, " in " + file.path()});
    }
  return tensor_differences(here, there);
}

/// Reads the shards of a parameter that this process holds.
inline void read_shards(const hugging_face_files& files, const hugging_face_parameter& p) {
  constexpr std::int64_t piece_bytes = std::int64_t(64) << 20;
  const bound_value& v = *p.value;
  std::vector<std::byte> buffer;
  // Reads a block of a matrix, or of several dims that form one. `to`: its first element.
  const auto read = [&](const array_info& tensor, const kernel::placement& block, std::byte* to) {
    const std::int64_t elements = kernel::element_count(block.rank, block.extent);
    if (elements == 0) return;
    const hugging_face_files::found there = files.find(tensor.name);
    const dtype type = elements_of(there.info->type);
    const std::int64_t width = size_of(type), rows = block.extent[0], row = elements / rows;
    const std::int64_t step = p.place.transposed ? rows : std::max<std::int64_t>(1, piece_bytes / (row * width));
    const auto bytes = [&](std::int64_t at, std::span<std::byte> part) { there.file->read(tensor.name, part, at); };
    for (std::int64_t first = 0; first < rows; first += step) {
      kernel::placement piece = block;
      piece.offset[0] += first;
      piece.extent[0] = std::min(step, rows - first);
      const std::int64_t count = piece.extent[0] * row;
      std::byte* const home = to + first * row * size_of(v.type);
      if (type != v.type) buffer.resize(std::size_t(count * width));
      std::byte* const read_to = type == v.type ? home : buffer.data();
      if (p.place.transposed) read_column_major(piece, width, read_to, bytes);
      else read_runs(piece, width, read_to, bytes);
      if (type != v.type) convert_elements(type, buffer.data(), v.type, home, count, tensor.name);
    }
  };
  for (std::size_t i = 0; i < v.places.size(); ++i) {
    if (!p.place.experts) {
      read(p.tensors[0], v.places[i], v.data[i]);
      continue;
    }
    kernel::placement experts = v.places[i], matrix;
    experts.rank = v.rank() - p.place.dims;
    matrix.rank = p.place.dims;
    const auto inner = [&](const kernel::index_array& from, kernel::index_array& to) {
      std::copy_n(from.begin() + experts.rank, matrix.rank, to.begin());
    };
    inner(experts.extent, matrix.extent);
    inner(experts.offset, matrix.offset);
    inner(experts.global, matrix.global);
    const std::int64_t bytes = kernel::element_count(matrix.rank, matrix.extent) * size_of(v.type);
    kernel::for_each_element(experts, [&](std::size_t expert, std::size_t local) {
      read(p.tensors[expert], matrix, v.data[i] + std::int64_t(local) * bytes);
    });
  }
}

/// Writes rows of a parameter that the leader has gathered. For transposed matrices, pass all rows of a matrix together.
inline void write_rows(hugging_face_writer& file, const hugging_face_parameter& p, std::span<const std::byte> rows) {
  const bound_value& v = *p.value;
  const dtype type = elements_of(p.tensors[0].type);
  std::vector<std::byte> turned, converted;
  const auto write = [&](std::span<const std::byte> part) {
    const std::int64_t n = std::int64_t(part.size()) / size_of(v.type);
    if (type == v.type) return file.write(part);
    converted.resize(std::size_t(n * size_of(type)));
    convert_elements(v.type, part.data(), type, converted.data(), n, p.name);
    file.write(converted);
  };
  if (!p.place.transposed) return write(rows);
  const std::int64_t height = v.extents[v.extents.size() - 2], width = v.extents.back();
  const auto bytes = std::size_t(height * width * size_of(v.type));
  turned.resize(bytes);
  for (; !rows.empty(); rows = rows.subspan(bytes)) {
    kernel::copy_block(rows.data(), {width, 1}, turned.data(), {1, height}, {height, width}, 2, size_of(v.type));
    write(turned);
  }
}

}  // namespace detail

/// load_hugging_face(store, path): reads the weights of Hugging Face's Mixtral into the parameters of nn::language_model, on any mesh. The
/// path is that of a safetensors file, of the index of several, or of a directory with model.safetensors or model.safetensors.index.json.
/// The model must have the options and the extents of the weights, and its programs must be bound to the store before.
///
/// Elements of F32, F64, F16 and BF16 become those of the parameters, rounded to nearest. Each process reads only the data of its shards.
/// Optimizer state, caches of keys and values, and the number of finished steps do not change. A digest is not verified.
///
/// All processes must find the same content at the path: shared files, or copies of them. Their sizes and samples of them are compared.
/// Collective over the store's cluster. Communicates: no elements.
/// Throws: `gshard::error`, on every process: if the processes make different calls, hold different tensors or layouts, or find different
/// files; if a file or the index is not valid; if a parameter has no place in such files; if a tensor is missing, has another shape or
/// other elements, or belongs to no parameter (the text has tensor, parameter and file). The store is then unchanged. Only a disk that
/// fails, or a number out of the range of the parameter's elements, leaves it half loaded.
/// @see hugging_face_place_of, save_hugging_face, load
inline void load_hugging_face(parameter_store store, const std::string& path) {
  backend& on = store.cluster().backend();
  const detail::thread_rule::use in_use = on.enter();
  const std::string call = "load_hugging_face of " + path;
  std::vector<detail::hugging_face_parameter> parameters;
  const process_error unplaced = detail::problem_of([&] { parameters = detail::hugging_face_parameters(store, std::nullopt); });
  on.begin(detail::hugging_face_facts(call, store), unplaced);
  std::optional<detail::hugging_face_files> files;
  const process_error unfit = detail::problem_of([&] {
    files.emplace(path);
    if (const std::string problem = detail::misfit(*files, parameters); !problem.empty())
      throw error(path + ": does not fit the store: " + problem);
  });
  on.agree(detail::joined({{"the call", call}}, files ? files->content() : std::vector<fact>()), unfit);
  on.agree({}, detail::problem_of([&] {
    for (const detail::hugging_face_parameter& p : parameters) detail::read_shards(*files, p);
  }));
}

/// save_hugging_face(store, directory, options): writes the parameters of nn::language_model as weights of Hugging Face's Mixtral, under
/// its names and in its shapes: to model.safetensors, or to several files and their index. The files do not depend on the mesh, bit for
/// bit. The directory is made if it is missing, with the permissions that the umask leaves; only the owner may read the files. Hugging
/// Face's library also needs a config.json there.
///
/// model.safetensors gets its name when it is complete and on the disk, and may replace an older one. Several files become a model with
/// their index, which is written last. They do not replace another model. Only the leader's path is used.
///
/// Collective over the store's cluster. Communicates: every tensor once to the leader, from its first replica.
/// Throws: `gshard::error`, the same on every process: if the processes make different calls, or hold different tensors or layouts; if a
/// parameter has no place in such files, or the groups of experts do not divide E; if `file_bytes` is below 1; if a number is out of the
/// range of `type`; if the files cannot be written, or the directory has a model that they cannot replace. `not_finite_error` if a tensor
/// has NaN or an infinity, unless `allow_not_finite` is set.
/// @see hugging_face_place_of, load_hugging_face, save
inline void save_hugging_face(const parameter_store& store, const std::string& directory, const hugging_face_options& options = {}) {
  backend& on = store.cluster().backend();
  const detail::thread_rule::use in_use = on.enter();
  std::vector<detail::hugging_face_parameter> parameters;
  const process_error unplaced = detail::problem_of([&] {
    if (options.file_bytes < 1)
      throw error("hugging_face_options::file_bytes is " + std::to_string(options.file_bytes) + ": a file has at least one byte");
    if (const std::string changed = on.changed_environment(); !changed.empty()) throw error("save_hugging_face: " + changed);
    parameters = detail::hugging_face_parameters(store, options.type);
  });
  on.begin(detail::joined(detail::hugging_face_facts("save_hugging_face", store),
                          {{"hugging_face_options::type", options.type ? std::string(cpp_name(*options.type)) : "that of the parameters"},
                           {"hugging_face_options::file_bytes", std::to_string(options.file_bytes)},
                           {"hugging_face_options::allow_not_finite", options.allow_not_finite ? "true" : "false"}}),
           unplaced);
  if (!options.allow_not_finite) {
    std::vector<detail::named_value> values;
    for (const detail::hugging_face_parameter& p : parameters) values.push_back({"tensor " + detail::in_quotes(p.name), p.value});
    detail::check_finite_values(store.cluster(), values, store.steps());
  }
  std::optional<detail::hugging_face_writer> file;
  detail::on_leader(on, [&] {
    std::vector<array_info> arrays;
    for (const detail::hugging_face_parameter& p : parameters) arrays.insert(arrays.end(), p.tensors.begin(), p.tensors.end());
    file.emplace(directory, arrays, options.file_bytes);
  });
  for (const detail::hugging_face_parameter& p : parameters) {
    const std::int64_t most = p.place.experts ? 1 : p.place.transposed ? std::numeric_limits<std::int64_t>::max() : std::int64_t(64) << 20;
    for (const detail::row_range rows : detail::pieces_of(*p.value, most)) {
      const auto packets = on.gather_to_leader(detail::pack(*p.value, rows, on));
      detail::on_leader(on, [&] { detail::write_rows(*file, p, detail::unpack(*p.value, rows, on, packets)); });
    }
  }
  detail::on_leader(on, [&] { file->commit(); });
}

}}  // namespace gshard::v0
