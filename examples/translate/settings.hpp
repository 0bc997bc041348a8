// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/buckets.hpp"
#include "mesh.hpp"

#include <gshard/core/ir/dim.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>

namespace translate {

/// Reads a count of at least 1 from the metadata of a model file. Throws std::runtime_error if there is none.
inline std::int64_t kept_count(const std::map<std::string, std::string>& metadata, const std::string& name) {
  const auto it = metadata.find(name);
  if (it == metadata.end()) throw std::runtime_error("the model file has no setting '" + name + "': it is none of this program's");
  const std::string& text = it->second;
  std::int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc() || end != text.data() + text.size() || count < 1)
    throw std::runtime_error("the model file's setting '" + name + "' is no count: '" + text + "'");
  return count;
}

/// The settings of the model and its training. None depends on the number of devices.
struct settings {
  std::int64_t model = 128, heads = 4, head = 32, hidden = 256, experts = 8, positions = 64;
  std::int64_t groups = 8;
  std::int32_t pieces = 4000;
  std::int64_t batch_tokens = 6144;
  double peak_rate = 4e-3, warmup = 150;
  double minutes = 5.5;
  std::uint64_t seed = 1;

  /// A model that is small enough to learn something within a minute.
  static settings quick() {
    settings s;
    s.model = 64, s.heads = 2, s.hidden = 128, s.experts = 4, s.pieces = 1000;
    s.batch_tokens = 2048;
    s.minutes = 0.35;
    return s;
  }

  /// The dims of a program for batches of this shape.
  gs::dims dims(const bucket& b, std::int64_t vocabulary) const {
    return {{'G', groups}, {'B', b.sequences / groups}, {'S', b.source_length}, {'T', b.target_length}, {'M', model},
            {'H', heads},  {'D', head},                 {'F', hidden},          {'E', experts},         {'V', vocabulary},
            {'L', positions}};
  }

  /// The settings that a model file must contain.
  std::map<std::string, std::string> to_metadata() const {
    std::map<std::string, std::string> m;
    for (const auto& [name, field] : shape_fields) m[name] = std::to_string(this->*field);
    return m;
  }
  void read_metadata(const std::map<std::string, std::string>& m) {
    for (const auto& [name, field] : shape_fields) this->*field = kept_count(m, name);
  }

 private:
  struct field_name {
    const char* name;
    std::int64_t settings::*field;
  };
  static const field_name shape_fields[7];
};

inline const settings::field_name settings::shape_fields[7] = {
    {"model", &settings::model},     {"heads", &settings::heads},         {"head", &settings::head},    {"hidden", &settings::hidden},
    {"experts", &settings::experts}, {"positions", &settings::positions}, {"groups", &settings::groups}};

}  // namespace translate
