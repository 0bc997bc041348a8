// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Part files of a checkpoint: the blocks that one device writes, as a safetensors file with a SHA-256 for
// every block.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/safetensors_header.hpp>
#include <gshard/survive/checkpoint/part_plan.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/sha256.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// A part has the layout of safetensors: u64 length of the header, the header as JSON, the data. Its arrays
// are blocks, "layer.w[0:2,0:4]". The metadata has the SHA-256 of every block under its name. Elements other than f32, f64 and i32 are
// stored as u8: their last extent counts bytes.
namespace gshard { inline namespace v0 { namespace detail {

/// The entry of a part in a manifest.
struct part_info {
  std::int64_t bytes = 0;  // of the file
  std::string header;      // the SHA-256 of its length and header
  bool operator==(const part_info&) const = default;
};

/// A block in a part file.
struct stored_block : saved_block {
  std::int64_t begin = 0, bytes = 0;  // in the file
  std::string digest;
};

inline constexpr std::string_view part_key = "gshard.part", part_version = "1";
inline constexpr std::string_view part_begin = R"({"__metadata__":{"gshard.part":"1")";
inline constexpr std::int64_t length_bytes = 8;

inline std::string part_name(std::size_t number) {
  const std::string digits = std::to_string(number);
  return "part-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + ".bin";
}

inline std::string block_name(const saved_tensor& tensor, const kernel::placement& at) {
  std::string text = tensor.name + "[";
  for (std::size_t d = 0; d < std::size_t(at.rank); ++d)
    text.append(d ? "," : "").append(std::to_string(at.offset[d])).append(":").append(std::to_string(at.offset[d] + at.extent[d]));
  return text + "]";
}

inline array_info block_array(const saved_tensor& tensor, const kernel::placement& at) {
  array_info a{block_name(tensor, at), array_type::u8, {at.extent.begin(), at.extent.begin() + at.rank}};
  switch (tensor.type) {
    case dtype::f32:
      a.type = array_type::f32;
      break;
    case dtype::f64:
      a.type = array_type::f64;
      break;
    case dtype::i32:
      a.type = array_type::i32;
      break;
    default:
      if (a.shape.empty()) a.shape.push_back(1);
      a.shape.back() *= size_of(tensor.type);
  }
  return a;
}

/// Length and header of a part.
inline std::string part_header(const std::vector<saved_tensor>& tensors, const std::vector<planned_block>& blocks,
                               const std::vector<std::string>& digests) {
  std::string text(part_begin), arrays;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const planned_block& b = blocks[i];
    const array_info a = block_array(tensors[b.tensor], b.at);
    const std::string name = json_text(a.name);
    text.append(",").append(name).append(":\"").append(digests[i]).append("\"");
    arrays.append(",").append(name).append(":{\"dtype\":\"").append(name_of(a.type)).append("\",\"shape\":[");
    for (std::size_t d = 0; d < a.shape.size(); ++d) arrays.append(d ? "," : "").append(std::to_string(a.shape[d]));
    arrays.append("],\"data_offsets\":[")
        .append(std::to_string(b.in_part))
        .append(",")
        .append(std::to_string(b.in_part + b.bytes))
        .append("]}");
  }
  text.append("}").append(arrays).append("}");
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string whole;
  for (int i = 0; i < length_bytes; ++i) whole += char(text.size() >> 8 * i & 255u);
  return whole + text;
}

/// The number of the first element that is infinite or not a number, or -1.
inline std::int64_t first_not_finite(dtype type, std::span<const std::byte> data) {
  const auto search = [&]<class Word>(Word exponent) {
    const std::size_t n = data.size() / sizeof(Word);
    constexpr std::size_t step = 4096 / sizeof(Word);
    Word words[step];
    for (std::size_t i = 0; i < n; i += step) {
      const std::size_t here = std::min(step, n - i);
      std::memcpy(words, data.data() + i * sizeof(Word), here * sizeof(Word));
      bool found = false;
      for (std::size_t k = 0; k < here; ++k) found |= (words[k] & exponent) == exponent;
      for (std::size_t k = 0; found && k < here; ++k)
        if ((words[k] & exponent) == exponent) return std::int64_t(i + k);
    }
    return std::int64_t(-1);
  };
  switch (type) {
    case dtype::f32:
      return search(std::uint32_t(0x7f800000));
    case dtype::f64:
      return search(std::uint64_t(0x7ff0000000000000));
    case dtype::f16:
      return search(std::uint16_t(0x7c00));
    case dtype::bf16:
      return search(std::uint16_t(0x7f80));
    case dtype::c64:
    case dtype::c128: {
      const std::int64_t part = type == dtype::c64 ? search(std::uint32_t(0x7f800000)) : search(std::uint64_t(0x7ff0000000000000));
      return part < 0 ? part : part / 2;
    }
    default:
      return -1;
  }
}

/// Writes a new part. Returns when it is on the disk. Throws `gshard::error` if that fails, or, unless `allow_not_finite`, if an element is
/// infinite or not a number. An unfinished file may then remain.
inline part_info write_part(const directory& in, const std::string& name, const std::vector<saved_tensor>& tensors,
                            const std::vector<planned_block>& blocks, std::span<const std::byte> data, bool allow_not_finite) {
  std::vector<std::string> digests(blocks.size(), std::string(sha256::hex_digits, '0'));
  std::string header = part_header(tensors, blocks, digests);
  const std::int64_t total = std::int64_t(header.size() + data.size());
  const descriptor file = in.create(name);
  const std::string path = in.path_of(name);
  resize(file, path, 0, total);
  write_at(file, path, 0, std::as_bytes(std::span(header)));  // marks the file as ours
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const planned_block& b = blocks[i];
    const auto bytes = data.subspan(std::size_t(b.in_part), std::size_t(b.bytes));
    if (const std::int64_t bad = allow_not_finite ? -1 : first_not_finite(tensors[b.tensor].type, bytes); bad >= 0)
      throw error("checkpoint: element " + std::to_string(bad) + " of " + in_quotes(block_name(tensors[b.tensor], b.at)) +
                  " is infinite or not a number; checkpointer_options::allow_not_finite saves it nevertheless");
    digests[i] = sha256_of(bytes);
    write_at(file, path, std::int64_t(header.size()) + b.in_part, bytes);
  }
  header = part_header(tensors, blocks, digests);
  write_at(file, path, 0, std::as_bytes(std::span(header)));
  flush(file, path);
  return {total, sha256_of(header)};
}

/// Length and header of a part, verified. Throws `gshard::error` if the file does not match the manifest.
inline std::string read_part_header(const directory& in, const std::string& name, const part_info& part) {
  const auto [file, size] = in.read(name);
  const std::string path = in.path_of(name);
  if (size != part.bytes) throw error(path + ": has " + std::to_string(size) + " bytes, the manifest says " + std::to_string(part.bytes));
  std::string text(std::size_t(length_bytes), ' ');
  if (size < length_bytes) throw error(path + ": is too short");
  read_at(file, path, 0, std::as_writable_bytes(std::span(text)));
  std::uint64_t length = 0;
  for (int i = length_bytes; i-- > 0;) length = length << 8 | std::uint64_t(static_cast<unsigned char>(text[std::size_t(i)]));
  if (length > std::uint64_t(size - length_bytes) || length > std::uint64_t(safetensors_header::most_bytes))
    throw error(path + ": its header has " + std::to_string(length) + " bytes");
  text.resize(std::size_t(length_bytes) + length);
  read_at(file, path, length_bytes, std::as_writable_bytes(std::span(text)).subspan(std::size_t(length_bytes)));
  if (sha256_of(text) != part.header) throw error(path + ": its header is not the one that the manifest knows");
  return text;
}

/// Reads the index ranges at the end of "layer.w[0:2,0:4]". False unless they are a block of the tensor.
inline bool read_ranges(std::string_view text, kernel::placement& at) {
  const auto number = [&](std::int64_t& n, char end) {
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (code != std::errc() || rest == text.data() + text.size() || *rest != end) return false;
    text.remove_prefix(std::size_t(rest + 1 - text.data()));
    return true;
  };
  if (!text.starts_with('[')) return false;
  text.remove_prefix(1);
  for (std::size_t d = 0; d < std::size_t(at.rank); ++d) {
    std::int64_t first = 0, last = 0;
    if (!number(first, ':') || !number(last, d + 1 == std::size_t(at.rank) ? ']' : ',')) return false;
    if (first < 0 || last <= first || last > at.global[d]) return false;
    at.offset[d] = first;
    at.extent[d] = last - first;
  }
  return text == (at.rank == 0 ? "]" : "");
}

/// The blocks of a part, in the order of their data. `header`: length and header. Throws `gshard::error` unless every block belongs to a
/// tensor, has its size, and has a digest.
inline std::vector<stored_block> blocks_of_part(std::string_view header, std::int64_t file_bytes, const std::vector<saved_tensor>& tensors,
                                                const std::map<std::string, std::size_t, std::less<>>& by_name) {
  const safetensors_header parsed =
      parse_safetensors_header(header.substr(std::size_t(length_bytes)), file_bytes - std::int64_t(header.size()));
  const auto version = parsed.metadata.find(std::string(part_key));
  if (version == parsed.metadata.end() || version->second != part_version) throw error("the header: is not that of a checkpoint's part");
  if (parsed.metadata.size() != parsed.arrays.size() + 1) throw error("the header: has other texts than a digest for each block");
  std::vector<stored_block> blocks;
  for (std::size_t i = 0; i < parsed.arrays.size(); ++i) {
    const array_info& a = parsed.arrays[i];
    const std::size_t bracket = a.name.rfind('[');
    const auto tensor = bracket == a.name.npos ? by_name.end() : by_name.find(std::string_view(a.name).substr(0, bracket));
    if (tensor == by_name.end()) throw error("the header: " + in_quotes(a.name) + " is no block of a tensor in the manifest");
    const saved_tensor& t = tensors[tensor->second];
    stored_block b;
    b.tensor = tensor->second;
    b.at.rank = t.rank();
    std::copy(t.extents.begin(), t.extents.end(), b.at.global.begin());
    if (!read_ranges(std::string_view(a.name).substr(bracket), b.at) || block_array(t, b.at) != a)
      throw error("the header: " + in_quotes(a.name) + " is " + text_of(a) + ", which is no block of the tensor in the manifest");
    const auto digest = parsed.metadata.find(a.name);
    if (digest == parsed.metadata.end() || digest->second.size() != sha256::hex_digits)
      throw error("the header: " + in_quotes(a.name) + " has no digest");
    b.begin = std::int64_t(header.size()) + parsed.begin[i];
    b.bytes = a.bytes();
    b.digest = digest->second;
    blocks.push_back(std::move(b));
  }
  return blocks;
}

/// Reads a block and verifies it.
inline void read_block(const descriptor& file, const std::string& path, const stored_block& b, std::span<std::byte> to) {
  read_at(file, path, b.begin, to);
  if (sha256_of(to) != b.digest)
    throw error(path + ": the " + std::to_string(b.bytes) + " bytes at byte " + std::to_string(b.begin) + " are not what was written");
}

}}}  // namespace gshard::v0::detail
