// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checkpoints: saves the tensors of a parameter store to a safetensors file, and loads them on any mesh.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/collective.hpp>
#include <gshard/io/pieces.hpp>
#include <gshard/io/safetensors.hpp>
#include <gshard/io/tensor_differences.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The contents of a checkpoint in addition to the tensors of a store.
struct checkpoint_notes {
  std::map<std::string, std::string> metadata{};  // UTF-8; names that start with "gshard." are reserved
  std::map<std::string, std::string> blobs{};     // any bytes; each is a U8 tensor "blob:<name>" of the file
};

enum class checkpoint_scope : std::uint8_t {
  parameters,  // parameters and variables
  everything,  // also the optimizer state, each a tensor "state:<name>" of the file, the number of finished steps, and the seed
};

/// Options of save and load. They must be the same on all processes.
struct checkpoint_options {
  checkpoint_scope scope = checkpoint_scope::parameters;
  /// For load: false accepts files from other tools, see safetensors_options.
  bool verify = true;
  /// For load with scope `everything`: true accepts the file of a store with another seed. The store keeps its own seed, so random
  /// operations (dropout, routing) draw different numbers from the saved run.
  bool other_seed = false;
  /// For save: true also saves NaN and infinities.
  bool allow_not_finite = false;
  /// Tensors are moved in pieces of complete rows (indices of the first dim), with as many rows as fit into this. A process needs memory
  /// for a few pieces.
  std::int64_t piece_bytes = std::int64_t(64) << 20;
};

namespace detail {

inline constexpr std::string_view state_prefix = "state:", blob_prefix = "blob:";
inline constexpr const char* steps_key = "gshard.steps";
inline constexpr const char* seed_key = "gshard.seed";

struct stored_tensor {
  array_info info;
  const bound_value* value;
  bool of_optimizer;
};

inline std::vector<stored_tensor> tensors_of(const parameter_store& store, checkpoint_scope scope) {
  std::vector<stored_tensor> list;
  for (const auto& [name, entry] : store.saved()) {
    if (entry.of_optimizer && scope == checkpoint_scope::parameters) continue;
    list.push_back({{entry.of_optimizer ? std::string(state_prefix) + name : name,
                     array_type_of(entry.value.type), entry.value.extents},
                    &entry.value,
                    entry.of_optimizer});
  }
  return list;
}

// Begins a save or a load. All processes throw if they do not make the same call with the same tensors and options, or if a tensor cannot
// be saved.
inline void agree_on(bool saves, const parameter_store& store, const std::vector<stored_tensor>& tensors,
                     const checkpoint_options& options) {
  const bool everything = options.scope == checkpoint_scope::everything;
  std::vector<fact> facts{{"the call", saves ? "save of a checkpoint" : "load of a checkpoint"},
                          {"the store", store_text(store.number())},
                          {"checkpoint_options::scope", everything ? "everything" : "parameters"},
                          {"checkpoint_options::piece_bytes", std::to_string(options.piece_bytes)},
                          {"checkpoint_options::other_seed", options.other_seed ? "true" : "false"},
                          {"checkpoint_options::allow_not_finite", options.allow_not_finite ? "true" : "false"},
                          {"the seed of the store", std::to_string(store.seed())}};
  for (const stored_tensor& t : tensors)
    facts.push_back({"tensor " + in_quotes(t.info.name), layout_text(*t.value, store.cluster().mesh())});
  if (saves) facts.push_back({"the number of finished steps", std::to_string(store.steps())});
  const std::string changed = saves ? store.cluster().backend().changed_environment() : "";
  store.cluster().backend().begin(facts, changed.empty() ? changed : "checkpoint: " + changed);
  for (const stored_tensor& t : tensors) {
    const std::string& name = t.info.name;
    if (!t.of_optimizer && (name.starts_with(state_prefix) || name.starts_with(blob_prefix)))
      throw error("checkpoint: " + in_quotes(name) + " starts with a word that is reserved there");
    if (t.info.type == array_type::count_)
      throw error("checkpoint: " + in_quotes(name) + " has elements of type " + std::string(cpp_name(t.value->type)) +
                  ", which safetensors files lack: let a checkpointer save it");
    if (t.value->layout.partial != 0) throw error("checkpoint: " + in_quotes(name) + " is a partial sum");
  }
}

/// A number in the metadata of a file; empty if it is missing.
template <class Number>
std::optional<Number> number_of(const safetensors_reader& file, const char* key, const char* what) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return std::nullopt;
  const std::string& text = found->second;
  Number number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size())
    throw error(file.path() + ": " + in_quotes(key) + " is " + in_quotes(text) + ", not " + what);
  return number;
}
inline void check_seed(const safetensors_reader& file, std::uint64_t seed) {
  if (const auto saved = number_of<std::uint64_t>(file, seed_key, "a seed"); saved && *saved != seed)
    throw error(file.path() + ": was saved with seed " + std::to_string(*saved) + ", but the parameter store has seed " +
                std::to_string(seed) + "; checkpoint_options::other_seed takes it nevertheless");
}

inline checkpoint_notes notes_of(const safetensors_reader& file) {
  checkpoint_notes notes{file.metadata(), {}};
  notes.metadata.erase(steps_key);
  notes.metadata.erase(seed_key);
  for (const array_info& a : file.arrays()) {
    if (!a.name.starts_with(blob_prefix)) continue;
    if (a.type != array_type::u8 || a.shape.size() != 1)
      throw error(file.path() + ": " + in_quotes(a.name) + " is " + text_of(a) + ", not bytes");
    std::string& blob = notes.blobs[a.name.substr(blob_prefix.size())];
    blob.resize(std::size_t(a.bytes()));
    file.read(a.name, std::as_writable_bytes(std::span(blob)));
  }
  return notes;
}

// The differences between a file and a store as text; empty if there are none.
inline std::string misfit(const safetensors_reader& file, const std::vector<stored_tensor>& tensors, checkpoint_scope scope) {
  std::vector<described_tensor> here, there;
  for (const stored_tensor& t : tensors) here.push_back({t.info.name, text_of(t.info)});
  for (const array_info& a : file.arrays())
    if (!a.name.starts_with(blob_prefix) && (scope == checkpoint_scope::everything || !a.name.starts_with(state_prefix)))
      there.push_back({a.name, text_of(a), "", " in the file"});
  return tensor_differences(here, there);
}

}  // namespace detail

/// Writes the tensors of a store to one safetensors file, complete and under their names. Caches are left out. The file does not depend on
/// the mesh, bit for bit. It gets its name when it is complete and on the disk. Until then, or if anything fails, an existing file of that
/// name is unchanged. Only the leader's `path` and `notes` are used.
///
/// Collective over the store's cluster. Communicates: every tensor once to the leader, from its first replica. With scope `everything`,
/// also the messages of check_replicas.
///
/// Throws `gshard::error`, the same on every process: if the processes make different calls; if they hold different tensors, layouts,
/// numbers of finished steps or seeds; if the file cannot be written (the text has its name and the reason). With scope `everything`, also
/// if copies of a tensor differ, see check_replicas. Throws `not_finite_error` if a tensor has NaN or an infinity, unless
/// `allow_not_finite` is set. The text names the tensor and the first such element.
/// @see safetensors_writer for names and texts
inline void save(const parameter_store& store, const std::string& path, const checkpoint_notes& notes,
                 const checkpoint_options& options = {}) {
  backend& on = store.cluster().backend();
  const detail::thread_rule::use in_use = on.enter();
  const std::vector<detail::stored_tensor> tensors = detail::tensors_of(store, options.scope);
  detail::agree_on(true, store, tensors, options);
  std::vector<detail::named_value> values;
  for (const detail::stored_tensor& t : tensors) values.push_back({"tensor " + detail::in_quotes(t.info.name), t.value});
  if (!options.allow_not_finite) detail::check_finite_values(store.cluster(), values, store.steps());
  if (options.scope == checkpoint_scope::everything) detail::compare_copies(store.cluster(), values);
  std::optional<safetensors_writer> file;
  detail::on_leader(on, [&] {
    std::map<std::string, std::string> metadata = notes.metadata;
    for (const auto& [name, text] : metadata)
      if (name.starts_with("gshard."))
        throw error("checkpoint: metadata " + detail::in_quotes(name) +
                    " starts with a word that is reserved there");
    if (options.scope == checkpoint_scope::everything) {
      metadata[detail::steps_key] = std::to_string(store.steps());
      metadata[detail::seed_key] = std::to_string(store.seed());
    }
    std::vector<array_info> arrays;
    for (const detail::stored_tensor& t : tensors) arrays.push_back(t.info);
    for (const auto& [name, blob] : notes.blobs)
      arrays.push_back(
          {std::string(detail::blob_prefix) + name, array_type::u8, {std::int64_t(blob.size())}});
    file.emplace(path, arrays, metadata);
  });
  for (const detail::stored_tensor& t : tensors)
    for (const detail::row_range rows : detail::pieces_of(*t.value, options.piece_bytes)) {
      const auto packets = on.gather_to_leader(detail::pack(*t.value, rows, on));
      detail::on_leader(on, [&] { file->write(detail::unpack(*t.value, rows, on, packets)); });
    }
  detail::on_leader(on, [&] {
    for (const auto& [name, blob] : notes.blobs) file->write(std::as_bytes(std::span(blob)));
    file->commit();
  });
}

/// Saves a store without notes.
inline void save(const parameter_store& store, const std::string& path, const checkpoint_options& options = {}) {
  save(store, path, checkpoint_notes(), options);
}

/// Reads a file that `save` wrote into a store, on any mesh. Returns the notes of the checkpoint, on every process. The store's programs
/// must have been bound to it before: a store has a tensor only after a program has asked for it. Caches do not change.
///
/// With scope `parameters`, optimizer state in the file is skipped. The store keeps its optimizer state and its number of finished steps.
/// With scope `everything`, the number becomes the file's (0 if it has none). Otherwise, the file and the store must have the same tensors,
/// with the same extents and element types.
///
/// With scope `everything`, training continues as if it had not stopped. The store must have the seed of the saved store, unless
/// `other_seed` is set. Files from before the seed was saved fit any seed. A seed that was set on an `executable` is not in the file.
///
/// Collective over the store's cluster. Communicates: every tensor once from the leader, which alone reads `path`, to all.
///
/// Throws `gshard::error`, the same on every process: if the processes make different calls, or hold different tensors or layouts; if the
/// file is damaged in any way, or does not fit the store (the text names the tensors). The store is then unchanged. Only a disk that fails
/// after the file was checked leaves the store half loaded.
inline checkpoint_notes load(parameter_store store, const std::string& path,
                             const checkpoint_options& options = {}) {
  backend& on = store.cluster().backend();
  const detail::thread_rule::use in_use = on.enter();
  const std::vector<detail::stored_tensor> tensors = detail::tensors_of(store, options.scope);
  detail::agree_on(false, store, tensors, options);
  std::optional<safetensors_reader> file;
  checkpoint_notes notes;
  std::uint32_t steps = 0;
  detail::on_leader(on, [&] {
    file.emplace(path, safetensors_options{options.verify});
    const std::string problem = detail::misfit(*file, tensors, options.scope);
    if (!problem.empty()) throw error(path + ": does not fit the store: " + problem);
    notes = detail::notes_of(*file);
    steps = detail::number_of<std::uint32_t>(*file, detail::steps_key, "a number of steps").value_or(0);
    if (options.scope == checkpoint_scope::everything && !options.other_seed) detail::check_seed(*file, store.seed());
  });
  detail::share(on, notes.metadata);
  detail::share(on, notes.blobs);
  on.broadcast(std::as_writable_bytes(std::span(&steps, 1)));
  std::vector<std::byte> whole;
  for (const detail::stored_tensor& t : tensors)
    for (const detail::row_range rows : detail::pieces_of(*t.value, options.piece_bytes)) {
      whole.resize(std::size_t(rows.count() * detail::row_bytes(*t.value)));
      detail::on_leader(on,
                        [&] { file->read(t.info.name, whole, rows.first * detail::row_bytes(*t.value)); });
      on.broadcast(whole);
      detail::copy_shards_of(*t.value, rows, whole);
    }
  if (options.scope == checkpoint_scope::everything) store.set_steps(steps);
  return notes;
}

/// The notes of a checkpoint, for values that are needed before there is a model: extents, a vocabulary. The complete file is checked.
/// Collective over the cluster. Only the leader reads `path`. Throws as `load` does.
inline checkpoint_notes load_notes(const any_cluster& cluster, const std::string& path,
                                   const safetensors_options& options = {}) {
  checkpoint_notes notes;
  const detail::thread_rule::use in_use = cluster.backend().enter();
  cluster.backend().begin(std::vector<fact>{{"the call", "load_notes of a checkpoint"}});
  detail::on_leader(cluster.backend(), [&] { notes = detail::notes_of(safetensors_reader(path, options)); });
  detail::share(cluster.backend(), notes.metadata);
  detail::share(cluster.backend(), notes.blobs);
  return notes;
}

}}  // namespace gshard::v0
