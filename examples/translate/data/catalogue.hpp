// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translate {

/// One entry of a gettext catalogue: the English text and its translation.
struct message {
  std::string id;
  std::string text;

  bool operator==(const message&) const = default;
};

namespace detail {

/// Reads the tables of one .mo file. Every offset and length is from the file, and is checked before use.
class catalogue_reader {
 public:
  catalogue_reader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    if (bytes_.size() < 28) fail("it ends within its header");
    const std::uint32_t magic = word(0);
    if (magic == 0xde120495) {
      swapped_ = true;
    } else if (magic != 0x950412de) {
      fail("it does not begin with the magic number of gettext catalogues (.mo)");
    }
    if ((word(4) >> 16) > 1) fail("its format revision " + std::to_string(word(4) >> 16) + " is not known");
    count_ = word(8);
    ids_ = word(12);
    texts_ = word(16);
    for (const std::uint64_t table : {ids_, texts_}) {
      if (table + 8 * count_ > bytes_.size()) fail("a table of strings lies outside the file");
    }
  }

  std::uint64_t count() const { return count_; }
  std::string_view id(std::uint64_t i) { return entry(ids_ + 8 * i); }
  std::string_view text(std::uint64_t i) { return entry(texts_ + 8 * i); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(
        name_ + ": not a usable gettext catalogue: " + what +
        ". Reinstall the package that it belongs to, or name another directory (--data DIR)");
  }

  std::uint32_t word(std::uint64_t at) const {
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[at + i]);
      value |= std::uint32_t{byte} << (8 * (swapped_ ? 3 - i : i));
    }
    return value;
  }

  std::string_view entry(std::uint64_t at) {
    const std::uint64_t length = word(at);
    const std::uint64_t offset = word(at + 4);
    if (offset + length >= bytes_.size()) fail("a string lies outside the file");
    if (bytes_[offset + length] != '\0') fail("a string does not end with a zero byte");
    // With overlapping strings, a small file could request any amount of memory.
    total_ += length;
    if (total_ > bytes_.size()) fail("its strings overlap");
    return bytes_.substr(offset, length);
  }

  std::string_view bytes_;
  std::string name_;
  bool swapped_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t ids_ = 0;
  std::uint64_t texts_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace detail

/// The messages of a gettext .mo file (GNU gettext manual, "The Format of GNU MO Files") of either byte order, in the file's order. The
/// header entry, messages with a context or plural forms, and untranslated messages are left out. Errors contain `name`. Throws
/// std::runtime_error if the bytes are no such file, or a damaged one.
inline std::vector<message> parse_catalogue(std::string_view bytes, const std::string& name) {
  detail::catalogue_reader reader(bytes, name);
  std::vector<message> messages;
  for (std::uint64_t i = 0; i < reader.count(); ++i) {
    const std::string_view id = reader.id(i);
    const std::string_view text = reader.text(i);
    const bool has_context_or_plural =
        id.find_first_of(std::string_view("\4\0", 2)) != std::string_view::npos;
    if (!id.empty() && !text.empty() && !has_context_or_plural) {
      messages.push_back({std::string(id), std::string(text)});
    }
  }
  return messages;
}

/// parse_catalogue() of a file. Throws std::runtime_error also if it cannot be read.
inline std::vector<message> read_catalogue(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    throw std::runtime_error(path.string() + ": cannot be read. Check that it exists and its permissions");
  }
  return parse_catalogue(bytes, path.string());
}

}  // namespace translate
