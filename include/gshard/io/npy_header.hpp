// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Parses and writes the header of a NumPy .npy file.

#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/process/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The header of a .npy file: "\x93NUMPY", version, length, then as many bytes of text, the literal of a Python dict,
/// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. The elements follow.
struct npy_header {
  static constexpr std::string_view magic = "\x93NUMPY";
  static constexpr std::size_t most_bytes = 1 << 16;

  dtype type = dtype::f32;
  bool column_major = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_at = 0;  ///< The byte of the first element.

  bool operator==(const npy_header&) const = default;
};

namespace detail {

/// NumPy's name of each element type.
struct npy_type {
  dtype type;
  std::string_view descr;
};
inline constexpr npy_type npy_types[] = {
    {dtype::f32, "<f4"},
    {dtype::f64, "<f8"},
    {dtype::i32, "<i4"},
    {dtype::i64, "<i8"},
    {dtype::c64, "<c8"},
    {dtype::c128, "<c16"},
    {dtype::boolean, "|b1"},
    {dtype::f16, "<f2"},
};

constexpr std::string_view npy_descr(dtype t) {
  for (const npy_type& known : npy_types)
    if (known.type == t) return known.descr;
  return {};
}

/// Reads the literal of the header's dict.
class npy_dict {
 public:
  npy_dict(std::string_view text, npy_header& to) : text_(text), to_(&to) {}

  void read() {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!next_is('}')) {
      const std::string_view key = quoted();
      bool& seen = key == "descr" ? descr : key == "fortran_order" ? order : key == "shape" ? shape : unknown(key);
      if (seen) fail("has two fields '" + std::string(key) + "'");
      seen = true;
      expect(':');
      if (&seen == &descr) read_type();
      else if (&seen == &order) to_->column_major = truth();
      else read_shape();
      if (!next_is(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("has text after its dict");
    if (!descr || !order || !shape) fail("lacks its descr, fortran_order or shape");
  }

 private:
  std::string_view text_;
  npy_header* to_;
  std::size_t at_ = 0;

  [[noreturn]] static void fail(const std::string& why) { throw error("the header " + why); }
  [[noreturn]] static bool& unknown(std::string_view key) { fail("has a field " + shown(key)); }
  static std::string shown(std::string_view text) {
    std::string s = "'";
    for (const char c : text.substr(0, 40)) s += c < ' ' || c > '~' ? '?' : c;
    return s + (text.size() > 40 ? "...'" : "'");
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }
  char look() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool next_is(char c) {
    if (look() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!next_is(c)) fail("is not a dict as NumPy writes it: byte " + std::to_string(at_) + " of the dict is not " + shown({&c, 1}));
  }
  std::string_view quoted() {
    const char quote = look();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) fail("is not a dict as NumPy writes it: byte " + std::to_string(at_) + " of the dict begins no text");
    const std::string_view found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }
  void read_type() {
    if (look() == '[') fail("says that the elements are records");
    const std::string_view found = quoted();
    std::string all;
    for (const npy_type& known : npy_types) {
      if (known.descr == found) {
        to_->type = known.type;
        return;
      }
      all.append(all.empty() ? "" : ", ").append(known.descr);
    }
    fail("says that the elements are " + shown(found) + ", which is not one of " + all);
  }
  bool truth() {
    skip_blanks();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("has a fortran_order that is not True or False");
  }
  void read_shape() {
    expect('(');
    while (!next_is(')')) {
      to_->shape.push_back(number());
      if (to_->shape.size() > std::size_t(max_rank)) fail("has a shape of more than " + std::to_string(max_rank) + " dims");
      if (next_is(',')) continue;
      if (to_->shape.size() == 1) fail("has a shape that is not a tuple");  // (3) is a number
      expect(')');
      return;
    }
  }
  std::int64_t number() {
    std::int64_t n = 0;
    bool any = false;
    for (char c = look(); c >= '0' && c <= '9'; c = at_ < text_.size() ? text_[at_] : '\0', any = true) {
      if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, c - '0', &n)) fail("has an extent of 2^63 or more");
      ++at_;
    }
    if (!any) fail("has an extent that is not a whole number");
    return n;
  }
};

}  // namespace detail

/// Parses the header of a file of `file_bytes`. read(at, to) reads bytes of it. Throws `gshard::error`, with the file's name, unless the
/// header is valid, and the file has the elements that it promises and nothing after them.
template <class Read>
npy_header read_npy_header(const std::string& path, std::int64_t file_bytes, Read read) {
  const auto fail = [&](const std::string& why) { throw error(path + ": " + why); };
  const auto ends_in_header = [&](std::size_t bytes) {
    if (file_bytes < std::int64_t(bytes)) fail("is truncated: it ends in its header");
  };
  std::string start(std::size_t(std::min<std::int64_t>(file_bytes, 12)), '\0');
  read(std::int64_t(0), std::as_writable_bytes(std::span(start)));
  if (!start.starts_with(npy_header::magic)) fail("is not a .npy file");
  ends_in_header(10);
  const auto byte = [&](std::size_t i) { return std::size_t(static_cast<unsigned char>(start[i])); };
  const std::size_t major = byte(6), begin = major == 1 ? 10 : 12;
  if (major < 1 || major > 3 || byte(7) != 0)
    fail("is a .npy file of version " + std::to_string(major) + "." + std::to_string(byte(7)) + ", not 1.0, 2.0 or 3.0");
  ends_in_header(begin);
  std::size_t length = byte(8) + (byte(9) << 8);
  if (major > 1) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > npy_header::most_bytes)
    fail("has a header of " + std::to_string(length) + " bytes, more than " + std::to_string(npy_header::most_bytes));
  ends_in_header(begin + length);
  npy_header header;
  header.data_at = std::int64_t(begin + length);
  std::string text(length, '\0');
  read(std::int64_t(begin), std::as_writable_bytes(std::span(text)));
  const process_error problem = detail::problem_of([&] { detail::npy_dict(text, header).read(); });
  if (!problem.empty()) fail("is not a valid .npy file: " + problem.text);
  std::int64_t bytes = size_of(header.type);
  bool empty = false;
  for (const std::int64_t extent : header.shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes))  // strides must also be countable
      fail("is not a valid .npy file: its elements are more than can be counted");
  }
  if (empty) bytes = 0;
  const std::int64_t found = file_bytes - header.data_at;
  if (found != bytes)
    fail((found < bytes ? "is truncated: it has " : "does not fit its header: it has ") + std::to_string(found) +
         " bytes of elements, its header says " + std::to_string(bytes));
  return header;
}

/// The header of a file in row-major order, up to the first element: version 1.0, which suffices for max_rank dims, padded to a multiple of
/// 64 bytes as NumPy pads it.
inline std::string npy_header_text(dtype type, std::span<const std::int64_t> shape) {
  std::string dict = "{'descr': '" + std::string(detail::npy_descr(type)) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t d = 0; d < shape.size(); ++d) dict.append(d ? ", " : "").append(std::to_string(shape[d]));
  dict += shape.size() == 1 ? ",), }" : "), }";
  const std::size_t begin = npy_header::magic.size() + 4, size = (begin + dict.size() + 1 + 63) / 64 * 64;
  dict.append(size - begin - dict.size() - 1, ' ').push_back('\n');
  std::string text(npy_header::magic);
  text.append({'\1', '\0', char(dict.size() & 0xff), char(dict.size() >> 8)});
  return text + dict;
}

}}  // namespace gshard::v0
