// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The manifest of a checkpoint: its tensors, states and settings, and the hashes of the part files.

#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/base/version.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/checkpoint/part_plan.hpp>
#include <gshard/survive/files/sha256.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The content of manifest.json.
struct manifest {
  static constexpr std::int64_t most_bytes = std::int64_t(256) << 20;
  static constexpr std::size_t most_entries = std::size_t(1) << 20;  // of each list

  std::string library;                            ///< The version of gshard.
  std::string products;                           ///< The libraries and instructions of matrix products.
  std::uint32_t step = 0;                         ///< The number of finished steps.
  std::uint64_t seed = 0;                         ///< The seed of the store.
  std::vector<std::pair<std::string, int>> mesh;  ///< Names and extents of the axes.
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> states;  ///< The user's states, any bytes.
  std::vector<event_log_head> event_logs;     ///< The last records of all event logs, see checkpointer::log_to.
  std::vector<detail::saved_tensor> tensors;  ///< By name.
  std::vector<detail::part_info> parts;       ///< part-00000.bin, part-00001.bin, ...

  bool operator==(const manifest&) const = default;
};

namespace detail {

inline std::string base64_of(std::string_view bytes) {
  if (bytes.size() > std::size_t(manifest::most_bytes)) throw error("checkpoint: a state of the user is too large for a manifest");
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, ' ');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                                int(bytes.size()));
  text.resize(std::size_t(n));
  return text;
}
inline std::string bytes_of_base64(const std::string& text) {
  std::string bytes(text.size() / 4 * 3, ' ');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                int(text.size()));
  if (n != int(bytes.size())) throw error("a text is not base64");
  for (std::size_t i = 0; i < 2 && text.size() > i && text[text.size() - 1 - i] == '='; ++i) bytes.pop_back();
  return bytes;
}

inline constexpr std::string_view manifest_begin = R"({"sha256":")";

inline nlohmann::ordered_json json_of(const manifest& m) {
  using json = nlohmann::ordered_json;
  json j{{"gshard.manifest", 1}, {"library", m.library}, {"products", m.products}, {"step", m.step}, {"seed", m.seed}};
  json& mesh = j["mesh"] = json::array();
  for (const auto& [axis, extent] : m.mesh) mesh.push_back({{"axis", axis}, {"extent", extent}});
  json& settings = j["settings"] = json::object();
  for (const auto& [key, value] : m.settings) settings[key] = value;
  json& states = j["states"] = json::object();
  for (const auto& [key, value] : m.states) states[key] = base64_of(value);
  json& logs = j["event_logs"] = json::array();
  for (const event_log_head& h : m.event_logs) logs.push_back({{"file", h.file}, {"records", h.records}, {"hash", h.hash}});
  json& tensors = j["tensors"] = json::array();
  for (const saved_tensor& t : m.tensors)
    tensors.push_back({{"name", t.name}, {"type", std::string(gshard::name(t.type))}, {"extents", t.extents}, {"trainable", t.trainable}});
  json& parts = j["parts"] = json::array();
  for (std::size_t i = 0; i < m.parts.size(); ++i)
    parts.push_back({{"file", part_name(i)}, {"bytes", m.parts[i].bytes}, {"header", m.parts[i].header}});
  return j;
}

/// The text of a manifest: one object, whose first field is the SHA-256 of the text with zeros in its place.
inline std::string text_of(const manifest& m) {
  std::string rest;
  try {
    rest = json_of(m).dump();
  } catch (const nlohmann::json::exception&) {
    throw error("checkpoint: a name, a setting or a text of the manifest is not UTF-8");
  }
  std::string text = std::string(manifest_begin) + std::string(sha256::hex_digits, '0') + "\"," + rest.substr(1) + "\n";
  text.replace(manifest_begin.size(), sha256::hex_digits, sha256_of(text));
  if (std::int64_t(text.size()) > manifest::most_bytes) throw error("checkpoint: the user's states are too large for a manifest");
  return text;
}

/// Reads the text that text_of wrote. Throws `gshard::error`, "the manifest ...", for any other text.
inline manifest parse_manifest(std::string_view text) {
  const auto refuse = [](const std::string& why) { throw error("the manifest " + why); };
  if (std::int64_t(text.size()) > manifest::most_bytes) refuse("has " + std::to_string(text.size()) + " bytes");
  if (!text.starts_with(manifest_begin) || text.size() < manifest_begin.size() + sha256::hex_digits) refuse("does not begin as one");
  std::string zeroed(text);
  zeroed.replace(manifest_begin.size(), sha256::hex_digits, sha256::hex_digits, '0');
  if (sha256_of(zeroed) != text.substr(manifest_begin.size(), sha256::hex_digits)) refuse("is damaged: its SHA-256 is another one");
  manifest m;
  try {
    using json = nlohmann::json;
    const auto check_depth = [&](int depth, json::parse_event_t, json&) {
      if (depth > 4) refuse("is nested too deep");
      return true;
    };
    const json j = json::parse(text, check_depth);
    const auto whole = [&](const json& n, std::uint64_t most) {
      if (!n.is_number_unsigned() || n.get<std::uint64_t>() > most) refuse("has " + in_quotes(n.dump()) + " for a number");
      return n.get<std::uint64_t>();
    };
    const auto extent = [&](const json& n) { return std::int64_t(whole(n, std::uint64_t(std::numeric_limits<std::int64_t>::max()))); };
    const auto list = [&](const char* key) -> const json& {
      const json& all = j.at(key);
      if (!all.is_structured() || all.size() > manifest::most_entries) refuse(std::string("has no list, or too long a list of ") + key);
      return all;
    };
    if (whole(j.at("gshard.manifest"), 1000) != 1) refuse("is of a newer format; use a newer gshard");
    m.library = j.at("library").get<std::string>();
    m.products = j.at("products").get<std::string>();
    m.step = std::uint32_t(whole(j.at("step"), std::numeric_limits<std::uint32_t>::max()));
    m.seed = whole(j.at("seed"), std::numeric_limits<std::uint64_t>::max());
    for (const json& a : list("mesh"))
      m.mesh.emplace_back(a.at("axis").get<std::string>(), int(whole(a.at("extent"), std::uint64_t(std::numeric_limits<int>::max()))));
    m.settings = list("settings").get<std::map<std::string, std::string>>();
    for (const auto& [key, value] : list("states").items()) m.states[key] = bytes_of_base64(value.get<std::string>());
    for (const json& h : list("event_logs"))
      m.event_logs.push_back({h.at("file").get<std::string>(), whole(h.at("records"), std::numeric_limits<std::uint64_t>::max()),
                              h.at("hash").get<std::string>()});
    for (const json& a : list("tensors")) {
      saved_tensor t{a.at("name").get<std::string>(), dtype::count_, {}, a.at("trainable").get<bool>()};
      for (const dtype_traits& row : dtype_table)
        if (row.name == a.at("type").get<std::string>()) t.type = row.type;
      if (t.type == dtype::count_) refuse("has a tensor " + in_quotes(t.name) + " with an unknown element type");
      if (a.at("extents").size() > std::size_t(max_rank)) refuse("has a tensor " + in_quotes(t.name) + " with too many dims");
      std::int64_t bytes = size_of(t.type);
      for (const json& e : a.at("extents")) {
        t.extents.push_back(extent(e));
        if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(1, t.extents.back()), &bytes))
          refuse("has a tensor " + in_quotes(t.name) + " that is too large to be counted");
      }
      if (!m.tensors.empty() && m.tensors.back().name >= t.name) refuse("has the tensor " + in_quotes(t.name) + " twice, or out of order");
      m.tensors.push_back(std::move(t));
    }
    for (const json& p : list("parts")) {
      m.parts.push_back({extent(p.at("bytes")), p.at("header").get<std::string>()});
      if (m.parts.back().header.size() != sha256::hex_digits || !are_hex_digits(m.parts.back().header)) refuse("has no SHA-256 for a part");
    }
  } catch (const nlohmann::json::exception& e) {
    refuse(std::string("cannot be read: ") + e.what());
  }
  if (text_of(m) != text) refuse("is not as gshard writes it");  // other fields, names of parts, spaces, two fields of one name
  return m;
}

}  // namespace detail
}}  // namespace gshard::v0
