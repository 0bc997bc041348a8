// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads and writes safetensors files, with a digest that detects damage.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/array_info.hpp>
#include <gshard/io/digest.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/safetensors_header.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

static_assert(std::endian::native == std::endian::little,
              "gshard: files are written as memory holds them, little-endian");

/// Writes a safetensors file, which gets its name when it is complete (see atomic_file). Names and shapes come first, then the data, so
/// that only one piece of the data need be in memory.
///
/// The metadata gets `gshard.xxh3_128`: the XXH3-128 of the complete file, computed with zeros for these 32 digits.
///
/// Throws `gshard::error` with the file's name: for names or texts that are not UTF-8; for two equal names; for shapes whose size
/// overflows; for a header over 100 MB; for all failures of the file system.
class safetensors_writer {
 public:
  safetensors_writer(const std::string& path, const std::vector<array_info>& arrays,
                     const std::map<std::string, std::string>& metadata = {})
      : safetensors_writer(path, begin(path, arrays, metadata)) {}

  /// Appends the next bytes of the arrays' data, array after array, in pieces of any size.
  void write(std::span<const std::byte> data) {
    if (std::int64_t(data.size()) > missing_)
      throw error(file_.path() + ": " + std::to_string(data.size()) + " bytes given, " +
                  std::to_string(missing_) + " of data to come");
    file_.append(data);
    digest_.add(data);
    missing_ -= std::int64_t(data.size());
  }

  /// Gives the file its name. All data must have been written.
  void commit() {
    if (missing_ != 0)
      throw error(file_.path() + ": " + std::to_string(missing_) + " bytes of data were not written");
    const std::string digits = digest_.hex();
    file_.patch(digest_at, std::as_bytes(std::span(digits)));
    file_.commit();
  }

 private:
  static constexpr auto digest_at =
      std::int64_t(sizeof(std::uint64_t) + safetensors_header::digest_prefix.size());

  struct start {
    std::string header;
    std::int64_t data_bytes;
  };
  static start begin(const std::string& path, const std::vector<array_info>& arrays,
                     const std::map<std::string, std::string>& metadata) {
    try {
      start s{safetensors_header_text(arrays, metadata), 0};
      for (const array_info& a : arrays) s.data_bytes += a.bytes();
      parse_safetensors_header(s.header, s.data_bytes);  // writes nothing that the reader would reject
      return s;
    } catch (const error& e) {
      throw error(path + ": cannot be written: " + e.what());
    }
  }
  safetensors_writer(const std::string& path, const start& s) : file_(path), missing_(s.data_bytes) {
    const std::uint64_t length = s.header.size();
    for (const auto part : {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(s.header))}) {
      file_.append(part);
      digest_.add(part);
    }
  }

  atomic_file file_;
  digest digest_;
  std::int64_t missing_;
};

struct safetensors_options {
  /// False: accepts files without gshard's digest, from other tools, and ignores an existing digest.
  bool verify = true;
};

/// A valid safetensors file. The constructor checks all of it, by the rules of parse_safetensors_header and by the digest. Throws
/// `gshard::error`: one sentence with the file's name and the check that failed.
class safetensors_reader {
 public:
  explicit safetensors_reader(const std::string& path, const safetensors_options& options = {})
      : file_(path) {
    std::uint64_t length = 0;
    if (file_.size() < data_at_)
      fail("is too short for a safetensors file: " + std::to_string(file_.size()) + " bytes");
    file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > std::uint64_t(safetensors_header::most_bytes))
      fail("is no safetensors file: its header would have " + std::to_string(length) + " bytes, more than " +
           std::to_string(safetensors_header::most_bytes));
    if (std::int64_t(length) > file_.size() - data_at_)
      fail("is truncated: the header has " + std::to_string(length) + " bytes, the file " +
           std::to_string(file_.size()));
    std::string text(length, ' ');
    file_.read(data_at_, std::as_writable_bytes(std::span(text)));
    data_at_ += std::int64_t(length);
    try {
      header_ = parse_safetensors_header(text, file_.size() - data_at_);
    } catch (const error& e) {
      fail(e.what());
    }
    if (options.verify) verify(std::move(text));
  }

  const std::string& path() const { return file_.path(); }
  /// In the order of their data.
  const std::vector<array_info>& arrays() const { return header_.arrays; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  /// The array called `name`, or null.
  const array_info* find(std::string_view name) const {
    const std::size_t i = header_.find(name);
    return i == header_.arrays.size() ? nullptr : &header_.arrays[i];
  }

  /// Bytes [from, from + to.size()) of an array. Throws if it has fewer, or if there is no such array.
  void read(std::string_view name, std::span<std::byte> to, std::int64_t from = 0) const {
    const std::size_t i = header_.find(name);
    if (i == header_.arrays.size()) fail("has no tensor " + detail::in_quotes(name));
    const std::int64_t bytes = header_.arrays[i].bytes();
    if (from < 0 || from > bytes || std::int64_t(to.size()) > bytes - from)
      fail(detail::in_quotes(name) + " has " + std::to_string(bytes) + " bytes, but " +
           std::to_string(to.size()) + " from byte " + std::to_string(from) + " were asked for");
    file_.read(data_at_ + header_.begin[i] + from, to);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw error(file_.path() + ": " + why); }

  void verify(std::string header) const {
    constexpr std::string_view prefix = safetensors_header::digest_prefix;
    if (!header.starts_with(prefix) || header.size() < prefix.size() + digest::hex_digits)
      fail("has no digest " + std::string(safetensors_header::digest_key) +
           "; a file from another tool is read with verify = false");
    const std::string recorded = header.substr(prefix.size(), digest::hex_digits);
    header.replace(prefix.size(), digest::hex_digits, digest::hex_digits, '0');
    const std::uint64_t length = header.size();
    digest found;
    found.add(std::as_bytes(std::span(&length, 1)));
    found.add(header);
    std::vector<std::byte> block(std::size_t(std::min<std::int64_t>(file_.size() - data_at_, 1 << 20)));
    for (std::int64_t at = data_at_; at < file_.size(); at += std::int64_t(block.size())) {
      const auto part =
          std::span(block).first(std::size_t(std::min(std::int64_t(block.size()), file_.size() - at)));
      file_.read(at, part);
      found.add(part);
    }
    if (found.hex() != recorded)
      fail("is damaged: its content does not match its digest " +
           std::string(safetensors_header::digest_key));
  }

  input_file file_;
  std::int64_t data_at_ = sizeof(std::uint64_t);
  safetensors_header header_;
};

}}  // namespace gshard::v0
