// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Parses and writes the JSON header of a safetensors file.

#include <gshard/core/base/packed_list.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/digest.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The header of a safetensors file: u64 length, then as many bytes of JSON,
/// {"__metadata__": {string: string}, name: {"dtype": .., "shape": [..], "data_offsets": [begin, end]}, ...}.
struct safetensors_header {
  static constexpr std::int64_t most_bytes = 100'000'000;
  /// The most tensors and metadata texts together. It bounds the time and memory for reading a header of most_bytes.
  static constexpr std::size_t most_entries = std::size_t(1) << 18;
  static constexpr std::string_view digest_key = "gshard.xxh3_128";
  /// Headers written by gshard start with this, followed by the digits of the digest.
  static constexpr std::string_view digest_prefix = R"({"__metadata__":{"gshard.xxh3_128":")";

  std::map<std::string, std::string> metadata;  // without the digest
  std::vector<array_info> arrays;               // in the order of their data
  std::vector<std::int64_t> begin;              // of their data, in bytes after the header
  std::vector<std::size_t> by_name;             // indices of arrays, ordered by name

  /// The index of the array called `name`, or the number of arrays.
  std::size_t find(std::string_view name) const {
    const auto before = [&](std::size_t i, std::string_view n) { return arrays[i].name < n; };
    const auto it = std::lower_bound(by_name.begin(), by_name.end(), name, before);
    return it == by_name.end() || arrays[*it].name != name ? arrays.size() : *it;
  }
};

namespace detail {

// A name from a file, made safe for a message.
inline std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  for (const char c : name.substr(0, 80)) text += c >= 0 && c < ' ' ? '?' : c;
  return text + (name.size() > 80 ? "...\"" : "\"");
}

/// Receives the events of a JSON parser and fills the tables of the header. Stops at the first event that is not allowed.
class header_events {
 public:
  using json = nlohmann::json;
  struct array {
    array_info info;
    std::int64_t begin, end;
  };

  std::map<std::string, std::string> metadata;
  std::vector<array> arrays;
  std::string problem;

  bool null() { return misplaced("null"); }
  bool boolean(bool) { return misplaced("true or false"); }
  bool binary(json::binary_t&) { return misplaced("binary data"); }
  bool number_integer(json::number_integer_t) { return misplaced("a negative number"); }
  bool number_float(json::number_float_t, const std::string& text) {
    return misplaced("the number " + in_quotes(text));
  }

  bool number_unsigned(json::number_unsigned_t n) {
    if (at_ != place::shape && at_ != place::offsets) return misplaced("a number");
    if (n > json::number_unsigned_t(std::numeric_limits<std::int64_t>::max()))
      return misplaced("a number of 2^63 or more");
    std::vector<std::int64_t>& list = at_ == place::shape ? info_.shape : offsets_;
    if (list.size() == std::size_t(at_ == place::shape ? max_rank : 2))
      return fail(at_ == place::shape ? "has more than " + std::to_string(max_rank) + " dims"
                                      : "has more than two data_offsets");
    list.push_back(std::int64_t(n));
    return true;
  }
  bool string(std::string& s) {
    if (at_ == place::metadata) {
      if (metadata.emplace(field_, std::move(s)).second) return true;
      problem = "metadata " + in_quotes(field_) + " occurs twice";
      return false;
    }
    if (at_ != place::array || field_ != "dtype") return misplaced("a text");
    for (const array_type_traits& row : array_types)
      if (s == row.name) {
        info_.type = row.type;
        return true;
      }
    return fail("has dtype " + in_quotes(s) + ", which is not one of F32, F64, I32, I64, F16, BF16, BOOL, U8");
  }
  bool start_object(std::size_t) {
    if (at_ == place::outside) return go(place::names);
    if (at_ != place::names) return misplaced("an object");
    if (info_.name != "__metadata__") return go(place::array);
    if (std::exchange(seen_metadata_, true)) return fail("occurs twice");
    return go(place::metadata);
  }
  bool key(std::string& s) {
    if (arrays.size() + metadata.size() == safetensors_header::most_entries) {
      problem = "has more than " + std::to_string(safetensors_header::most_entries) + " entries";
      return false;
    }
    if (at_ == place::names) {
      info_ = {};
      info_.name = std::move(s);
      offsets_.clear();
      seen_ = 0;
      return true;
    }
    field_ = std::move(s);
    if (at_ == place::metadata) return true;
    const unsigned bit = field_ == "dtype" ? 1u : field_ == "shape" ? 2u : field_ == "data_offsets" ? 4u : 0u;
    if (bit == 0) return fail("has a field " + in_quotes(field_));
    if ((seen_ & bit) != 0) return fail("has two fields " + in_quotes(field_));
    seen_ |= bit;
    return true;
  }
  bool end_object() {
    if (at_ == place::names) return go(place::outside);
    if (at_ == place::array) {
      if (seen_ != 7u) return fail("lacks its dtype, shape or data_offsets");
      if (offsets_.size() != 2) return fail("has fewer than two data_offsets");
      arrays.push_back({std::move(info_), offsets_[0], offsets_[1]});
    }
    return go(place::names);
  }
  bool start_array(std::size_t) {
    if (at_ == place::array && field_ == "shape") return go(place::shape);
    if (at_ == place::array && field_ == "data_offsets") return go(place::offsets);
    return misplaced("a list");
  }
  bool end_array() { return go(place::array); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    problem = "is not JSON: byte " + std::to_string(position);
    return false;
  }

 private:
  enum class place : std::uint8_t { outside, names, metadata, array, shape, offsets };

  bool go(place to) {
    at_ = to;
    return true;
  }
  bool fail(const std::string& what) {
    problem = in_quotes(info_.name) + " " + what;
    return false;
  }
  bool misplaced(const std::string& what) {
    if (at_ == place::outside)
      problem = "is " + what + ", not an object";
    else if (at_ == place::metadata)
      problem = "metadata " + in_quotes(field_) + " is " + what + ", not a text";
    else if (at_ == place::names)
      fail("is " + what + ", not an object");
    else
      fail("has " + what + " in its " + field_);
    return false;
  }

  place at_ = place::outside;
  array_info info_;
  std::string field_;
  std::vector<std::int64_t> offsets_;
  unsigned seen_ = 0;
  bool seen_metadata_ = false;
};

// False if the size, or a stride, of the array does not fit in 63 bits.
inline bool is_countable(const array_info& a) {
  std::int64_t n = size_of(a.type);
  for (const std::int64_t extent : a.shape)
    if (extent < 0 || __builtin_mul_overflow(n, std::max<std::int64_t>(extent, 1), &n)) return false;
  return true;
}

inline std::string json_text(std::string_view s) {
  try {
    return nlohmann::json(s).dump();
  } catch (const nlohmann::json::exception&) {
    throw error("the header: the name or text " + in_quotes(s) + " is not UTF-8");
  }
}

}  // namespace detail

/// Parses the header of a file with `data_bytes` of data after it. Throws `gshard::error`, "the header: ...", unless it is valid: an object
/// of JSON in UTF-8 with the fields above and no others; no name twice; known dtypes; shapes whose size does not overflow; data of the size
/// that dtype and shape give, without holes or overlaps, up to the end of the file.
inline safetensors_header parse_safetensors_header(std::string_view text, std::int64_t data_bytes) {
  const auto fail = [](const std::string& why) { throw error("the header: " + why); };
  if (std::int64_t(text.size()) > safetensors_header::most_bytes)
    fail("has " + std::to_string(text.size()) + " bytes, more than " +
         std::to_string(safetensors_header::most_bytes));
  if (!text.starts_with('{')) fail("does not start with {");
  if (text.find('\0') != text.npos) fail("holds a zero byte");  // where the parser would stop
  detail::header_events read;
  if (!nlohmann::json::sax_parse(text, &read)) fail(read.problem);
  read.metadata.erase(std::string(safetensors_header::digest_key));

  const auto by_place = [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  };
  if (!std::is_sorted(read.arrays.begin(), read.arrays.end(), by_place))
    std::stable_sort(read.arrays.begin(), read.arrays.end(), by_place);
  safetensors_header header;
  header.metadata = std::move(read.metadata);
  std::int64_t end = 0;
  for (detail::header_events::array& a : read.arrays) {
    const auto fail_here = [&](const std::string& why) { fail(detail::in_quotes(a.info.name) + why); };
    if (!detail::is_countable(a.info)) fail_here(" is too large to be counted: " + text_of(a.info));
    if (a.end < a.begin || a.end - a.begin != a.info.bytes())
      fail_here(" is " + text_of(a.info) + ", but its data_offsets are " + std::to_string(a.begin) + " and " +
                std::to_string(a.end));
    if (a.begin != end)
      fail_here(" begins at byte " + std::to_string(a.begin) + " of the data, the tensor before it ends at " +
                std::to_string(end));
    end = a.end;
    header.arrays.push_back(std::move(a.info));
    header.begin.push_back(a.begin);
  }
  if (end != data_bytes) {
    std::string cut;
    for (std::size_t i = 0; i < header.arrays.size() && cut.empty(); ++i)
      if (header.begin[i] + header.arrays[i].bytes() > data_bytes) cut = ": " + detail::in_quotes(header.arrays[i].name) + " is cut off";
    fail("its tensors have " + std::to_string(end) + " bytes, the file has " + std::to_string(data_bytes) + cut);
  }
  const auto name = [&](std::size_t i) -> const std::string& { return header.arrays[i].name; };
  header.by_name.resize(header.arrays.size());
  std::iota(header.by_name.begin(), header.by_name.end(), std::size_t(0));
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
  for (std::size_t i = 1; i < header.by_name.size(); ++i)
    if (name(header.by_name[i - 1]) == name(header.by_name[i]))
      fail(detail::in_quotes(name(header.by_name[i])) + " occurs twice");
  return header;
}

/// The header text for arrays whose data follow in this order. It has zeros for the digest, and is padded so that the data begin at a
/// multiple of 8.
inline std::string safetensors_header_text(const std::vector<array_info>& arrays,
                                           const std::map<std::string, std::string>& metadata) {
  std::string text(safetensors_header::digest_prefix);
  text += std::string(digest::hex_digits, '0') + '"';
  for (const auto& [key, value] : metadata)
    text += ',' + detail::json_text(key) + ':' + detail::json_text(value);
  text += '}';
  std::int64_t begin = 0;
  for (const array_info& a : arrays) {
    std::int64_t end = 0;
    if (!detail::is_countable(a) || __builtin_add_overflow(begin, a.bytes(), &end))
      throw error("the header: " + detail::in_quotes(a.name) + " cannot be counted: " + text_of(a));
    text +=
        ',' + detail::json_text(a.name) + R"(:{"dtype":")" + std::string(name_of(a.type)) + R"(","shape":[)";
    for (std::size_t d = 0; d < a.shape.size(); ++d) text += (d == 0 ? "" : ",") + std::to_string(a.shape[d]);
    text += R"(],"data_offsets":[)" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
    begin = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}}  // namespace gshard::v0
