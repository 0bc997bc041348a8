// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The files of a model from Hugging Face: one safetensors file, or several with an index.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/safetensors.hpp>
#include <gshard/io/safetensors_header.hpp>
#include <gshard/io/shared_file.hpp>

#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline constexpr std::string_view model_file = "model.safetensors", model_index = "model.safetensors.index.json";

/// The kind and the permissions of a file; nothing if there is none. Throws `gshard::error` if they cannot be read.
inline std::optional<mode_t> mode_of_file(const std::string& path) {
  struct stat status;
  if (::stat(checked_path(path).c_str(), &status) == 0) return status.st_mode;
  if (errno != ENOENT && errno != ENOTDIR) throw_errno(path, "cannot be looked at");
  return std::nullopt;
}
inline bool is_there(const std::string& path) { return mode_of_file(path).has_value(); }
inline std::string in_directory(const std::string& directory, std::string_view name) {
  return directory + (directory.ends_with('/') ? "" : "/") + std::string(name);
}

/// The tensors of a file, of the files of an index, or of a directory that has one of them. Throws `gshard::error` with the file's name.
class hugging_face_files {
 public:
  explicit hugging_face_files(const std::string& path) {
    std::string file = path;
    if (S_ISDIR(mode_of_file(path).value_or(0))) {
      file = in_directory(path, model_file);
      if (!is_there(file)) file = in_directory(path, model_index);
      if (!is_there(file)) throw error(path + ": has neither " + std::string(model_file) + " nor " + std::string(model_index));
    }
    if (!file.ends_with(".json")) {
      add(file, nullptr);
      return;
    }
    const std::map<std::string, std::vector<std::string>> by_file = read_index(file);
    files_.reserve(by_file.size());
    for (const auto& [name, tensors] : by_file) {
      const std::string part = file.substr(0, file.rfind('/') + 1) + name;
      if (!is_there(part)) throw error(part + ": is missing, but " + file + " places " + in_quotes(tensors.front()) + " there");
      add(part, &tensors);
      for (const std::string& tensor : tensors)
        if (files_.back().find(tensor) == nullptr)
          throw error(files_.back().path() + ": lacks " + in_quotes(tensor) + ", which " + file + " places there");
    }
  }

  struct found {
    const safetensors_reader* file = nullptr;  ///< Null: there is no such tensor.
    const array_info* info = nullptr;
  };
  found find(std::string_view name) const {
    for (const safetensors_reader& file : files_)
      if (const array_info* const info = file.find(name)) return {&file, info};
    return {};
  }
  const std::vector<safetensors_reader>& files() const { return files_; }
  /// The facts that must be equal on all processes: the names of the files, and samples of their content.
  const std::vector<fact>& content() const { return content_; }

 private:
  std::vector<safetensors_reader> files_;
  std::vector<fact> content_;

  // `listed`: the tensors that the index assigns to the file, sorted; null without an index.
  void add(const std::string& path, const std::vector<std::string>* listed) {
    content_.push_back({"the file " + path + ", whose path must name the same content on all processes", content_text(input_file(path))});
    files_.emplace_back(path, safetensors_options{.verify = false});
    if (listed == nullptr) return;
    for (const array_info& a : files_.back().arrays())
      if (!std::binary_search(listed->begin(), listed->end(), a.name))
        throw error(path + ": has " + in_quotes(a.name) + ", which the index does not place there");
  }

  // {"weight_map": {name of a tensor: name of its file in the directory of the index}}
  std::map<std::string, std::vector<std::string>> read_index(const std::string& path) {
    const input_file file(path);
    if (file.size() > safetensors_header::most_bytes)
      throw error(path + ": has " + std::to_string(file.size()) + " bytes, more than an index may have");
    std::string text(std::size_t(file.size()), ' ');
    file.read(0, std::as_writable_bytes(std::span(text)));
    content_.push_back({"the index " + path, std::to_string(hash_of_bytes(std::as_bytes(std::span(text))))});
    std::set<std::pair<int, std::string>> keys;  // with their depth: of the index, and of its weight_map
    std::string twice;
    bool in_map = false;
    const auto note_key = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& key) {
      if (event != nlohmann::json::parse_event_t::key || depth > 2 || (depth == 2 && !in_map)) return true;
      const std::string& name = key.get_ref<const std::string&>();
      if (depth == 1) in_map = name == "weight_map";
      if (!keys.emplace(depth, name).second) twice = name;
      return true;
    };
    const nlohmann::json index = nlohmann::json::parse(text, note_key, false);
    if (index.is_discarded()) throw error(path + ": is not JSON");
    if (!twice.empty()) throw error(path + ": has " + in_quotes(twice) + " twice");
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() || index["weight_map"].empty())
      throw error(path + ": has no weight_map of tensors to files");
    std::map<std::string, std::vector<std::string>> by_file;
    for (const auto& [tensor, name] : index["weight_map"].items()) {
      if (!name.is_string()) throw error(path + ": the file of " + in_quotes(tensor) + " is not a text");
      const std::string& in = name.get_ref<const std::string&>();
      if (in.empty() || in == "." || in == ".." || in.find_first_of(std::string_view("/\0", 2)) != in.npos)
        throw error(path + ": the file of " + in_quotes(tensor) + " is " + in_quotes(in) + ", not a file of this directory");
      by_file[in].push_back(tensor);
    }
    for (auto& [name, tensors] : by_file) std::sort(tensors.begin(), tensors.end());
    return by_file;
  }
};

/// Writes tensors to a directory: to model.safetensors, or to several files and their index if they have more than `file_bytes`. Each file
/// has as many tensors as fit, at least one. The directory is made if it is missing. Throws `gshard::error` with the file's name.
class hugging_face_writer {
 public:
  hugging_face_writer(const std::string& directory, const std::vector<array_info>& arrays, std::int64_t file_bytes)
      : directory_(directory) {
    std::int64_t bytes = 0;
    for (const array_info& a : arrays) {
      if (files_.empty() || (bytes > 0 && a.bytes() > 0 && bytes + a.bytes() > file_bytes)) {
        files_.emplace_back();
        bytes = 0;
      }
      files_.back().push_back(a);
      bytes += a.bytes();
      total_ += a.bytes();
    }
    if (files_.empty()) throw error(directory + ": there are no tensors to write");
    if (::mkdir(checked_path(directory).c_str(), 0777) != 0 && errno != EEXIST) throw_errno(directory, "cannot be made");
    for (const std::string_view other : {model_file, model_index})
      if ((files_.size() > 1 || other == model_index) && is_there(in_directory(directory, other)))
        throw error(directory + ": has " + std::string(other) +
                    ", a model that this one cannot replace in one step; save to another directory");
  }

  /// Appends the next bytes of the tensors' data, of one tensor at a time.
  void write(std::span<const std::byte> data) {
    if (data.empty()) return;
    while (missing_ == 0) next();
    file_->write(data);
    missing_ -= std::int64_t(data.size());
  }
  /// To be called after all data is written. Gives the last file its name, and writes the index.
  void commit() {
    while (begun_ < files_.size()) next();
    file_->commit();
    if (files_.size() == 1) return;
    nlohmann::ordered_json index{{"metadata", {{"total_size", total_}}}, {"weight_map", nlohmann::ordered_json::object()}};
    for (std::size_t i = 0; i < files_.size(); ++i)
      for (const array_info& a : files_[i]) index["weight_map"][a.name] = name_of_file(i);
    const std::string text = index.dump(2) + '\n';
    atomic_file file(in_directory(directory_, model_index));
    file.append(std::as_bytes(std::span(text)));
    file.commit();
  }

 private:
  std::string directory_;
  std::vector<std::vector<array_info>> files_;
  std::optional<safetensors_writer> file_;
  std::size_t begun_ = 0;
  std::int64_t missing_ = 0, total_ = 0;

  void next() {
    if (file_) file_->commit();
    for (const array_info& a : files_[begun_]) missing_ += a.bytes();
    const std::map<std::string, std::string> metadata{{"format", "pt"}};  // which Hugging Face's library asks for
    file_.emplace(in_directory(directory_, name_of_file(begun_)), files_[begun_], metadata);
    ++begun_;
  }
  /// "model-00002-of-00019.safetensors"
  std::string name_of_file(std::size_t i) const {
    if (files_.size() == 1) return std::string(model_file);
    const auto digits = [](std::size_t n) {
      const std::string text = std::to_string(n);
      return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
    };
    return "model-" + digits(i + 1) + "-of-" + digits(files_.size()) + ".safetensors";
  }
};

}}}  // namespace gshard::v0::detail
